/**
 * Instants on the clocks of time zones. Their rules come from the JavaScript engine and change with its version: they are applied outside of
 * workflows, and the result is recorded.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from './time'

/** @experimental */
export interface WallTime {
  /** `YYYY-MM-DD` */
  date: string
  hour: number
  minute: number
}

/** Returns the start of a day in a zone: midnight, or the first minute that exists. */
export function startOfDay(date: string, zone: string): number {
  return instantOf({ date, hour: 0, minute: 0 }, zone).atMs
}

/**
 * Returns the instant of a wall clock's time. A time that the change to summer time skips becomes later by that change; of a time that
 * occurs twice, the first one counts.
 */
export function instantOf({ date, hour, minute }: WallTime, zone: string): { atMs: number; note?: string } {
  const wallMs = Date.parse(date) + hour * HOUR_MS + minute * MINUTE_MS
  const [before, after] = [offsetMs(wallMs - DAY_MS, zone), offsetMs(wallMs + DAY_MS, zone)]
  const fitting = [...new Set([before, after])].filter((offset) => offsetMs(wallMs - offset, zone) === offset)
  const time = `${pad(hour)}:${pad(minute)}`
  if (fitting.length === 0) {
    const atMs = wallMs - before
    const shown = new Date(atMs + offsetMs(atMs, zone)).toISOString().slice(11, 16)
    return { atMs, note: `${time} does not exist on that day in ${zone}: ${shown} is used.` }
  }
  const atMs = wallMs - Math.max(...fitting)
  if (fitting.length === 1) return { atMs }
  return { atMs, note: `${time} occurs twice on that day in ${zone}: the first one is used.` }
}

function pad(number: number): string {
  return String(number).padStart(2, '0')
}

const FORMATS = new Map<string, Intl.DateTimeFormat>()

/** Making a formatter takes longer than using it. */
function formatOf(zone: string): Intl.DateTimeFormat {
  const known = FORMATS.get(zone)
  if (known !== undefined) return known
  const numeric = 'numeric' as const
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  })
  FORMATS.set(zone, made)
  return made
}

/** Returns how far a zone's clocks are ahead of UTC. */
function offsetMs(atMs: number, zone: string): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  ) as Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>
  const { year, month, day, hour, minute, second } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(atMs / 1_000) * 1_000
}

/** Whether the engine knows a time zone. */
export function isZone(zone: string): boolean {
  try {
    return formatOf(zone) !== undefined
  } catch {
    return false
  }
}

/** An instant on the clocks of a zone: `2027-04-05 06:00 (UTC+2)`. */
export function formatInZone(atMs: number, zone: string): string {
  const offset = offsetMs(atMs, zone)
  const text = new Date(atMs + offset).toISOString()
  const sign = offset < 0 ? '-' : '+'
  const hours = Math.floor(Math.abs(offset) / HOUR_MS)
  const minutes = Math.round((Math.abs(offset) % HOUR_MS) / MINUTE_MS)
  return `${text.slice(0, 10)} ${text.slice(11, 16)} (UTC${sign}${hours}${minutes === 0 ? '' : `:${pad(minutes)}`})`
}

/** The day of an instant on the clocks of a zone. */
export function dateInZone(atMs: number, zone: string): string {
  return new Date(atMs + offsetMs(atMs, zone)).toISOString().slice(0, 10)
}
