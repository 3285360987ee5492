import { describe, expect, it } from '@jest/globals'
import type { CalendarRule } from '../../../core/time/calendar'
import { dateValues, datesOfRun, nextRuns, runsBetween } from '../../../core/retraining/run-dates'
import type { RetrainSpec } from '../../../core/retraining/retraining'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../core/time/time'

const RULE: CalendarRule = {
  months: [1, 4, 7, 10],
  day: { kind: 'date', day: 1 },
  hour: 6,
  minute: 0,
  zone: 'Europe/Berlin',
  blackouts: [],
  onBlackout: 'next-day',
}
type Spec = Pick<RetrainSpec, 'calendar' | 'leadMs' | 'data'>
const spec = (changes: Partial<CalendarRule> = {}, data: Spec['data'] = { period: 'quarter' }): Spec => ({
  calendar: { ...RULE, ...changes },
  leadMs: 2 * DAY_MS,
  data,
})

/** Six in the morning in Berlin, in summer. */
const OPENS = Date.parse('2027-04-01T04:00:00Z')
const STARTS = OPENS - 2 * DAY_MS
const FIRST_QUARTER = { start: '2027-01-01', end: '2027-04-01' }

describe('the runs of a schedule', () => {
  it('begin ahead of their windows, at an instant that only one stretch of time has', () => {
    expect(runsBetween(spec(), STARTS, STARTS + 1).runs).toEqual([
      {
        nominal: '2027-04-01',
        date: '2027-04-01',
        notes: [],
        opensAtMs: OPENS,
        startsAtMs: STARTS,
        window: FIRST_QUARTER,
      },
    ])
    expect(runsBetween(spec(), STARTS - DAY_MS, STARTS).runs).toEqual([])
    expect(runsBetween(spec(), STARTS + 1, STARTS + DAY_MS).runs).toEqual([])
  })

  it('train on the days before their date, where the file counts days', () => {
    const [run] = runsBetween(spec({}, { days: 30 }), STARTS, STARTS + 1).runs
    expect(run!.window).toEqual({ start: '2027-03-02', end: '2027-04-01' })
  })

  it('to come are as many as asked for, with the dates that are skipped among them', () => {
    const skipping = spec({
      onBlackout: 'skip',
      blackouts: [
        { from: '2027-04-01', to: '2027-04-10' },
        { from: '2028-01-01', to: '2028-01-10' },
      ],
    })
    const next = (from: string, count: number) => {
      const { runs, skipped } = nextRuns(skipping, Date.parse(from), count)
      return [runs, skipped].map((dates) => dates.map(({ nominal }) => nominal))
    }
    expect(next('2026-12-01', 2)).toEqual([['2027-01-01', '2027-07-01'], ['2027-04-01']])
    expect(next('2026-12-01', 3)).toEqual([['2027-01-01', '2027-07-01', '2027-10-01'], ['2027-04-01']])
    expect(next('2026-12-01', 4)[1]).toEqual(['2027-04-01', '2028-01-01'])
    expect(next('2027-05-01', 1)).toEqual([['2027-07-01'], []])
    expect(next('2026-12-01', 0)).toEqual([[], []])
  })
})

describe('the dates of a run', () => {
  const RUN = {
    nominal: '2027-04-01',
    opensAtMs: OPENS,
    zone: 'Europe/Berlin',
    window: FIRST_QUARTER,
    notes: [],
  }

  it.each([0, 2 * SECOND_MS, -2 * SECOND_MS + 1])('are those of the schedule, %d ms from its start', (ms) => {
    expect(datesOfRun(spec(), STARTS + ms, STARTS + HOUR_MS)).toEqual({ ...RUN, isByHand: false })
  })

  it('are those of a start by hand at any other moment: of today, in the zone of the schedule', () => {
    const nowMs = Date.parse('2027-05-10T22:30:00Z')
    const byHand = {
      nominal: '2027-05-11',
      opensAtMs: nowMs,
      zone: 'Europe/Berlin',
      isByHand: true,
      notes: [],
      window: FIRST_QUARTER,
    }
    for (const ms of [2 * SECOND_MS + 1, -2 * SECOND_MS])
      expect(datesOfRun(spec(), STARTS + ms, nowMs)).toEqual(byHand)
  })

  it('are those of a run that is made up for, which waits for no window, once that has opened', () => {
    const isByHand = (nowMs: number): boolean => datesOfRun(spec(), STARTS, nowMs).isByHand
    expect([OPENS, OPENS + 1].map(isByHand)).toEqual([false, true])
  })

  it('have names for templates', () => {
    const window = { start: '2026-10-01', end: '2027-01-01' }
    // Late in the evening in UTC, and the next day in Berlin.
    const opensAtMs = Date.parse('2027-01-01T23:30:00Z')
    const dates = {
      nominal: '2027-01-01',
      opensAtMs,
      zone: 'Europe/Berlin',
      window,
      isByHand: false,
      notes: [],
    }
    expect(dateValues('run-1', dates)).toEqual({
      'run.id': 'run-1',
      'run.date': '2027-01-02',
      'run.date.year': '2027',
      'run.date.month': '01',
      'run.date.day': '02',
      'run.quarter': '2027-Q1',
      'window.start': '2026-10-01',
      'window.start.year': '2026',
      'window.start.month': '10',
      'window.start.day': '01',
      'window.end': '2027-01-01',
      'window.end.year': '2027',
      'window.end.month': '01',
      'window.end.day': '01',
      'window.last': '2026-12-31',
      'window.last.year': '2026',
      'window.last.month': '12',
      'window.last.day': '31',
      'window.quarter': '2026-Q4',
    })
  })
})
