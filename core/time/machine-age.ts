import type { Beat, RunnerOrder } from '../documents'
import { CLOCK_SLACK_MS } from './time'

/** The time that a machine's runner has measured by its monotonic clock, which no step of a wall clock changes. */
export interface OwnTime {
  beat: Pick<Beat, 'uptimeMs' | 'phases'>
  /** Milliseconds since that beat, by a clock that did not step meanwhile. */
  sinceBeatMs: number
  /** From the order to the runner's start by one clock, for a start whose date is not plausible; the longest one if missing. */
  startMs?: number | undefined
}

/** How old a machine is by two dates, and what else limits its age. All in milliseconds. */
export interface DatedAge {
  /** When the machine was launched, or its billing began. */
  fromAtMs: number
  toAtMs: number
  /** A runner that starts later than this runs nothing. */
  startMaxMs: number
}

/** The longest time from a machine's launch, or the beginning of its billing, to the start of its runner. */
export function startMaxMs({
  startWithinMs,
  queueMs = 0,
}: Pick<RunnerOrder, 'startWithinMs' | 'queueMs'>): number {
  return startWithinMs + queueMs
}

/**
 * Whether two dates are as far apart as the machine's own time allows, so that no clock that was set lies between them. The time before
 * the runner's start is known by dates only, and so is every step that is shorter than the longest start.
 */
export function isPlausible(
  { fromAtMs, toAtMs, startMaxMs }: DatedAge,
  { beat, sinceBeatMs }: OwnTime,
): boolean {
  return isStart(toAtMs - fromAtMs - beat.uptimeMs - sinceBeatMs, startMaxMs)
}

/**
 * The later date of a machine's age, on the clock of the earlier one. Dates count, because providers bill by them, unless the machine's own
 * time refutes them; then that time counts.
 */
export function toldAtMs(dated: DatedAge, own: OwnTime | undefined): number {
  if (own === undefined || isPlausible(dated, own)) return dated.toAtMs
  const { fromAtMs, startMaxMs: maxMs } = dated
  const startedAtMs = own.beat.phases?.[0]?.startedAtMs ?? Infinity
  const startMs = [startedAtMs - fromAtMs, own.startMs].find((ms) => ms !== undefined && isStart(ms, maxMs))
  return Math.floor(fromAtMs + Math.max(0, startMs ?? maxMs) + own.beat.uptimeMs + own.sinceBeatMs)
}

function isStart(startMs: number, maxMs: number): boolean {
  return startMs >= -CLOCK_SLACK_MS && startMs <= maxMs + CLOCK_SLACK_MS
}
