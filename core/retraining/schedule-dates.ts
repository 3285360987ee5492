/** The dates of a schedule as Temporal's calendar entries: each date is written out (docs/decisions/0055-schedules-have-written-out-dates.md). */
import { runsBetween } from './run-dates'
import type { RetrainSpec } from './retraining'
import { DAY_MS, MINUTE_MS } from '../time/time'
import { formatInZone } from '../time/zones'

/** How far ahead dates are written. A run that finds a third of them used up writes new ones, as does each update. */
export const WRITTEN_AHEAD_MS = 3 * 366 * DAY_MS

/** Outages up to this long lose no run; the run then begins late, and its window is as soon as possible. */
export const CATCH_UP_MS = 45 * DAY_MS

const MONTHS = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const

/** Calendar entry of one instant, in UTC. */
export interface CalendarEntry {
  year: number
  month: (typeof MONTHS)[number]
  dayOfMonth: number
  hour: number
  minute: number
  second: number
  comment: string
}

/** The starts of all runs from `fromMs` until `WRITTEN_AHEAD_MS` after `nowMs`. */
export function calendarEntries(
  spec: Pick<RetrainSpec, 'calendar' | 'leadMs' | 'data'>,
  { fromMs, nowMs }: { fromMs: number; nowMs: number },
): CalendarEntry[] {
  const { runs } = runsBetween(spec, fromMs, nowMs + WRITTEN_AHEAD_MS)
  return runs.map(({ startsAtMs, opensAtMs }) => {
    const date = new Date(startsAtMs)
    return {
      year: date.getUTCFullYear(),
      month: MONTHS[date.getUTCMonth()]!,
      dayOfMonth: date.getUTCDate(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
      comment: `window opens ${formatInZone(opensAtMs, spec.calendar.zone)}`,
    }
  })
}

/** Start of the written dates. Recent dates stay, so that a server that was down still starts their runs. */
export function writtenFrom(nowMs: number): number {
  return nowMs - CATCH_UP_MS - MINUTE_MS
}
