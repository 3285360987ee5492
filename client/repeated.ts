import { SECOND_MS } from '../core/time/time'

/** Longest time between reading the clock for the times of a request and sending that request. */
const REQUEST_TAKES_MS = 30 * SECOND_MS

/**
 * A time of a repeated request, which is that of the standing request if both mean the same: `in 30 days` is another instant in each.
 *
 * @param laterMs how much later the repeated request was made
 */
export function asStanding<T extends number | undefined>(was: T, is: T, laterMs: number): T {
  return was !== undefined && is !== undefined && Math.abs(is - was - laterMs) <= REQUEST_TAKES_MS ? was : is
}
