/** Lengths, starts and sizes of Capacity Blocks ("Capacity Blocks for ML", EC2 user guide, read November 2026). */

const DAY_HOURS = 24
const DAILY_DAYS_MAX = 14
const WEEK_DAYS = 7
export const BLOCK_DAYS_MAX = 182
/** Instances in one block. */
export const BLOCK_COUNT_MAX = 64
/** Instances in all blocks of an Organization on one date. */
export const ORGANIZATION_COUNT_MAX = 256
export const WEEKS_AHEAD_MAX = 8
/** AWS answers one question with at most this many. */
export const OFFERINGS_MAX = 6

/**
 * Returns the shortest length for sale of at least this many days: single days up to 14, then whole weeks. `undefined` beyond the longest.
 */
export function soldDays(days: number): number | undefined {
  const whole = Math.max(1, Math.ceil(days))
  if (whole > BLOCK_DAYS_MAX) return undefined
  return whole <= DAILY_DAYS_MAX ? whole : Math.ceil(whole / WEEK_DAYS) * WEEK_DAYS
}

export function hoursOfDays(days: number): number {
  return days * DAY_HOURS
}
