/** AWS's rules for the dates and sizes of Capacity Blocks. */
import { ApiError } from '../wire/errors'

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
const WEEK_HOURS = 7 * 24
const DAILY_HOURS_MAX = 14 * 24
/** The longest block, extensions included. */
export const HOURS_MAX = 182 * 24
/** The largest block, in instances. */
export const COUNT_MAX = 64
/** The earliest start from now. */
export const LEAD_MS = 30 * MINUTE_MS
/** The latest start from now. */
export const AHEAD_MS = 8 * 7 * DAY_MS
/** Time of the day, in UTC, at which every block ends. */
const END_OF_DAY_MS = 11 * HOUR_MS + 30 * MINUTE_MS

/** Refuses a duration that is not sold. */
export function checkHours(hours: number, field: string): void {
  const isSold =
    hours >= 24 && hours <= HOURS_MAX && hours % (hours <= DAILY_HOURS_MAX ? 24 : WEEK_HOURS) === 0
  if (!isSold)
    throw new ApiError(
      'InvalidParameterValue',
      `Invalid value '${hours}' for ${field}: 1 to 14 days, or multiples of 7 days up to 182.`,
    )
}

/** The next end of a block at or after an instant. */
export function endOfDay(atMs: number): number {
  const day = Math.floor(atMs / DAY_MS) * DAY_MS + END_OF_DAY_MS
  return day >= atMs ? day : day + DAY_MS
}
