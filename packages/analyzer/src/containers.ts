/** Containers of PyTorch's layers: `Sequential`, `ModuleList`, `ModuleDict`. */
import type { Call, Frame, Interpreter } from './interpreter'
import { list, unknown, type CallEvent, type Value } from './values'

type Made = Extract<Value, { kind: 'made' }>

const CONTAINERS = new Set(['torch.nn.Sequential', 'torch.nn.ModuleList', 'torch.nn.ModuleDict'])
/** Attribute of a container for the values that the program appends to it. */
const APPENDED = '<items>'

export const isContainer = (value: Value | undefined): boolean => containerOf(value) !== undefined

function containerOf(value: Value | undefined): Made | undefined {
  return value?.kind === 'made' && CONTAINERS.has(value.call.name) ? value : undefined
}

/** Returns the members of a container in order, none for other values; the one item of a comprehension stands for all. */
export function membersOf(value: Value | undefined): readonly Value[] {
  const container = containerOf(value)
  if (container === undefined) return []
  const appended = container.attributes.get(APPENDED)
  return [...container.call.positional.flatMap(spread), ...(appended?.kind === 'list' ? appended.items : [])]
}

function spread(value: Value): readonly Value[] {
  if (value.kind === 'list') return value.items.flatMap(spread)
  if (value.kind === 'dict') return [...value.entries.values()]
  if (value.kind === 'unknown') return value.each === undefined ? [] : spread(value.each)
  // `OrderedDict([('conv', Conv2d(...))])`
  if (value.kind === 'made' && value.call.method === 'OrderedDict')
    return value.call.positional.flatMap(spread)
  return value.kind === 'constant' ? [] : [value]
}

/** `layers.append(layer)` and its like; false for other calls. */
export function appendTo({ receiver, method, positional }: CallEvent): boolean {
  const container = containerOf(receiver)
  if (container === undefined || !['append', 'add_module', 'extend', 'insert'].includes(method)) return false
  const before = container.attributes.get(APPENDED)
  const items = [...(before?.kind === 'list' ? before.items : []), ...positional.flatMap(spread)]
  container.attributes.set(APPENDED, list(items))
  return true
}

/** Follows a call of a `Sequential`: each layer is called with the result of the previous one. */
export function callSequence(
  run: Interpreter,
  { callee, node, given }: Call & { callee: Made },
  frame: Frame,
): Value | undefined {
  if (callee.call.name !== 'torch.nn.Sequential') return undefined
  let value = given.positional[0] ?? unknown()
  for (const layer of membersOf(callee)) {
    if (layer.kind !== 'made' && layer.kind !== 'instance' && layer.kind !== 'either') continue
    value = run.dispatch({ callee: layer, node, given: { positional: [value], named: new Map() } }, frame)
  }
  return value
}
