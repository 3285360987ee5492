/** Rounds of loops. */
import { argument } from './facts'
import type { Loop } from './flow'
import { alternatives, numberOf, type CallEvent, type Value } from './values'

/** Returns how often a loop runs, unless it stops earlier. */
export function endOf(loop: Loop): number | undefined {
  if (loop.kind === 'while') return boundOf(loop.iterated) ?? leftAfter(loop)
  const range = rangeOf(loop.iterated)
  if (range === undefined) return undefined
  const [first, second] = range.positional
  // The start is that of a run that does not resume, which is the lowest.
  const starts = second === undefined ? [] : alternatives(first!).flatMap((each) => numberOf(each) ?? [])
  const end = numberOf(second ?? first)
  // `range(1, n + 1)` has n rounds, and `range(first, n + 1)` too, whatever a checkpoint says.
  const isUnknown = second !== undefined && starts.length === 0
  const lowest = isUnknown && /\+ *1$/.test(range.argumentTexts[1] ?? '') ? 1 : 0
  const start = starts.length === 0 ? lowest : Math.min(...starts)
  return end === undefined ? undefined : end - (start === 1 ? 1 : 0)
}

/** Returns the count at which a `break` leaves a loop. */
export const leftAfter = ({ breaks }: Loop): number | undefined =>
  breaks.map(({ condition }) => boundOf(condition)).find((bound) => bound !== undefined)

const boundOf = (value: Value): number | undefined =>
  value.kind === 'unknown' ? numberOf(value.bound) : undefined

/** `range(...)`, inside `tqdm` and the like. */
function rangeOf(value: Value): CallEvent | undefined {
  if (value.kind !== 'made') return undefined
  const { method, positional } = value.call
  if (method === 'range' || method === 'trange' || method === 'arange') return value.call
  const first = argument(value.call, 'iterable', 0) ?? positional[0]
  return first === undefined ? undefined : rangeOf(first)
}
