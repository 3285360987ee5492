/** What a loop goes through. */
import { constant, list, type Value } from './values'

/** Longer lists are data. */
const ITEMS_MAX = 8

/** The items of a short list of objects, or of the entries of a dictionary of them; `undefined` if a loop over them is like any other. */
export function itemsOf(iterated: Value): readonly Value[] | undefined {
  const items = iterated.kind === 'list' ? iterated.items : entriesOf(iterated)
  if (items === undefined || items.length === 0 || items.length > ITEMS_MAX) return undefined
  const isObject = (value: Value): boolean =>
    value.kind === 'list' ? value.items.some(isObject) : value.kind === 'made' || value.kind === 'instance'
  return items.every(isObject) ? items : undefined
}

function entriesOf(iterated: Value): Value[] | undefined {
  if (iterated.kind !== 'made' || iterated.call.name !== 'dict.items') return undefined
  const { receiver } = iterated.call
  if (receiver?.kind !== 'dict') return undefined
  return [...receiver.entries].map(([key, value]) => list([constant(key), value]))
}

/** `itertools.count()` */
export function isEndless(iterated: Value): boolean {
  return iterated.kind === 'made' && iterated.call.name === 'itertools.count'
}
