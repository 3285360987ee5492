import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import {
  isDate,
  occurrencesOf,
  periodBefore,
  quarterOf,
  type CalendarRule,
  type Occurrence,
  type SkippedDate,
} from '../../../core/time/calendar'
import { DAY_MS } from '../../../core/time/time'
import { dateInZone, formatInZone, isZone, startOfDay } from '../../../core/time/zones'

const QUARTERLY: CalendarRule = {
  months: [1, 4, 7, 10],
  day: { kind: 'date', day: 1 },
  hour: 6,
  minute: 0,
  zone: 'Europe/Berlin',
  blackouts: [],
  onBlackout: 'next-day',
}

function inYear(year: number, rule: Partial<CalendarRule>): { dates: Occurrence[]; skipped: SkippedDate[] } {
  return occurrencesOf({ ...QUARTERLY, ...rule }, Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1))
}

const daysOf = (found: Occurrence[]): string[] => found.map(({ date }) => date)

describe('the dates of a calendar rule', () => {
  it('are those of an independent calendar (calendar-oracle.py), for rules drawn at random in 20 zones', () => {
    const cases = JSON.parse(readFileSync(join(__dirname, 'calendar-cases.json'), 'utf8')) as {
      rule: Omit<CalendarRule, 'blackouts' | 'onBlackout'>
      opensAtMs: number[]
    }[]
    expect(cases.length).toBeGreaterThan(100)
    for (const { rule, opensAtMs } of cases) {
      const [from, to] = [opensAtMs[0]!, opensAtMs.at(-1)! + 1]
      const { dates } = occurrencesOf({ ...rule, blackouts: [], onBlackout: 'skip' }, from, to)
      expect({ rule, opensAtMs: dates.map((date) => date.opensAtMs) }).toEqual({ rule, opensAtMs })
    }
  })

  it('keep the wall clock of the zone through summer time', () => {
    const { dates } = inYear(2027, {})
    expect(dates.map(({ opensAtMs }) => formatInZone(opensAtMs, 'Europe/Berlin'))).toEqual([
      '2027-01-01 06:00 (UTC+1)',
      '2027-04-01 06:00 (UTC+2)',
      '2027-07-01 06:00 (UTC+2)',
      '2027-10-01 06:00 (UTC+2)',
    ])
  })

  it.each([
    [2, 'does not exist on that day in Europe/Berlin: 03:30 is used', '2027-03-28T01:30:00.000Z', 3],
    [2, 'occurs twice on that day in Europe/Berlin: the first one is used', '2027-10-31T00:30:00.000Z', 10],
  ])('say what becomes of %s:30 when it %s', (hour, words, instant, month) => {
    const { dates } = inYear(2027, {
      months: [month],
      day: { kind: 'weekday', weekday: 'sunday', nth: 'last' },
      hour,
      minute: 30,
    })
    expect(dates.map(({ opensAtMs }) => new Date(opensAtMs).toISOString())).toEqual([instant])
    expect(dates[0]!.notes).toEqual([`02:30 ${words}.`])
  })

  it('use the last day of a month that is too short, also in a leap year, and say so', () => {
    const rule = { months: [2, 4, 5], day: { kind: 'date', day: 31 } } as const
    expect(daysOf(inYear(2027, rule).dates)).toEqual(['2027-02-28', '2027-04-30', '2027-05-31'])
    expect(daysOf(inYear(2028, rule).dates)).toEqual(['2028-02-29', '2028-04-30', '2028-05-31'])
    expect(inYear(2027, rule).dates.map(({ notes }) => notes.length)).toEqual([1, 1, 0])
  })

  it('move out of a blackout to the next allowed day, or are skipped by rule', () => {
    const blackouts = [
      { from: '2027-04-01', to: '2027-04-05' },
      { from: '2027-04-06', to: '2027-04-06' },
    ]
    const moved = inYear(2027, { blackouts })
    expect(moved.dates[1]).toMatchObject({ nominal: '2027-04-01', date: '2027-04-07' })
    expect(moved.dates[1]!.notes).toEqual(['A blackout moves it from 2027-04-01.'])
    const skipped = inYear(2027, { blackouts, onBlackout: 'skip' })
    expect(daysOf(skipped.dates)).toEqual(['2027-01-01', '2027-07-01', '2027-10-01'])
    expect(skipped.skipped).toMatchObject([{ nominal: '2027-04-01' }])
  })

  it('become one where blackouts move several to the same day: the newest stays', () => {
    const { dates, skipped } = inYear(2027, {
      months: [5, 6, 7, 8],
      blackouts: [{ from: '2027-05-01', to: '2027-07-10' }],
    })
    expect(daysOf(dates)).toEqual(['2027-07-11', '2027-08-01'])
    expect(dates[0]!.nominal).toBe('2027-07-01')
    expect(skipped.map(({ nominal }) => nominal)).toEqual(['2027-05-01', '2027-06-01'])
  })

  it('are found in any part of the time, each exactly once', () => {
    const all = occurrencesOf(QUARTERLY, Date.UTC(2026, 0, 1), Date.UTC(2030, 0, 1)).dates
    const parts = Array.from({ length: 48 }, (_, month) =>
      occurrencesOf(QUARTERLY, Date.UTC(2026, month, 1), Date.UTC(2026, month + 1, 1)),
    ).flatMap(({ dates }) => dates)
    expect(parts).toEqual(all)
    expect(all).toHaveLength(16)
  })

  it('are found from their instant on, and not before', () => {
    const opensAtMs = Date.parse('2027-04-01T04:00:00Z')
    const between = (from: number, to: number) => occurrencesOf(QUARTERLY, from, to).dates.length
    expect(between(opensAtMs, opensAtMs + 1)).toBe(1)
    expect(between(opensAtMs - DAY_MS, opensAtMs)).toBe(0)
  })

  it('are found on the other side of a new year, in zones ahead and after long blackouts', () => {
    const ahead = { ...QUARTERLY, zone: 'Pacific/Auckland' }
    const [first] = occurrencesOf(ahead, Date.UTC(2027, 11, 31), Date.UTC(2027, 11, 31, 18)).dates
    expect(first).toMatchObject({ nominal: '2028-01-01', opensAtMs: Date.UTC(2027, 11, 31, 17) })
    const moved = {
      ...QUARTERLY,
      months: [12],
      day: { kind: 'date', day: 31 } as const,
      blackouts: [{ from: '2027-12-31', to: '2028-03-30' }],
    }
    const day = Date.UTC(2028, 2, 31)
    expect(daysOf(occurrencesOf(moved, day, day + DAY_MS).dates)).toEqual(['2028-03-31'])
  })

  it('move by three months at most, 92 days, and are skipped beyond', () => {
    const until = (to: string) => inYear(2027, { months: [4], blackouts: [{ from: '2027-04-01', to }] })
    expect(daysOf(until('2027-07-01').dates)).toEqual(['2027-07-02'])
    const { dates, skipped } = until('2027-07-02')
    expect([dates, skipped.map(({ nominal }) => nominal)]).toEqual([[], ['2027-04-01']])
  })

  it('without a run are in order, and only those of the time in question', () => {
    const { dates, skipped } = inYear(2027, {
      months: [1, 3, 5, 6, 11],
      blackouts: [
        { from: '2027-05-01', to: '2027-06-10' },
        { from: '2027-11-01', to: '2028-03-20' },
        { from: '2026-11-01', to: '2027-02-10' },
        { from: '2028-05-01', to: '2028-11-20' },
      ],
    })
    expect(daysOf(dates)).toEqual(['2027-02-11', '2027-03-01', '2027-06-11'])
    expect(skipped.map(({ nominal }) => nominal)).toEqual(['2027-05-01', '2027-11-01'])
  })
})

describe('periods and zones', () => {
  it.each([
    ['2027-01-01', 'quarter', '2026-10-01', '2027-01-01'],
    ['2027-04-17', 'quarter', '2027-01-01', '2027-04-01'],
    ['2028-03-31', 'month', '2028-02-01', '2028-03-01'],
    ['2027-06-30', 'half-year', '2026-07-01', '2027-01-01'],
    ['2027-12-31', 'year', '2026-01-01', '2027-01-01'],
  ] as const)('%s: the last whole %s before it is from %s to %s', (date, period, start, end) => {
    expect(periodBefore(date, period)).toEqual({ start, end })
  })

  it('names quarters, zones and days', () => {
    expect([quarterOf('2027-03-31'), quarterOf('2027-10-01')]).toEqual(['2027-Q1', '2027-Q4'])
    expect(['Europe/Berlin', 'UTC', 'Mars/Olympus'].map(isZone)).toEqual([true, true, false])
    expect(['2028-02-29', '2027-02-29', '2027-2-1', 'soon'].map(isDate)).toEqual([true, false, false, false])
    expect(['2027-13-01', '12027-01-01', '2027-01-01T00:00'].map(isDate)).toEqual([false, false, false])
    const midnight = startOfDay('2027-07-01', 'Asia/Kathmandu')
    expect(formatInZone(midnight, 'Asia/Kathmandu')).toBe('2027-07-01 00:00 (UTC+5:45)')
    expect(dateInZone(midnight, 'Asia/Kathmandu')).toBe('2027-07-01')
    expect(dateInZone(midnight - 1, 'Asia/Kathmandu')).toBe('2027-06-30')
    expect(formatInZone(Date.UTC(2027, 0, 1), 'UTC')).toBe('2027-01-01 00:00 (UTC+0)')
    expect(formatInZone(Date.UTC(2027, 0, 1), 'America/St_Johns')).toBe('2026-12-31 20:30 (UTC-3:30)')
  })
})
