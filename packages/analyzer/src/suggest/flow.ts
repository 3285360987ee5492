/** Which names a piece of Python reads before it assigns them, and which it certainly assigns: what a loop carries from round to round. */
import { childAt, childrenAt, parameterName, parts, type SyntaxNode } from '../syntax'

const COMPREHENSIONS = new Set([
  'list_comprehension',
  'dictionary_comprehension',
  'set_comprehension',
  'generator_expression',
])

/** The names of one scope, in the order in which the statements run. Functions defined in it count as read where they are defined. */
export class Flow {
  /** Names whose earlier value may be read, with the first place. */
  readonly exposed = new Map<string, SyntaxNode>()
  /** Names that are assigned somewhere, with the first place. */
  readonly assigned = new Map<string, SyntaxNode>()
  /** Names of `global` and `nonlocal`. */
  readonly elsewhere = new Set<string>()

  /**
   * @param before - names that have a value beforehand. A loop inside is taken to run at least once for the others, because the program
   * would fail otherwise.
   */
  constructor(private readonly before: { has(name: string): boolean } = new Set()) {}

  /** Follows statements; `bound` gets the names that certainly have a value afterwards. Returns whether the block is always left early. */
  block(statements: readonly SyntaxNode[], bound: Set<string>): boolean {
    let isEnded = false
    for (const statement of statements) if (this.#statement(statement, bound)) isEnded = true
    return isEnded
  }

  #statement(node: SyntaxNode, bound: Set<string>): boolean {
    switch (node.type) {
      case 'if_statement':
        return this.#branches(node, bound)
      case 'for_statement':
      case 'while_statement':
        this.#loop(node, bound)
        return false
      case 'try_statement':
        return this.#try(node, bound)
      case 'match_statement':
        this.#match(node, bound)
        return false
      case 'with_statement':
        this.read(node.children[0]!, bound)
        return this.block(childAt(node, 'body')!.children, bound)
      case 'return_statement':
      case 'raise_statement':
        for (const part of parts(node)) this.read(part, bound)
        return true
      case 'continue_statement':
      case 'break_statement':
        return true
      case 'global_statement':
      case 'nonlocal_statement':
        for (const name of node.children) this.elsewhere.add(name.text)
        return false
      case 'import_statement':
      case 'import_from_statement':
        for (const name of childrenAt(node, 'name')) this.#bind(importedName(name), bound)
        return false
      default:
        this.read(node, bound)
        return false
    }
  }

  #branches(node: SyntaxNode, bound: Set<string>): boolean {
    this.read(childAt(node, 'condition')!, bound)
    const outcomes = [this.#branch(childAt(node, 'consequence')!, bound)]
    let hasElse = false
    for (const clause of childrenAt(node, 'alternative')) {
      const condition = childAt(clause, 'condition')
      if (condition !== undefined) this.read(condition, bound)
      hasElse ||= clause.type === 'else_clause'
      outcomes.push(this.#branch((childAt(clause, 'body') ?? childAt(clause, 'consequence'))!, bound))
    }
    if (!hasElse) outcomes.push({ bound: new Set(bound), isEnded: false })
    return merge(outcomes, bound)
  }

  #branch(block: SyntaxNode, bound: ReadonlySet<string>): Outcome {
    const own = new Set(bound)
    return { bound: own, isEnded: this.block(block.children, own) }
  }

  #loop(node: SyntaxNode, bound: Set<string>): void {
    const right = childAt(node, 'right') ?? childAt(node, 'condition')!
    this.read(right, bound)
    const inside = new Set(bound)
    const left = childAt(node, 'left')
    if (left !== undefined) this.#target(left, inside)
    this.block(childAt(node, 'body')!.children, inside)
    for (const name of inside) if (!this.before.has(name)) bound.add(name)
    const otherwise = childAt(node, 'alternative')
    if (otherwise !== undefined) this.block(childAt(otherwise, 'body')!.children, bound)
  }

  #try(node: SyntaxNode, bound: Set<string>): boolean {
    const body = this.#branch(childAt(node, 'body')!, bound)
    const outcomes = [body]
    for (const clause of node.children) {
      const block = clause.children.find(({ type }) => type === 'block')
      if (block === undefined || clause.field === 'body') continue
      if (clause.type === 'finally_clause') continue
      if (clause.type === 'else_clause') body.isEnded ||= this.block(block.children, body.bound)
      else {
        const own = new Set(bound)
        for (const part of parts(clause)) if (part !== block) this.read(part, own)
        outcomes.push({ bound: own, isEnded: this.block(block.children, own) })
      }
    }
    const isEnded = merge(outcomes, bound)
    const last = node.children.find(({ type }) => type === 'finally_clause')
    const final = last?.children.find(({ type }) => type === 'block')
    return (final !== undefined && this.block(final.children, bound)) || isEnded
  }

  #match(node: SyntaxNode, bound: ReadonlySet<string>): void {
    const subject = childAt(node, 'subject')
    if (subject !== undefined) this.read(subject, new Set(bound))
    for (const clause of childAt(node, 'body')?.children ?? []) {
      const own = new Set(bound)
      for (const part of clause.children) if (part.field !== 'consequence') this.#target(part, own)
      this.block(childAt(clause, 'consequence')?.children ?? [], own)
    }
  }

  /** Follows an expression, or a statement without blocks. */
  read(node: SyntaxNode, bound: Set<string>): void {
    switch (node.type) {
      case 'identifier':
        if (!bound.has(node.text) && !this.exposed.has(node.text)) this.exposed.set(node.text, node)
        return
      case 'attribute':
        return this.read(childAt(node, 'object')!, bound)
      case 'keyword_argument':
        return this.read(childAt(node, 'value')!, bound)
      case 'assignment':
      case 'augmented_assignment': {
        const [left, right] = [childAt(node, 'left')!, childAt(node, 'right')]
        if (right !== undefined) this.read(right, bound)
        if (node.type === 'augmented_assignment') this.read(left, bound)
        if (right !== undefined) this.#target(left, bound)
        return
      }
      case 'named_expression':
        this.read(childAt(node, 'value')!, bound)
        return this.#bind(childAt(node, 'name')!, bound)
      case 'as_pattern': {
        const [value, alias] = parts(node)
        this.read(value!, bound)
        for (const name of alias?.children ?? []) this.#target(name, bound)
        return
      }
      case 'function_definition':
      case 'lambda':
        for (const [name, place] of freeNames(node)) if (!bound.has(name)) this.#expose(name, place)
        if (node.type === 'function_definition') this.#bind(childAt(node, 'name')!, bound)
        return
      case 'class_definition':
        for (const child of parts(node)) if (child.field !== 'name') this.read(child, new Set(bound))
        return this.#bind(childAt(node, 'name')!, bound)
      default:
        if (COMPREHENSIONS.has(node.type)) return this.#comprehension(node, bound)
        for (const part of parts(node)) this.read(part, bound)
    }
  }

  #expose(name: string, place: SyntaxNode): void {
    if (!this.exposed.has(name)) this.exposed.set(name, place)
  }

  #comprehension(node: SyntaxNode, bound: ReadonlySet<string>): void {
    const own = new Set(bound)
    for (const clause of node.children.filter(({ type }) => type === 'for_in_clause')) {
      this.read(childAt(clause, 'right')!, own)
      for (const name of identifiersIn(childAt(clause, 'left')!)) own.add(name.text)
    }
    for (const part of parts(node)) if (part.type !== 'for_in_clause') this.read(part, own)
  }

  #target(node: SyntaxNode, bound: Set<string>): void {
    if (node.type === 'identifier') return this.#bind(node, bound)
    if (node.type === 'attribute' || node.type === 'subscript') return this.read(node, bound)
    for (const part of parts(node)) this.#target(part, bound)
  }

  #bind(name: SyntaxNode, bound: Set<string>): void {
    bound.add(name.text)
    if (!this.assigned.has(name.text)) this.assigned.set(name.text, name)
  }
}

interface Outcome {
  bound: Set<string>
  isEnded: boolean
}

/** Returns the names that are bound after any of several branches. A branch that leaves early does not count. */
function merge(outcomes: readonly Outcome[], bound: Set<string>): boolean {
  const left = outcomes.filter(({ isEnded }) => !isEnded)
  const [first, ...others] = left
  for (const name of first?.bound ?? []) if (others.every((other) => other.bound.has(name))) bound.add(name)
  return left.length === 0
}

/** `import a.b` binds `a`, `import a.b as c` binds `c`. */
function importedName(name: SyntaxNode): SyntaxNode {
  return childAt(name, 'alias') ?? name.children[0] ?? name
}

export function identifiersIn(node: SyntaxNode): SyntaxNode[] {
  return node.type === 'identifier' ? [node] : node.children.flatMap(identifiersIn)
}

/** The parameters of a function, as names. */
function parametersOf(node: SyntaxNode): string[] {
  const parameters = childAt(node, 'parameters')?.children ?? []
  return parameters.map(parameterName).filter((name) => name !== undefined)
}

/** Returns the names that a function binds, and the outer names that it reads. */
export function flowOf(node: SyntaxNode): { flow: Flow; locals: Set<string> } {
  const flow = new Flow()
  const bound = new Set(parametersOf(node))
  const body = childAt(node, 'body')!
  if (body.type === 'block') flow.block(body.children, bound)
  else flow.read(body, bound)
  const locals = new Set([...parametersOf(node), ...flow.assigned.keys()])
  for (const name of flow.elsewhere) locals.delete(name)
  return { flow, locals }
}

/** Names of outer scopes that a function reads, with their places. */
export function freeNames(node: SyntaxNode): Map<string, SyntaxNode> {
  const { flow, locals } = flowOf(node)
  const free = new Map([...flow.exposed].filter(([name]) => !locals.has(name)))
  for (const parameter of childAt(node, 'parameters')?.children ?? []) {
    const fallback = childAt(parameter, 'value')
    if (fallback !== undefined) for (const name of identifiersIn(fallback)) free.set(name.text, name)
  }
  return free
}
