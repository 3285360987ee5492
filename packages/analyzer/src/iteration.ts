/** Values over which a loop iterates. */
import { isContainer, membersOf } from './containers'
import type { Frame, Interpreter } from './interpreter'
import type { Loop } from './flow'
import { childAt, nodesOf, type SyntaxNode } from './syntax'
import { trains } from './training-steps'
import { templateOf } from './operators'
import { constant, either, list, numberOf, textOf, unknown, type Scope, type Value } from './values'

const NO_NAMES: ReadonlyMap<string, Value> = new Map()

/** Returns all names that are visible in a scope, with their present values. */
function visibleNames({ parent, names }: Scope): Map<string, Value> {
  return new Map([...(parent === undefined ? [] : visibleNames(parent)), ...names])
}

export function loopAt(
  run: Interpreter,
  { node, ...about }: Pick<Loop, 'variable' | 'iterated' | 'kind' | 'canEnd'> & { node: SyntaxNode },
  frame: Frame,
): Loop {
  const loop: Loop = {
    id: run.loops.length,
    breaks: [],
    ...about,
    file: frame.scope.file.path,
    line: node.line,
    node,
    before: node.type === 'for_in_clause' ? NO_NAMES : visibleNames(frame.scope),
  }
  run.loops.push(loop)
  return loop
}

/** Longer lists are data. */
const ITEMS_MAX = 8
const LAYERS_MAX = 64

/**
 * Returns the items of a short list of objects, or of the entries of a dictionary of them; `undefined` if a loop over them is like any
 * other.
 */
export function itemsOf(iterated: Value): readonly Value[] | undefined {
  if (isContainer(iterated)) {
    const members = membersOf(iterated)
    return members.length === 0 || members.length > LAYERS_MAX ? undefined : members
  }
  const counted =
    iterated.kind === 'made' && iterated.call.name === 'enumerate' ? iterated.call.positional[0] : undefined
  if (counted !== undefined && isContainer(counted))
    return itemsOf(counted)?.map((item, at) => list([constant(at), item]))
  const items = iterated.kind === 'list' ? iterated.items : (entriesOf(iterated) ?? pairsOf(iterated))
  if (items === undefined || items.length === 0 || items.length > ITEMS_MAX) return undefined
  if (items.length <= PATHS_MAX && items.every(isPath)) return [items.reduce(either)]
  // Without conditions on the way, the only item is that of the only round.
  if (iterated.kind === 'list' && items.length === 1) return items
  return items.every(isObject) ? items : undefined
}

/** More paths in a list are data. */
const PATHS_MAX = 4
const isPath = (value: Value): boolean => (textOf(value) ?? templateOf(value))?.includes('/') === true

const isObject = (value: Value): boolean =>
  value.kind === 'list'
    ? value.items.some(isObject)
    : value.kind === 'made' ||
      value.kind === 'instance' ||
      value.kind === 'function' ||
      (value.kind === 'extern' && value.receiver !== undefined)

/** `zip(parts, states)`: the items of the lists of objects, with something of each other argument. */
function pairsOf(iterated: Value): Value[] | undefined {
  if (iterated.kind !== 'made' || iterated.call.name !== 'zip') return undefined
  const all = iterated.call.positional
  const lists = all.map((each) => {
    if (isContainer(each)) return itemsOf(each)
    return each.kind === 'list' && each.items.every(isObject) ? each.items : undefined
  })
  const length = Math.max(...lists.map((items) => items?.length ?? 0))
  return Array.from({ length }, (_, at) =>
    list(all.map((each, index) => lists[index]?.[at] ?? unknown(each))),
  )
}

function entriesOf(iterated: Value): Value[] | undefined {
  if (iterated.kind !== 'made' || iterated.call.name !== 'dict.items') return undefined
  const { receiver } = iterated.call
  if (receiver?.kind !== 'dict') return undefined
  return [...receiver.entries].map(([key, value]) => list([constant(key), value]))
}

/** Returns the values of a loop that builds a list of layers with different sizes; `undefined` if one round represents all. */
export function roundsOf(
  iterated: Value,
  { left, body }: { left: SyntaxNode; body: SyntaxNode },
): readonly Value[] | undefined {
  const values = constantsIn(iterated)
  if (values === undefined || values.length === 0 || values.length > LAYERS_MAX) return undefined
  const nodes = [...nodesOf(body)]
  const variables = new Set([...nodesOf(left)].map(({ text }) => text))
  const uses = nodes.some(({ type, text }) => type === 'identifier' && variables.has(text))
  const counts = nodes.some(
    (node) => node.type === 'augmented_assignment' && childAt(node, 'right')?.type !== 'list',
  )
  return uses || counts ? values : undefined
}

/** Whether a loop's body adds to a list or applies new layers, always reaches its end, and trains nothing. */
export const buildsList = (body: SyntaxNode, scope: Scope): boolean => {
  const nodes = [...nodesOf(body)]
  return (
    nodes.some(
      (node) =>
        (node.type === 'augmented_assignment' && childAt(node, 'right')?.type === 'list') ||
        // `Dense(64)(x)`
        (node.type === 'call' && childAt(node, 'function')?.type === 'call') ||
        (node.type === 'attribute' && BUILDING.has(childAt(node, 'attribute')?.text ?? '')),
    ) &&
    !nodes.some(({ type }) => LEAVING.has(type)) &&
    !trains(body, { scope, self: undefined })
  )
}

const BUILDING = new Set(['append', 'extend', 'add_module', 'insert', 'add_argument'])
const LEAVING = new Set(['break_statement', 'continue_statement', 'return_statement'])

function constantsIn(value: Value): readonly Value[] | undefined {
  if (value.kind === 'list') {
    const isPlain = (each: Value): boolean =>
      each.kind === 'constant' || (each.kind === 'list' && each.items.every(isPlain))
    return value.items.every(isPlain) ? value.items : undefined
  }
  if (value.kind !== 'made') return undefined
  const entries = entriesOf(value)
  if (entries !== undefined) return constantsIn(list(entries))
  const { name, positional } = value.call
  if (name === 'range') {
    const [first, second, third] = positional.map(numberOf)
    const [start, end] = positional.length > 1 ? [first, second] : [0, first]
    const step = positional.length > 2 ? third : 1
    if (start === undefined || end === undefined || step === undefined || step === 0) return undefined
    const length = Math.min(Math.max(0, Math.ceil((end - start) / step)), LAYERS_MAX + 1)
    return Array.from({ length }, (_, at) => constant(start + at * step))
  }
  if (name === 'reversed') return constantsIn(positional[0] ?? unknown())?.toReversed()
  if (name !== 'enumerate' && name !== 'zip') return undefined
  const lists = positional.map(constantsIn)
  if (lists.length === 0 || lists.some((each) => each === undefined)) return undefined
  const length = Math.min(...lists.map((each) => each!.length))
  return Array.from({ length }, (_, at) =>
    list([...(name === 'enumerate' ? [constant(at)] : []), ...lists.map((each) => each![at]!)]),
  )
}

/** `itertools.count()` */
export function isEndless(iterated: Value): boolean {
  return iterated.kind === 'made' && iterated.call.name === 'itertools.count'
}
