/** Dates of a calendar rule in a time zone (`zones.ts`). */
import { DAY_MS } from './time'
import { instantOf } from './zones'

/** Sunday is 0, as in `Date`. */
export const WEEKDAYS = [
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
] as const
/** @experimental */
type Weekday = (typeof WEEKDAYS)[number]

/** The day of a month. A day that a month does not have is its last one. @experimental */
export type DayRule =
  { kind: 'date'; day: number | 'last' } | { kind: 'weekday'; weekday: Weekday; nth: 1 | 2 | 3 | 4 | 'last' }

/** Days on which nothing may start, the last one included; as `YYYY-MM-DD`. @experimental */
interface Blackout {
  from: string
  to: string
}

/** @experimental */
export interface CalendarRule {
  /** Months from 1 to 12, ascending. */
  months: readonly number[]
  day: DayRule
  hour: number
  minute: number
  /** A name of the IANA database, such as `Europe/Berlin`. */
  zone: string
  blackouts: readonly Blackout[]
  /** Whether a date in a blackout moves to the next allowed day or is skipped. */
  onBlackout: 'next-day' | 'skip'
}

/** One date that a rule produces. @experimental */
export interface Occurrence {
  /** The day by the rule, as `YYYY-MM-DD`: names the run and its data window. */
  nominal: string
  /** The day after blackouts. */
  date: string
  opensAtMs: number
  /** Sentences that explain each deviation from the rule. */
  notes: string[]
}

/** A date on which nothing happens, and why. @experimental */
export interface SkippedDate {
  nominal: string
  reason: string
}

interface Day {
  year: number
  /** Month, from 1. */
  month: number
  day: number
}

/** Blackouts longer than this are an interruption of the schedule: `pause` is for that. */
export const BLACKOUT_DAYS_MAX = 92

/** Returns the dates of a rule whose windows open within `[fromMs, toMs)`, in order, and the skipped dates. */
export function occurrencesOf(
  rule: CalendarRule,
  fromMs: number,
  toMs: number,
): { dates: Occurrence[]; skipped: SkippedDate[] } {
  const dates: Occurrence[] = []
  const skipped: SkippedDate[] = []
  // Blackouts move a date by months at most.
  const first = dayOf(fromMs - (BLACKOUT_DAYS_MAX + 40) * DAY_MS)
  const last = dayOf(toMs + 2 * DAY_MS)
  for (let year = first.year; year <= last.year; year++) {
    for (const month of rule.months) {
      const found = occurrenceIn(rule, year, month)
      if ('reason' in found) skipped.push(found)
      else dates.push(found)
    }
  }
  const { kept, dropped } = withoutDoubles(dates)
  const isWithin = (atMs: number): boolean => atMs >= fromMs && atMs < toMs
  return {
    dates: kept.filter(({ opensAtMs }) => isWithin(opensAtMs)),
    skipped: [...skipped, ...dropped]
      .filter(({ nominal }) => isWithin(Date.parse(nominal)))
      .sort((a, b) => (a.nominal < b.nominal ? -1 : 1)),
  }
}

function occurrenceIn(rule: CalendarRule, year: number, month: number): Occurrence | SkippedDate {
  const notes: string[] = []
  const nominal = dayIn(rule.day, year, month)
  if (rule.day.kind === 'date' && rule.day.day !== 'last' && rule.day.day > nominal.day)
    notes.push(`The month has no day ${rule.day.day}: its last day is used.`)
  const date = allowedFrom(rule, nominal)
  if (date === undefined)
    return { nominal: textOf(nominal), reason: 'It is in a blackout, and the rule is to skip it.' }
  if (textOf(date) !== textOf(nominal)) notes.push(`A blackout moves it from ${textOf(nominal)}.`)
  const { atMs, note } = instantOf({ date: textOf(date), hour: rule.hour, minute: rule.minute }, rule.zone)
  if (note !== undefined) notes.push(note)
  return { nominal: textOf(nominal), date: textOf(date), opensAtMs: atMs, notes }
}

/** If blackouts move several dates to one day, the latest stays, because its data window is the newest. */
function withoutDoubles(dates: readonly Occurrence[]): { kept: Occurrence[]; dropped: SkippedDate[] } {
  const kept: Occurrence[] = []
  const dropped: SkippedDate[] = []
  for (const date of dates) {
    const before = kept.at(-1)
    if (before !== undefined && before.opensAtMs >= date.opensAtMs) {
      kept.pop()
      dropped.push({
        nominal: before.nominal,
        reason: `A blackout moves it to the day of ${date.nominal}, which takes its place.`,
      })
    }
    kept.push(date)
  }
  return { kept, dropped }
}

function dayIn(rule: DayRule, year: number, month: number): Day {
  const length = daysIn(year, month)
  if (rule.kind === 'date')
    return { year, month, day: rule.day === 'last' ? length : Math.min(rule.day, length) }
  const wanted = WEEKDAYS.indexOf(rule.weekday)
  const firstIs = new Date(Date.UTC(year, month - 1, 1)).getUTCDay()
  const first = 1 + ((wanted - firstIs + 7) % 7)
  const nth = rule.nth === 'last' ? Math.floor((length - first) / 7) : rule.nth - 1
  return { year, month, day: first + 7 * nth }
}

function allowedFrom({ blackouts, onBlackout }: CalendarRule, nominal: Day): Day | undefined {
  let at = nominal
  for (let moved = 0; ; moved++) {
    const text = textOf(at)
    const isForbidden = blackouts.some(({ from, to }) => from <= text && text <= to)
    if (!isForbidden) return at
    if (onBlackout === 'skip' || moved >= BLACKOUT_DAYS_MAX) return undefined
    at = plusDays(at, 1)
  }
}

function daysIn(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

function plusDays({ year, month, day }: Day, days: number): Day {
  return dayOf(Date.UTC(year, month - 1, day + days))
}

/** The day of an instant in UTC. */
function dayOf(atMs: number): Day {
  const date = new Date(atMs)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

function textOf({ year, month, day }: Day): string {
  return new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10)
}

/** Whether a text is a valid date as `YYYY-MM-DD`. */
export function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && asGiven(text)
}

/** `Date.parse` takes 2027-02-31 for the 3rd of March. */
function asGiven(text: string): boolean {
  return new Date(Date.parse(text)).toISOString().slice(0, 10) === text
}

/** Days after a date, as text. */
export function dateAfter(date: string, days: number): string {
  return textOf(plusDays(dayOf(Date.parse(date)), days))
}

export const PERIODS = ['month', 'quarter', 'half-year', 'year'] as const
/** @experimental */
export type Period = (typeof PERIODS)[number]

export const MONTHS_OF: Readonly<Record<Period, number>> = {
  month: 1,
  quarter: 3,
  'half-year': 6,
  year: 12,
}

/** Returns the last whole period before the one that contains a date: its first day, and the first day after it. */
export function periodBefore(date: string, period: Period): { start: string; end: string } {
  const { year, month } = dayOf(Date.parse(date))
  const length = MONTHS_OF[period]
  const first = Math.floor((month - 1) / length) * length
  const monthFrom = (index: number): string => textOf(dayOf(Date.UTC(year, index, 1)))
  return { start: monthFrom(first - length), end: monthFrom(first) }
}

/** `2027-Q1` */
export function quarterOf(date: string): string {
  const { year, month } = dayOf(Date.parse(date))
  return `${year}-Q${Math.ceil(month / 3)}`
}
