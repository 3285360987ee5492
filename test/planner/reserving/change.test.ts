import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import { shareOfLimit, type PurchaseRule } from '../../../core/reservation/reserving'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { whyNotChanged, whyNotSplit, type ChangeFacts } from '../../../planner/reserving/change'
import { NOW_MS, ownedOf, without } from './facts'

/** Four machines by the hour at $2 each, one of them in use. */
const HELD = {
  ...without(ownedOf({ kind: 'hourly', phase: 'active', total: 4, free: 3 }), 'endsAtMs'),
  idleMicroUsdPerHour: microUsd(2),
}

const why = (changes: Partial<ChangeFacts> = {}): string | undefined =>
  whyNotChanged({ reservation: HELD, rule: {}, spentMicroUsd: 0, nowMs: NOW_MS, ...changes })

describe('a change of an hourly reservation', () => {
  it('is refused for prepaid capacity, and before it is active', () => {
    expect(why({ reservation: ownedOf({ phase: 'active' }), count: 5 })).toMatch(/^cr-1 is prepaid: /)
    for (const phase of ['scheduled', 'ending', 'assessing'] as const)
      expect(why({ reservation: { ...HELD, phase }, count: 5 })).toBe(
        `cr-1 is ${phase}: it can be changed once it is active.`,
      )
  })

  it('to another start needs one that lies ahead, and a later one before the end', () => {
    const startsAtMs = NOW_MS + DAY_MS
    const ahead = { ...HELD, phase: 'scheduled' as const, startsAtMs }
    const start = (atMs: number, reservation: ChangeFacts['reservation'] = ahead) =>
      why({ startsAtMs: atMs, reservation })
    expect(start(startsAtMs + 1)).toBeUndefined()
    expect(start(startsAtMs)).toMatch(/^cr-1 begins 2026-11-03T00:00:00Z, and can only begin later/)
    expect(start(startsAtMs + 1, { ...ahead, endsAtMs: startsAtMs + 1 })).toMatch(/^cr-1 ends .* before/)
    expect(start(startsAtMs + 1, { ...ahead, phase: 'active' })).toMatch(/^cr-1 is active: only a start/)
    expect(start(startsAtMs + 1, ownedOf({ phase: 'scheduled' }))).toMatch(/^cr-1 is prepaid/)
  })

  it('keeps the places that are in use', () => {
    expect(why({ count: 1 })).toBeUndefined()
    expect(why({ count: 2, reservation: { ...HELD, free: 1 } })).toBe(
      '3 of the 4 places of cr-1 are in use, so it cannot have 2. Migrate jobs first, or ask for at least 3.',
    )
    expect(why({ count: 3, reservation: { ...HELD, free: 1 } })).toBeUndefined()
  })

  it('to an end in the past is refused, and to none or a later one is not', () => {
    expect(why({ endsAtMs: NOW_MS })).toMatch(
      /^2026-11-02T00:00:00Z has passed\. .*crucible reservations release/,
    )
    expect(why({ endsAtMs: NOW_MS + 1 })).toBeUndefined()
    expect(why({ endsAtMs: null })).toBeUndefined()
  })

  it('to more machines must fit the price limit; other changes need not', () => {
    const rule: PurchaseRule = { machineHourMaxMicroUsd: microUsd(2) - 1 }
    expect(why({ count: 5, rule })).toBe(
      'A machine of cr-1 costs $2.00 per hour now, above the limit of $2.00.',
    )
    expect(why({ count: 5, rule: { machineHourMaxMicroUsd: microUsd(2) } })).toBeUndefined()
    expect(why({ count: 4, rule })).toBeUndefined()
    expect(why({ count: 3, rule })).toBeUndefined()
  })

  it('to more machines of an unknown price is refused', () => {
    const reservation = without(HELD, 'idleMicroUsdPerHour')
    expect(why({ count: 5, reservation })).toBe('The price of p5 is unknown, so cr-1 does not grow.')
    expect(why({ count: 4, reservation })).toBeUndefined()
  })

  it.each([
    ['an hour of it without an end', {}, microUsd(10), 'in an hour'],
    [
      'all of it until its end',
      { reservation: { ...HELD, endsAtMs: NOW_MS + 2 * HOUR_MS } },
      microUsd(20),
      'until 2026-11-02T02:00:00Z',
    ],
    ['all of it until a new end', { endsAtMs: NOW_MS + DAY_MS }, microUsd(240), 'until 2026-11-03T00:00:00Z'],
  ] as const)('to more machines must leave the limit enough for %s', (_, changes, needed, words) => {
    const spentMicroUsd = microUsd(7)
    const rule = { spendMaxMicroUsd: needed + spentMicroUsd }
    expect(why({ count: 5, spentMicroUsd, rule, ...changes })).toBeUndefined()
    const less = { spendMaxMicroUsd: needed + spentMicroUsd - 1 }
    const refusal = why({ count: 5, spentMicroUsd, rule: less, ...changes })
    expect(refusal).toContain(`5 machines cost $${needed / 1e6}.00 ${words} if they stay unused`)
    expect(refusal).toContain(`Raise it: --max-spend ${(needed + spentMicroUsd) / 1e6}.`)
  })

  it('says that a limit leaves nothing, never less', () => {
    expect(why({ count: 5, spentMicroUsd: microUsd(9), rule: { spendMaxMicroUsd: microUsd(8) } })).toContain(
      'the limit of $8.00 leaves $0.00.',
    )
  })
})

describe('a split', () => {
  it('takes free places and leaves one at least', () => {
    expect(whyNotSplit(HELD, 3)).toBeUndefined()
    expect(whyNotSplit({ ...HELD, free: 2 }, 3)).toBe(
      'Only 2 of the 4 places of cr-1 are free, and 3 are requested. Migrate jobs first, or split fewer off.',
    )
    expect(whyNotSplit({ ...HELD, free: 4 }, 4)).toBe('cr-1 has 4 machines, and keeps at least one.')
    expect(whyNotSplit(ownedOf({ phase: 'active', free: 4 }), 1)).toMatch(/is prepaid/)
    expect(whyNotSplit({ ...HELD, phase: 'scheduled' }, 1)).toMatch(/once it is active/)
  })

  it('takes its share of what the limit leaves', () => {
    const split = { total: 4, count: 1, spentMicroUsd: 20 }
    expect(shareOfLimit({ spendMaxMicroUsd: 101 }, split)).toBe(20)
    expect(shareOfLimit({ spendMaxMicroUsd: 10 }, split)).toBe(0)
    expect(shareOfLimit({}, split)).toBeUndefined()
  })
})
