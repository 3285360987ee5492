/** The dates of a schedule's runs, and the names under which templates use them. */
import {
  dateAfter,
  occurrencesOf,
  periodBefore,
  quarterOf,
  type Occurrence,
  type SkippedDate,
} from '../time/calendar'
import type { RetrainSpec, RunDates } from './retraining'
import { DAY_MS } from '../time/time'
import { dateInZone } from '../time/zones'

type Calendar = Pick<RetrainSpec, 'calendar' | 'leadMs' | 'data'>

/** A date of the schedule with everything that depends on it. @experimental */
export interface ScheduledRun extends Occurrence {
  /** Start of the run by the schedule. */
  startsAtMs: number
  window: { start: string; end: string }
}

/** The runs that begin within `[fromMs, toMs)`, and the dates without a run. */
export function runsBetween(
  spec: Calendar,
  fromMs: number,
  toMs: number,
): { runs: ScheduledRun[]; skipped: SkippedDate[] } {
  const { dates, skipped } = occurrencesOf(spec.calendar, fromMs + spec.leadMs, toMs + spec.leadMs)
  return { runs: dates.map((date) => scheduledRun(spec, date)), skipped }
}

function scheduledRun(spec: Calendar, date: Occurrence): ScheduledRun {
  return {
    ...date,
    startsAtMs: date.opensAtMs - spec.leadMs,
    window: windowBefore(spec.data, date.nominal),
  }
}

function windowBefore(data: RetrainSpec['data'], date: string): { start: string; end: string } {
  return 'days' in data ? { start: dateAfter(date, -data.days), end: date } : periodBefore(date, data.period)
}

/**
 * Returns the dates of the run that a schedule started at an instant, or of a run started by hand now. A server starts actions in whole
 * seconds.
 */
export function datesOfRun(spec: Calendar, scheduledAtMs: number, nowMs: number): RunDates {
  const { zone } = spec.calendar
  const run = runsBetween(spec, scheduledAtMs - START_SLACK_MS, scheduledAtMs + START_SLACK_MS).runs[0]
  if (run === undefined) {
    const nominal = dateInZone(nowMs, zone)
    return {
      nominal,
      opensAtMs: nowMs,
      zone,
      isByHand: true,
      notes: [],
      window: windowBefore(spec.data, nominal),
    }
  }
  const { nominal, opensAtMs, window, notes } = run
  return { nominal, opensAtMs, zone, window, notes, isByHand: opensAtMs < nowMs }
}

/** A server starts a run within this of its date, in whole seconds. */
export const START_SLACK_MS = 2_000

/** The next runs, at most this many, with the dates that are skipped among them. */
export function nextRuns(
  spec: Calendar,
  nowMs: number,
  count: number,
): { runs: ScheduledRun[]; skipped: SkippedDate[] } {
  const found = runsBetween(spec, nowMs, nowMs + NEXT_YEARS_MAX * 366 * DAY_MS)
  const runs = found.runs.slice(0, count)
  const last = runs.at(-1)?.nominal ?? ''
  return { runs, skipped: found.skipped.filter(({ nominal }) => nominal < last) }
}

/** Beyond this, time zones are guesses. */
const NEXT_YEARS_MAX = 12

/** The values of the names that every template of a run may use. */
export function dateValues(
  id: string,
  { nominal, opensAtMs, zone, window }: RunDates,
): Record<string, string> {
  return {
    'run.id': id,
    ...parts('run.date', dateInZone(opensAtMs, zone)),
    'run.quarter': quarterOf(nominal),
    ...parts('window.start', window.start),
    ...parts('window.end', window.end),
    ...parts('window.last', dateAfter(window.end, -1)),
    'window.quarter': quarterOf(window.start),
  }
}

function parts(name: string, date: string): Record<string, string> {
  const [year = '', month = '', day = ''] = date.split('-')
  return { [name]: date, [`${name}.year`]: year, [`${name}.month`]: month, [`${name}.day`]: day }
}

/** Names of the model that was trained, and of the one in production, for evaluation and promotion. */
export const MODEL_NAMES = [
  'model.job',
  'model.checkpoint',
  'model.digest',
  'model.artifacts',
  'production.job',
  'production.checkpoint',
  'production.digest',
  'production.artifacts',
] as const
