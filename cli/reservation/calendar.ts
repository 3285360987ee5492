/** Weeks of reserved and planned capacity, as lines and as iCalendar. */
import type * as icalLibrary from 'ical-generator'
import { isHeld, type OwnedReservation } from '../../core/reservation/reservation'
import type { KnownReservation } from '../../client/reservation/views'
import { isReservationFinal } from '../../core/reservation/reserving'
import { oneLine } from '../../core/one-line'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import type { Cli } from '../cli'
import { clip } from '../kit/words'

export const WEEK_MS = 7 * DAY_MS

/** Kind of a line: `owned` is active and in use, `idle` active and unused, `bought` in the future, `planned` not bought. */
type CalendarKind = 'owned' | 'idle' | 'bought' | 'planned'

export interface CalendarLine {
  /** Id of the reservation, of owned capacity, or of the run of a schedule. */
  id: string
  kind: CalendarKind
  /** Purpose, for people. */
  title: string
  startsAtMs: number
  /** End; null for capacity that lasts until it is released. */
  endsAtMs: number | null
}

/** A run of a retraining schedule that has not begun. */
export interface PlannedRun {
  schedule: string
  date: string
  opensAtMs: number
  durationMs: number
}

/** Everything that has a place in the weeks to come, by its start. One owned reservation is one line. */
export function calendarLines(
  { statuses, owned, runs }: { statuses: KnownReservation[]; owned: OwnedReservation[]; runs: PlannedRun[] },
  nowMs: number,
): CalendarLine[] {
  const wished = statuses
    .filter(({ state }) => state === null || !isReservationFinal(state))
    .map((status) => lineOfWish(status, nowMs))
  const held = new Set(statuses.map(({ reservation }) => reservation?.id))
  const others = owned
    .filter(({ id, phase }) => isHeld(phase) && !held.has(id))
    .map((one) => lineOfOwned(one, `${one.id}, bought elsewhere`, nowMs))
  const planned = runs.map(({ schedule, date, opensAtMs, durationMs }): CalendarLine => ({
    id: `${schedule}/${date}`,
    kind: 'planned',
    title: `retraining of ${schedule}, ${date}`,
    startsAtMs: opensAtMs,
    endsAtMs: opensAtMs + durationMs,
  }))
  return [...wished, ...others, ...planned].sort(
    (a, b) => a.startsAtMs - b.startsAtMs || a.id.localeCompare(b.id),
  )
}

function lineOfWish(status: KnownReservation, nowMs: number): CalendarLine {
  const { id, purpose, wish, reservation, quote } = status
  const title = [purpose, `${wish.count} × ${wish.types.join(' or ')}`].filter(Boolean).join(': ')
  if (reservation !== undefined) return { ...lineOfOwned(reservation, title, nowMs), id }
  const startsAtMs = quote?.quote.startsAtMs ?? wish.earliestStartAtMs ?? nowMs
  const endsAtMs =
    quote?.quote.endsAtMs ?? (wish.durationMs === undefined ? null : startsAtMs + wish.durationMs)
  return { id, kind: 'planned', title, startsAtMs, endsAtMs }
}

function lineOfOwned(owned: OwnedReservation, title: string, nowMs: number): CalendarLine {
  const { id, phase, free, total, startsAtMs = nowMs, endsAtMs = null } = owned
  const kind = phase !== 'active' ? 'bought' : free >= total ? 'idle' : 'owned'
  return { id, kind, title, startsAtMs, endsAtMs }
}

const MARKS: Readonly<Record<CalendarKind, string>> = { owned: '#', idle: '-', bought: '=', planned: '.' }

/** Draws one character per day, with a space between weeks: `....... ====---`. */
function weeksOf({ kind, startsAtMs, endsAtMs }: CalendarLine, fromMs: number, weeks: number): string {
  const days = Array.from({ length: weeks * 7 }, (_, day) => {
    const [dayMs, nextMs] = [fromMs + day * DAY_MS, fromMs + (day + 1) * DAY_MS]
    return startsAtMs < nextMs && (endsAtMs ?? Infinity) > dayMs ? MARKS[kind] : ' '
  })
  return Array.from({ length: weeks }, (_, week) => days.slice(week * 7, week * 7 + 7).join('')).join('|')
}

const LEGEND = [
  '# in use   - idle   = bought, to come   . planned, not bought',
  'one character per day (UTC)',
]

/** Monday, 0 h UTC, of the week. */
export function mondayOf(nowMs: number): number {
  const day = Math.floor(nowMs / DAY_MS)
  // 1970-01-01 was a Thursday.
  return (day - ((day + 3) % 7)) * DAY_MS
}

/** A calendar has years of four digits (RFC 5545, 3.3.4). */
const ICAL_END_MS = Date.UTC(10_000, 0)

function hasDates({ startsAtMs, endsAtMs }: CalendarLine): boolean {
  return [startsAtMs, endsAtMs ?? startsAtMs].every((atMs) => atMs >= 0 && atMs < ICAL_END_MS - DAY_MS)
}

/** The library writes an id as it is, although it is a text with escapes (RFC 5545, 3.8.4.7). */
function icalId(id: string): string {
  return oneLine(id).replace(/[\\;,]/g, '\\$&')
}

/**
 * Returns lines for calendar programs. Capacity without an end is shown for a day from its start, or from today. A line without valid dates is
 * left out.
 */
function iCalendarOf(lines: readonly CalendarLine[], nowMs: number): string {
  const { default: ical } = require('ical-generator') as typeof icalLibrary
  const calendar = ical({
    name: 'Crucible capacity',
    prodId: { company: 'Crucible', product: 'reservations' },
  })
  for (const { id, kind, title, startsAtMs, endsAtMs } of lines.filter(hasDates)) {
    const endMs = endsAtMs ?? Math.max(startsAtMs, nowMs) + DAY_MS
    calendar.createEvent({
      id: icalId(`${id}@crucible`),
      start: new Date(startsAtMs),
      end: new Date(Math.max(endMs, startsAtMs + HOUR_MS)),
      stamp: new Date(nowMs),
      summary: `${oneLine(title)} (${kind === 'planned' ? 'planned, not bought' : kind})`,
    })
  }
  return calendar.toString()
}

/** A column of titles is no wider than this on a wide terminal, and never narrower than an id needs. */
const TITLE_WIDTH = { most: 60, least: 24 }
/** Width of a week with the bar after it. */
const WEEK_WIDTH = 8

/**
 * Returns how many weeks fit next to a column of titles. A terminal that is too narrow for all of them gets several parts.
 * @internal A test goes over widths of terminals.
 */
export function calendarLayout(
  lines: readonly CalendarLine[],
  { width, weeks }: { width: number; weeks: number },
): { titleWidth: number; weeksInPart: number } {
  const { most, least } = TITLE_WIDTH
  const wanted = Math.min(most, Math.max(...lines.map((line) => labelOf(line).length)))
  const besides = width - (weeks * WEEK_WIDTH - 1) - 1
  const titleWidth = Math.min(wanted, Math.max(least, besides))
  const fitting = Math.floor((width - titleWidth) / WEEK_WIDTH)
  return { titleWidth, weeksInPart: Math.max(1, Math.min(weeks, fitting)) }
}

function labelOf({ id, title }: CalendarLine): string {
  return title.includes(id) ? title : `${id}: ${title}`
}

/** Weeks as columns, one line for each reservation and planned run. */
export function showCalendar(
  cli: Cli,
  lines: readonly CalendarLine[],
  {
    fromMs,
    weeks,
    isICal,
    incomplete = null,
  }: { fromMs: number; weeks: number; isICal: boolean; incomplete?: string | null },
): void {
  const { out } = cli
  if (isICal && !out.isJson) {
    // Lines of iCalendar end with CRLF (RFC 5545).
    for (const line of iCalendarOf(lines, cli.now()).trimEnd().split(/\r?\n/)) out.raw(`${line}\r`)
    const spoilt = lines.filter((line) => !hasDates(line))
    for (const { id } of spoilt) out.warn(`${oneLine(id)} is left out: it has no valid dates.`)
    return
  }
  out.json({ fromMs, weeks, lines, incomplete })
  if (lines.length === 0 && incomplete !== null) return
  if (lines.length === 0) return out.line(`Nothing is reserved or planned in ${weeks} weeks.`)
  const { titleWidth, weeksInPart } = calendarLayout(lines, {
    width: out.isTerminal ? out.width : Infinity,
    weeks,
  })
  for (let week = 0; week < weeks; week += weeksInPart) {
    if (week > 0) out.line()
    const part = { fromMs: fromMs + week * WEEK_MS, weeks: Math.min(weeksInPart, weeks - week) }
    showPart(cli, lines, { ...part, titleWidth })
  }
  for (const line of LEGEND) out.line(line)
}

function showPart(
  { out }: Cli,
  lines: readonly CalendarLine[],
  { fromMs, weeks, titleWidth }: { fromMs: number; weeks: number; titleWidth: number },
): void {
  const day = (atMs: number): string => new Date(atMs).toISOString().slice(5, 10)
  const heads = Array.from({ length: weeks }, (_, week) => day(fromMs + week * WEEK_MS).padEnd(7))
  out.line(`${''.padEnd(titleWidth)} ${heads.join(' ')}`.trimEnd())
  for (const line of lines)
    out.line(
      `${clip(labelOf(line), titleWidth).padEnd(titleWidth)} ${weeksOf(line, fromMs, weeks)}`.trimEnd(),
    )
}
