/** Statements. */
import { defineClass, defineFunction } from './definitions'
import { assign, assignNext } from './assignments'
import { guardOf, opposite } from './expressions'
import { runImport } from './imports'
import { buildsList, isEndless, itemsOf, loopAt, roundsOf } from './iteration'
import { firstLine, truthOfGuards, type Frame, type Interpreter } from './interpreter'
import { childAt, childrenAt, nodesOf, parts, type SyntaxNode } from './syntax'
import type { Guard } from './flow'
import { constant, taintOf, unknown, withTaint, type Value } from './values'

/** Runs the statements of a block. Returns whether the block certainly ends with `return`, `raise`, `break` or `continue`. */
export function runBlock(run: Interpreter, block: SyntaxNode, frame: Frame): boolean {
  let current = frame
  let isEnded = false
  for (const statement of block.children) {
    if (!run.step()) return isEnded
    const end = runStatement(run, statement, current)
    if (end === true) isEnded = true
    if (end !== undefined && end !== false) {
      // The code after the branch runs only if the condition of the ended branch is false.
      const guard = end === true ? NEVER : end
      current = { ...current, guards: [...current.guards, { ...guard, file: frame.scope.file.path }] }
    }
  }
  return isEnded
}

const NEVER: Guard = {
  truth: false,
  condition: unknown(),
  text: 'after the end of the block',
  file: '',
  line: 0,
  wants: undefined,
}

/** Returns true if the block ends here, or the condition under which it continues. */
function runStatement(run: Interpreter, node: SyntaxNode, frame: Frame): boolean | Guard | undefined {
  switch (node.type) {
    case 'expression_statement':
      for (const part of parts(node)) run.evaluate(part, frame)
      if (!isExit(node)) return undefined
      run.stops.push({ ...stopAt(node, frame), kind: 'exit', condition: undefined })
      return true
    case 'import_statement':
    case 'import_from_statement':
      return void runImport(run, node, frame)
    case 'function_definition':
    case 'class_definition':
    case 'decorated_definition':
      return void define(run, node, frame)
    case 'if_statement':
      return runIf(run, node, frame)
    case 'for_statement':
      return void runFor(run, node, frame)
    case 'while_statement':
      return void runWhile(run, node, frame)
    case 'with_statement':
      return runWith(run, node, frame)
    case 'try_statement':
      return runTry(run, node, frame)
    case 'match_statement':
      return void runMatch(run, node, frame)
    case 'return_statement': {
      const [result] = parts(node)
      const value = result === undefined ? constant(null) : run.evaluate(result, frame)
      frame.returns.push({ value, truth: truthOfGuards(frame.guards) })
      const guard = frame.guards.at(-1)
      if (guard !== undefined)
        for (const loop of frame.loops.slice(frame.loopsOfCaller)) loop.breaks.push(guard)
      return true
    }
    case 'raise_statement':
      for (const part of parts(node)) run.evaluate(part, frame)
      run.stops.push({ ...stopAt(node, frame), kind: 'raise', condition: undefined })
      return true
    case 'assert_statement': {
      const condition = run.evaluate(parts(node)[0]!, frame)
      run.stops.push({ ...stopAt(node, frame), kind: 'assert', condition })
      return undefined
    }
    case 'break_statement': {
      const guard = frame.guards.at(-1)
      if (guard !== undefined) frame.loops.at(-1)?.breaks.push(guard)
      return true
    }
    case 'continue_statement':
      return true
    case 'global_statement':
    case 'nonlocal_statement':
      for (const name of node.children) frame.scope.elsewhere.add(name.text)
      return undefined
    default:
      return undefined
  }
}

function stopAt(
  node: SyntaxNode,
  frame: Frame,
): { guards: Frame['guards']; text: string; file: string; line: number } {
  return { guards: frame.guards, text: firstLine(node.text), file: frame.scope.file.path, line: node.line }
}

/** `sys.exit()`, `exit()`, `quit()`. */
function isExit(node: SyntaxNode): boolean {
  const call = node.children[0]
  if (call?.type !== 'call') return false
  const name = childAt(call, 'function')?.text ?? ''
  return ['sys.exit', 'exit', 'quit', 'os._exit'].includes(name)
}

function define(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  const definition = node.type === 'decorated_definition' ? childAt(node, 'definition') : node
  const decorators =
    node.type === 'decorated_definition' ? node.children.filter(({ type }) => type === 'decorator') : []
  if (definition === undefined) return
  const name = childAt(definition, 'name')?.text ?? ''
  const value =
    definition.type === 'class_definition'
      ? defineClass(run, { node: definition, decorators }, frame)
      : defineFunction(run, { node: definition, decorators, owner: undefined }, frame)
  frame.scope.put(name, value)
}

/** Conditions of earlier branches that are kept for a later one; more would take quadratic time, and rule nothing out. */
const GUARDS_MAX = 30

function runIf(run: Interpreter, node: SyntaxNode, frame: Frame): boolean | Guard {
  const condition = childAt(node, 'condition')!
  let rest = guardOf(run, condition, frame)
  // The main part of a module that is imported runs never, whatever the options are.
  if (rest.truth === false && condition.children[0]?.text === '__name__') return false
  const ended: boolean[] = [runBranch(run, { body: childAt(node, 'consequence')!, guard: rest }, frame)]
  const first = rest
  let guards = [opposite(rest)]
  let hasElse = false
  for (const clause of childrenAt(node, 'alternative')) {
    const inside = { ...frame, guards: [...frame.guards, ...guards] }
    if (clause.type === 'else_clause') {
      hasElse = true
      ended.push(runBlock(run, childAt(clause, 'body')!, inside))
      continue
    }
    rest = guardOf(run, childAt(clause, 'condition')!, inside)
    ended.push(runBranch(run, { body: childAt(clause, 'consequence')!, guard: rest }, inside))
    if (guards.length < GUARDS_MAX) guards = [...guards, opposite(rest)]
  }
  if (hasElse && ended.every(Boolean)) return true
  if (ended[0] === true && ended.length === 1) return first.truth === true ? true : opposite(first)
  return false
}

function runBranch(
  run: Interpreter,
  { body, guard }: { body: SyntaxNode; guard: Guard },
  frame: Frame,
): boolean {
  return runBlock(run, body, { ...frame, guards: [...frame.guards, guard] })
}

function runFor(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  const left = childAt(node, 'left')!
  const right = childAt(node, 'right')!
  const iterated = run.evaluate(right, frame)
  const body = childAt(node, 'body')!
  const rounds = buildsList(body, frame.scope) ? roundsOf(iterated, { left, body }) : undefined
  if (rounds !== undefined) {
    for (const value of rounds) {
      assignNext(run, { target: left, value }, frame)
      runBlock(run, body, frame)
    }
    return
  }
  const loop = loopAt(
    run,
    { node, variable: left.text, iterated, kind: 'for', canEnd: !isEndless(iterated) || canLeave(body) },
    frame,
  )
  widen(run, body, frame)
  const inside = { ...frame, loops: [...frame.loops, loop] }
  for (const value of itemsOf(iterated) ?? [unknown(taintOf(iterated))]) {
    assignNext(run, { target: left, value }, frame)
    runBlock(run, body, inside)
  }
  const otherwise = childAt(node, 'alternative')
  if (otherwise !== undefined) runBlock(run, childAt(otherwise, 'body')!, frame)
}

function runWhile(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  const body = childAt(node, 'body')!
  widen(run, body, frame)
  const condition = childAt(node, 'condition')!
  const guard = guardOf(run, condition, frame)
  const canEnd = guard.truth !== true || canLeave(body)
  const loop = loopAt(
    run,
    { node, variable: condition.text, iterated: guard.condition, kind: 'while', canEnd },
    frame,
  )
  // A loop that only a flag set to false would skip is as unlikely as the branch of an `if`.
  const guards = guard.truth === false ? [...frame.guards, guard] : frame.guards
  runBlock(run, body, { ...frame, guards, loops: [...frame.loops, loop] })
}

/** Whether a body has a statement that leaves its loop, other than those of inner loops and functions. */
function canLeave(body: SyntaxNode): boolean {
  const visit = (node: SyntaxNode, isInner: boolean): boolean =>
    node.children.some((child) => {
      if (child.type === 'function_definition' || child.type === 'class_definition') return false
      if (child.type === 'break_statement') return !isInner
      if (child.type === 'return_statement' || child.type === 'raise_statement') return true
      if (child.type === 'expression_statement' && isExit(child)) return true
      const isLoop = child.type === 'for_statement' || child.type === 'while_statement'
      return visit(child, isInner || isLoop)
    })
  return visit(body, false)
}

/** Constants that a loop's body assigns have another value in the next round. */
function widen(run: Interpreter, body: SyntaxNode, frame: Frame): void {
  for (const node of nodesOf(body)) {
    if (node.type !== 'assignment' && node.type !== 'augmented_assignment') continue
    const left = childAt(node, 'left')
    if (left?.type === 'identifier') {
      const value = frame.scope.names.get(left.text)
      if (value?.kind === 'constant') frame.scope.put(left.text, unknown(value))
    }
    if (left?.type === 'attribute') widenAttribute(run, left, frame)
  }
}

function widenAttribute(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  const object = childAt(node, 'object')!
  const name = childAt(node, 'attribute')!.text
  // Only named objects count, because reading an object runs nothing.
  const owner = object.type === 'identifier' ? frame.scope.find(object.text) : undefined
  if (owner?.kind !== 'instance') return
  const value = owner.attributes.get(name)
  if (value?.kind === 'constant') owner.attributes.set(name, unknown(value))
}

function runWith(run: Interpreter, node: SyntaxNode, frame: Frame): boolean {
  for (const item of [...nodesOf(node.children[0]!)].filter(({ type }) => type === 'with_item')) {
    const value = childAt(item, 'value')!
    if (value.type !== 'as_pattern') {
      run.evaluate(value, frame)
      continue
    }
    const [entered, target] = value.children
    const result = run.evaluate(entered!, frame)
    const name = target?.children[0]
    if (name !== undefined) assign(run, { target: name, value: result }, frame)
  }
  return runBlock(run, childAt(node, 'body')!, frame)
}

function runTry(run: Interpreter, node: SyntaxNode, frame: Frame): boolean {
  const isEnded = runBlock(run, childAt(node, 'body')!, frame)
  for (const clause of node.children) {
    const body = clause.children.find(({ type }) => type === 'block')
    if (body === undefined) continue
    if (clause.type === 'except_clause' || clause.type === 'except_group_clause') {
      const guard = {
        ...NEVER,
        truth: undefined,
        text: firstLine(clause.text),
        line: clause.line,
        file: frame.scope.file.path,
      }
      runBlock(run, body, { ...frame, isRare: true, guards: [...frame.guards, guard] })
    } else if (clause.type === 'finally_clause' || clause.type === 'else_clause') runBlock(run, body, frame)
  }
  return isEnded && truthOfGuards(frame.guards) === true
}

function runMatch(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  const subject = childAt(node, 'subject')
  const value: Value = subject === undefined ? unknown() : run.evaluate(subject, frame)
  const body = childAt(node, 'body')
  for (const clause of body?.children ?? []) {
    const consequence = childAt(clause, 'consequence')
    if (consequence === undefined) continue
    const guard = {
      ...NEVER,
      truth: undefined,
      condition: withTaint(unknown(), value),
      text: firstLine(clause.text),
    }
    runBlock(run, consequence, { ...frame, guards: [...frame.guards, { ...guard, line: clause.line }] })
  }
}
