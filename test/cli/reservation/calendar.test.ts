import { describe, expect, it } from '@jest/globals'
import type { Cli } from '../../../cli/cli'
import { withFreshPlaces } from '../../../cli/reservation/surveys'
import {
  calendarLayout,
  calendarLines,
  mondayOf,
  showCalendar,
  type CalendarLine,
} from '../../../cli/reservation/calendar'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import type { KnownReservation } from '../../../client/reservation/views'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'

/** A Thursday. */
const NOW = Date.UTC(2026, 10, 26, 12)

const OWNED: OwnedReservation = {
  id: 'cr-1',
  kind: 'prepaid',
  phase: 'active',
  state: 'active',
  type: 'v100',
  region: 'r',
  zone: 'a',
  total: 2,
  free: 2,
  startsAtMs: NOW - DAY_MS,
  endsAtMs: NOW + DAY_MS,
  isTargeted: true,
  isShared: false,
}
const WISHED: KnownReservation = {
  id: 'res-1',
  owner: 'ada',
  state: 'active',
  message: '',
  submittedAtMs: NOW,
  alternatives: [],
  wish: { backend: 'b', kind: 'prepaid', types: ['v100'], count: 2, durationMs: 2 * DAY_MS },
  rule: {},
  spentMicroUsd: 0,
  idleMicroUsd: 0,
}

/** The lines that the command prints. */
function shown(
  lines: CalendarLine | CalendarLine[],
  { fromMs, isICal }: { fromMs: number; isICal: boolean },
): string[] {
  const printed: string[] = []
  const print = (text: string): void => void printed.push(text)
  const out = { isJson: false, isTerminal: false, json: () => {}, line: print, raw: print, warn: print }
  showCalendar({ out, now: () => NOW } as unknown as Cli, [lines].flat(), { fromMs, weeks: 2, isICal })
  return printed
}

function lines(statuses: KnownReservation[], owned: OwnedReservation[] = []): CalendarLine[] {
  return calendarLines({ statuses, owned, runs: [] }, NOW)
}

describe('the calendar of reservations', () => {
  it.each([
    ['idle', { free: 2 }],
    ['owned', { free: 1 }],
    ['bought', { phase: 'scheduled' as const }],
  ])('says that capacity is %s', (kind, state) => {
    expect(lines([], [{ ...OWNED, ...state }])).toMatchObject([{ id: 'cr-1', kind }])
  })

  it('has one line for a wish and what it holds, and none for what is over', () => {
    const held = { ...WISHED, reservation: OWNED }
    expect(lines([held], [OWNED])).toMatchObject([{ id: 'res-1', kind: 'idle', title: '2 × v100' }])
    expect(lines([{ ...WISHED, state: 'rejected' }], [{ ...OWNED, phase: 'ended' }])).toEqual([])
  })

  it('plans a wish for its offer, or for its own time', () => {
    const { startsAtMs, endsAtMs } = lines([{ ...WISHED, state: 'searching' }])[0]!
    expect([startsAtMs, endsAtMs]).toEqual([NOW, NOW + 2 * DAY_MS])
  })

  it('marks each day that capacity covers, from Monday', () => {
    const fromMs = mondayOf(NOW)
    expect(new Date(fromMs).toISOString()).toBe('2026-11-23T00:00:00.000Z')
    const line: CalendarLine = {
      id: 'x',
      kind: 'bought',
      title: '',
      startsAtMs: NOW,
      endsAtMs: NOW + 5 * DAY_MS,
    }
    expect(shown(line, { fromMs, isICal: false })[1]).toBe('x:     ====|==')
    expect(shown({ ...line, endsAtMs: null }, { fromMs, isICal: false })[1]).toBe('x:     ====|=======')
  })

  it.each([
    [80, 13, { titleWidth: 24, weeksInPart: 7 }],
    [120, 13, { titleWidth: 24, weeksInPart: 12 }],
    [160, 13, { titleWidth: 42, weeksInPart: 13 }],
    [80, 4, { titleWidth: 42, weeksInPart: 4 }],
    [Infinity, 13, { titleWidth: 42, weeksInPart: 13 }],
    [20, 13, { titleWidth: 24, weeksInPart: 1 }],
  ])('fits a terminal of %d columns with %d weeks', (width, weeks, layout) => {
    const line: CalendarLine = {
      id: 'res-ranker-2027',
      kind: 'idle',
      title: 'training: 2 × p5.48xlarge',
      startsAtMs: NOW,
      endsAtMs: null,
    }
    expect(calendarLayout([line], { width, weeks })).toEqual(layout)
  })

  it('shows the places that are free now, not those of the last look', () => {
    const held = { ...WISHED, reservation: OWNED }
    const survey = { account: '1', quotes: [], unseen: [], owned: [{ ...OWNED, free: 1 }] }
    const [fresh] = withFreshPlaces([held], [survey])
    expect(fresh!.reservation).toMatchObject({ free: 1, total: 2 })
    expect(lines([fresh!])).toMatchObject([{ kind: 'owned' }])
    expect(withFreshPlaces([held], [])).toEqual([held])
  })

  it('is read by calendar programs', () => {
    const line: CalendarLine = {
      id: 'res-1',
      kind: 'planned',
      title: 'a; b, c',
      startsAtMs: NOW,
      endsAtMs: NOW + HOUR_MS,
    }
    expect(shown(line, { fromMs: 0, isICal: true }).map((text) => text.trimEnd())).toEqual(
      expect.arrayContaining([
        'UID:res-1@crucible',
        'DTSTART:20261126T120000Z',
        'DTEND:20261126T130000Z',
        'SUMMARY:a\\; b\\, c (planned\\, not bought)',
      ]),
    )
  })
})

describe('the iCalendar text', () => {
  it('has the line ends of its standard, and no control character of a title', () => {
    const line: CalendarLine = {
      id: 'a',
      kind: 'bought',
      title: 'b\u001b[2J',
      startsAtMs: NOW,
      endsAtMs: NOW,
    }
    const printed = shown(line, { fromMs: 0, isICal: true })
    expect(printed.every((each) => each.endsWith('\r'))).toBe(true)
    expect(printed.join('\n')).not.toContain('\u001b')
    expect(printed.at(-1)).toBe('END:VCALENDAR\r')
  })

  it('has texts in iCalendar that end no line and no value', () => {
    const line: CalendarLine = {
      id: 'res\r\nBEGIN:VEVENT;a,b\\c\u001b[31m',
      kind: 'planned',
      title: `ü${'x'.repeat(200)}; y, \\ z\nDTEND:1`,
      startsAtMs: NOW,
      endsAtMs: NOW + DAY_MS,
    }
    const printed = shown(line, { fromMs: NOW, isICal: true })
    expect(printed.filter((one) => one.startsWith('BEGIN:VEVENT'))).toHaveLength(1)
    expect(printed.every((one) => one.endsWith('\r') && Buffer.byteLength(one) <= 76)).toBe(true)
    const text = printed.join('\n').replaceAll('\r\n ', '').replaceAll('\r', '')
    expect(text).toContain('UID:res␍␊BEGIN:VEVENT\\;a\\,b\\\\c␛[31m@crucible\n')
    expect(text).toContain('x\\; y\\, \\\\ z␊DTEND:1 (planned\\, not bought)\n')
  })

  it.each([NaN, Infinity, -1, 1e17, 9e15])(
    'leaves out a line that begins at %s, and keeps the others',
    (startsAtMs) => {
      const good: CalendarLine = { id: 'good', kind: 'idle', title: 't', startsAtMs: NOW, endsAtMs: null }
      const printed = shown([{ ...good, id: 'bad', startsAtMs }, good], { fromMs: NOW, isICal: true })
      expect(printed.filter((one) => one.startsWith('UID:'))).toEqual(['UID:good@crucible\r'])
      expect(printed.at(-1)).toBe('bad is left out: it has no valid dates.')
    },
  )
})
