import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import type { HoldState, JobInReservation } from '../../../core/reservation/activities'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import {
  isExtensionDue,
  judgeExtension,
  overrunsOf,
  type ExtensionFacts,
} from '../../../planner/reserving/extend'
import { judgeHold } from '../../../planner/reserving/hold'
import { INTENT, NOW_MS, ownedOf, quoteOf, without } from './facts'

const END_MS = NOW_MS + 4 * HOUR_MS
const HELD = ownedOf({
  phase: 'active',
  free: 1,
  startsAtMs: NOW_MS - DAY_MS,
  endsAtMs: END_MS,
  usableUntilMs: END_MS - HOUR_MS,
})
const RULE = { extendMaxMicroUsd: microUsd(100) }
const job = (jobId: string, leftMs: number | null): JobInReservation => ({
  jobId,
  attempt: 1,
  left: leftMs === null ? null : { ms: leftMs, basis: 'pace' },
})
/** Done an hour after the last usable moment. */
const LATE = job('late', 4 * HOUR_MS)
const extension = (days: number, usd: number, changes: object = {}): ReturnType<typeof quoteOf> =>
  quoteOf({
    extends: 'cr-1',
    startsAtMs: END_MS,
    endsAtMs: END_MS + days * DAY_MS,
    upfrontMicro: microUsd(usd),
    ...changes,
  })

const judge = (changes: Partial<ExtensionFacts> = {}): ReturnType<typeof judgeExtension> =>
  judgeExtension({
    reservation: HELD,
    rule: RULE,
    extendedMicroUsd: 0,
    jobs: [LATE],
    nowMs: NOW_MS,
    quotes: [extension(1, 60)],
    elsewhere: { late: { offer: 'ec2/spot/p5', costMicroUsd: microUsd(80) } },
    ...changes,
  })

describe('a decision about an extension', () => {
  const due = (changes: Partial<OwnedReservation> = {}, rule: object = RULE): boolean =>
    isExtensionDue({ ...HELD, ...changes }, { rule, nowMs: NOW_MS })

  it('is due near the end, and before it is too late to buy', () => {
    expect(due()).toBe(true)
    expect(due({ endsAtMs: NOW_MS + 6 * HOUR_MS })).toBe(true)
    expect(due({ endsAtMs: NOW_MS + 6 * HOUR_MS + 1 })).toBe(false)
    expect(due({ endsAtMs: NOW_MS + HOUR_MS + 5 * MINUTE_MS })).toBe(true)
    expect(due({ endsAtMs: NOW_MS + HOUR_MS + 5 * MINUTE_MS - 1 })).toBe(false)
  })

  it('is due only if the rule allows one, of prepaid capacity that is active', () => {
    expect(due({}, {})).toBe(false)
    expect(due({ kind: 'hourly' })).toBe(false)
    expect(due({ phase: 'scheduled' })).toBe(false)
    const endless = without(HELD, 'endsAtMs')
    expect(isExtensionDue(endless, { rule: RULE, nowMs: NOW_MS })).toBe(false)
  })

  it.each([
    ['unpaid', false],
    ['failed', false],
    ['paid', true],
  ] as const)('after an extension that is %s is due: %s', (phase, isDue) => {
    expect(due({ extension: { phase, endsAtMs: END_MS } })).toBe(isDue)
  })

  it('is asked for by the look, unless an extension waits for its payment', () => {
    const held: HoldState = {
      state: 'active',
      reservation: HELD,
      upfrontMicroUsd: 0,
      idleMicroUsd: 0,
      idleMs: 0,
      misses: 0,
    }
    const look = (rule: object, more: object = {}): object =>
      judgeHold({
        reservation: HELD,
        reservationId: INTENT,
        rule,
        elapsedMs: MINUTE_MS,
        nowMs: NOW_MS,
        held: { ...held, ...more },
      })
    expect(look(RULE)).toMatchObject({ isEndNear: true, next: 'hold' })
    expect(look({})).toEqual(expect.not.objectContaining({ isEndNear: expect.anything() }))
    const extending = { microUsd: 1, endsAtMs: END_MS + DAY_MS }
    expect(look(RULE, { extending })).toEqual(expect.not.objectContaining({ isEndNear: expect.anything() }))
  })
})

describe('the jobs that would not be done in time', () => {
  it('are those that are done after the last usable moment', () => {
    const jobs = [job('fits', 3 * HOUR_MS), job('unknown', null), job('over', 3 * HOUR_MS + 1), LATE]
    expect(overrunsOf(HELD, jobs, NOW_MS).map(({ job: { jobId }, overMs }) => [jobId, overMs])).toEqual([
      ['over', 1],
      ['late', HOUR_MS],
    ])
    const noCutOff = without(HELD, 'usableUntilMs')
    expect(overrunsOf(noCutOff, [LATE], NOW_MS)).toEqual([])
  })
})

describe('an extension', () => {
  it('is not bought if everything is done in time', () => {
    expect(judge({ jobs: [job('fits', 3 * HOUR_MS)] })).toEqual({
      kind: 'fits',
      message: 'Every job in cr-1 is expected to be done before its end.',
    })
  })

  it('is bought if it costs at most what moving costs', () => {
    expect(judge()).toEqual({
      kind: 'extend',
      durationMs: DAY_MS,
      upfrontMaxMicroUsd: microUsd(60),
      message:
        'late would be done 1h after the end of cr-1: it is extended to 2026-11-03T04:00:00Z for $60.00, because moving costs $80.00.',
    })
    expect(judge({ quotes: [extension(1, 80)] }).kind).toBe('extend')
    expect(judge({ quotes: [extension(1, 81)] })).toEqual({
      kind: 'move',
      message:
        'late would be done 1h after the end of cr-1; an extension costs $81.00, and moving costs $80.00: jobs save before the end and continue elsewhere.',
    })
  })

  it('counts the moves of all jobs that it is for', () => {
    const jobs = [LATE, job('later', 5 * HOUR_MS), job('fits', 1)]
    const place = { offer: 'ec2/spot/p5', costMicroUsd: microUsd(45) }
    const elsewhere = { late: place, later: place, fits: { ...place, costMicroUsd: microUsd(1_000) } }
    expect(judge({ jobs, elsewhere, quotes: [extension(1, 90)] })).toMatchObject({
      kind: 'extend',
      message: expect.stringMatching(
        /^late, later would be done 2h after .* moving costs \$90\.00/,
      ) as unknown,
    })
    expect(judge({ jobs, elsewhere, quotes: [extension(1, 91)] }).kind).toBe('move')
  })

  it('is bought for a job without another place, within the limit', () => {
    const quotes = [extension(1, 100)]
    for (const elsewhere of [{}, { late: null }] as Record<string, null>[])
      expect(judge({ elsewhere, quotes })).toMatchObject({
        kind: 'extend',
        message: expect.stringMatching(/because no other offer has room for all of them\.$/) as unknown,
      })
    expect(judge({ elsewhere: {}, quotes: [extension(1, 101)] })).toMatchObject({ kind: 'move' })
  })

  it('keeps the limit for all extensions together', () => {
    expect(judge({ extendedMicroUsd: microUsd(40) }).kind).toBe('extend')
    expect(judge({ extendedMicroUsd: microUsd(41) })).toMatchObject({
      kind: 'move',
      message: expect.stringMatching(
        /costs \$60\.00, and \$59\.00 of the limit for extensions are left/,
      ) as unknown,
    })
    expect(judge({ extendedMicroUsd: microUsd(101) }).message).toContain('and $0.00 of the limit')
    expect(judge({ rule: {} }).kind).toBe('move')
  })

  it('is the cheapest that is long enough, the shorter one of two', () => {
    const jobs = [job('late', 3 * HOUR_MS + DAY_MS + 1)]
    const quotes = [extension(1, 10), extension(3, 60), extension(2, 60), extension(2, 70)]
    expect(judge({ jobs, quotes })).toMatchObject({ kind: 'extend', durationMs: 2 * DAY_MS })
    const exact = [job('late', 3 * HOUR_MS + DAY_MS)]
    expect(judge({ jobs: exact, quotes })).toMatchObject({ durationMs: DAY_MS })
  })

  it.each([
    ['of another reservation', { extends: 'cr-2' }],
    ['in another currency', { currency: 'EUR' }],
  ])('%s is not bought', (_, changes) => {
    expect(judge({ quotes: [extension(1, 60, changes)] })).toMatchObject({
      kind: 'move',
      message: expect.stringMatching(/no extension is for sale: jobs save before the end/) as unknown,
    })
  })
})
