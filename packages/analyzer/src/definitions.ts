/** Functions and classes of the project. */
import { bindDecorated } from './options/decorated'
import type { Frame, Interpreter } from './interpreter'
import { childAt, parameterName, parts, type SyntaxNode } from './syntax'
import {
  either,
  Scope,
  taintOf,
  unknown,
  type ClassDefinition,
  type FunctionDefinition,
  type Value,
} from './values'

interface Defined {
  node: SyntaxNode
  decorators: readonly SyntaxNode[]
}

export function defineFunction(
  run: Interpreter,
  { node, decorators, owner }: Defined & { owner: ClassDefinition | undefined },
  frame: Frame,
): Value {
  const definition: FunctionDefinition = {
    name: childAt(node, 'name')?.text ?? 'lambda',
    file: frame.scope.file,
    node,
    scope: frame.scope,
    owner,
    decorators,
  }
  for (const decorator of decorators) run.evaluate(parts(decorator)[0]!, frame)
  return { ...taintOf(), kind: 'function', definition, self: undefined, wrappers: [] }
}

export function defineClass(run: Interpreter, { node, decorators }: Defined, frame: Frame): Value {
  const superclasses = childAt(node, 'superclasses')
  const bases = (superclasses?.children ?? [])
    .filter(({ type }) => type !== 'keyword_argument' && type !== 'comment')
    .map((base) => run.evaluate(base, frame))
  const definition: ClassDefinition = {
    name: childAt(node, 'name')!.text,
    file: frame.scope.file,
    node,
    bases,
    members: new Map(),
    fields: [],
    decorators: decorators.map((decorator) => parts(decorator)[0]?.text ?? ''),
  }
  for (const decorator of decorators) run.evaluate(parts(decorator)[0]!, frame)
  const scope = new Scope(frame.scope.file, frame.scope)
  const inside: Frame = { ...frame, scope }
  for (const statement of childAt(node, 'body')?.children ?? [])
    runMember(run, { definition, statement }, inside)
  for (const [name, value] of scope.names) definition.members.set(name, value)
  return { ...taintOf(), kind: 'class', definition }
}

function runMember(
  run: Interpreter,
  { definition, statement }: { definition: ClassDefinition; statement: SyntaxNode },
  frame: Frame,
): void {
  const inner = statement.type === 'decorated_definition' ? childAt(statement, 'definition')! : statement
  if (inner.type === 'function_definition') {
    const decorators = statement.children.filter(({ type }) => type === 'decorator')
    const value = defineFunction(run, { node: inner, decorators, owner: definition }, frame)
    frame.scope.put(childAt(inner, 'name')!.text, value)
    return
  }
  const assignment = inner.type === 'expression_statement' ? inner.children[0] : undefined
  run.runBlock({ ...statement, children: [statement] }, frame)
  if (assignment?.type !== 'assignment' || childAt(assignment, 'type') === undefined) return
  const name = childAt(assignment, 'left')!.text
  const value = frame.scope.names.get(name)
  definition.fields.push({
    name,
    value: childAt(assignment, 'right') === undefined ? undefined : value,
    node: assignment,
  })
}

/** Follows a call of a function; returns its result. */
export function callFunction(
  run: Interpreter,
  called: Extract<Value, { kind: 'function' }>,
  given: { positional: readonly Value[]; named: ReadonlyMap<string, Value>; frame: Frame },
): Value {
  const { definition, self } = called
  const { frame } = given
  const calls = run.calls.get(definition) ?? 0
  if (frame.stack.includes(definition) || frame.stack.length > STACK_MAX || calls >= CALLS_MAX)
    return unknown()
  run.calls.set(definition, calls + 1)
  const scope = new Scope(definition.file, definition.scope)
  const isStatic = definition.decorators.some(({ text }) => text.includes('staticmethod'))
  const receiver = definition.owner !== undefined && !isStatic ? (self ?? unknown()) : undefined
  const named = new Map([...given.named, ...bindDecorated(run, definition, given)])
  const positional = receiver === undefined ? given.positional : [receiver, ...given.positional]
  const inside: Frame = {
    ...frame,
    scope,
    loopsOfCaller: frame.loops.length,
    guardsOfCaller: frame.guards.length,
    within: [...frame.within, definition.name],
    stack: [...frame.stack, definition],
    self: receiver,
    returns: [],
  }
  bindParameters(run, { definition, positional, named }, inside)
  const body = childAt(definition.node, 'body')!
  if (definition.node.type === 'lambda') return run.evaluate(body, inside)
  run.runBlock(body, inside)
  return resultOf(inside)
}

/** One of the values that a function returns; of those that it certainly does not reach only if there are no others. */
function resultOf({ returns }: Frame): Value {
  const reached = returns.filter(({ truth }) => truth !== false)
  const values = (reached.length > 0 ? reached : returns).map(({ value }) => value)
  return values.length === 0 ? unknown() : values.reduce(either)
}

/** Limit on chains of calls and on calls of one function; more reveal nothing new. */
const STACK_MAX = 30
const CALLS_MAX = 100

interface Binding {
  definition: FunctionDefinition
  positional: readonly Value[]
  named: ReadonlyMap<string, Value>
}

function bindParameters(run: Interpreter, { definition, positional, named }: Binding, frame: Frame): void {
  const parameters = childAt(definition.node, 'parameters')?.children ?? []
  let at = 0
  const taken = new Set<string>()
  for (const parameter of parameters) {
    const name = parameterName(parameter)
    if (name === undefined) continue
    if (isSplat(parameter)) {
      const rest = { ...taintOf(...positional.slice(at)), kind: 'list' as const, items: positional.slice(at) }
      const others = new Map([...named].filter(([key]) => !taken.has(key)))
      frame.scope.names.set(
        name,
        parameter.text.startsWith('**') ? { ...taintOf(), kind: 'dict', entries: others } : rest,
      )
      if (!parameter.text.startsWith('**')) at = positional.length
      continue
    }
    taken.add(name)
    const fallback = childAt(parameter, 'value')
    const value =
      named.get(name) ??
      positional[at] ??
      (fallback === undefined ? unknown() : run.evaluate(fallback, { ...frame, scope: definition.scope }))
    at += 1
    frame.scope.names.set(name, value)
  }
}

function isSplat(parameter: SyntaxNode): boolean {
  return parameter.text.startsWith('*')
}
