import { describe, expect, it } from '@jest/globals'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import type { PurchaseRule } from '../../../core/reservation/reserving'
import type { HoldState, HoldOutcome } from '../../../core/reservation/activities'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { judgeHold } from '../../../planner/reserving/hold'
import { INTENT, NOW_MS, ownedOf, without } from './facts'

const END_MS = NOW_MS + 3 * DAY_MS
const active = (changes: Partial<OwnedReservation> = {}): OwnedReservation =>
  ownedOf({ phase: 'active', state: 'active', startsAtMs: NOW_MS - DAY_MS, free: 4, ...changes })
/** Four places at $6 an hour each. */
const hourly = (changes: Partial<OwnedReservation> = {}): OwnedReservation => {
  const one = without(active(), 'endsAtMs')
  return { ...one, kind: 'hourly', idleMicroUsdPerHour: 6_000_000, ...changes }
}

interface Look {
  now: OwnedReservation | undefined
  /** The look before; the same if missing. */
  before?: OwnedReservation
  held?: Partial<HoldState>
  rule?: PurchaseRule
  elapsedMs?: number
  nowMs?: number
}
function look({
  now,
  before = now,
  held,
  rule = {},
  elapsedMs = 10 * MINUTE_MS,
  nowMs = NOW_MS,
}: Look): HoldOutcome {
  return judgeHold({
    reservation: now,
    reservationId: INTENT,
    rule,
    elapsedMs,
    nowMs,
    held: {
      state: 'active',
      upfrontMicroUsd: 0,
      idleMicroUsd: 0,
      idleMs: 0,
      misses: 0,
      reservation: before,
      ...held,
    },
  })
}

describe('a held reservation', () => {
  it.each<[OwnedReservation, HoldState['state'], string, number]>([
    [
      ownedOf({ phase: 'unpaid' }),
      'unpaid',
      'cr-1 is bought; the payment is not confirmed yet.',
      5 * MINUTE_MS,
    ],
    [
      ownedOf({ phase: 'assessing' }),
      'scheduled',
      'The provider is checking whether it can hold cr-1.',
      HOUR_MS,
    ],
    [ownedOf(), 'scheduled', 'cr-1 is held and begins 2026-11-03T00:00:00Z.', DAY_MS],
    [
      ownedOf({ phase: 'delayed', startsAtMs: NOW_MS - MINUTE_MS }),
      'scheduled',
      'cr-1 should have begun 2026-11-01T23:59:00Z; the provider is late.',
      MINUTE_MS,
    ],
    [active(), 'active', 'cr-1 is active: 4 of 4 places are free; it ends 2026-11-05T00:00:00Z.', HOUR_MS],
    [hourly({ free: 1 }), 'active', 'cr-1 is active: 1 of 4 places is free.', 10 * MINUTE_MS],
  ])('is held on: %#', (now, state, message, lookInMs) => {
    const outcome = look({ now, held: { misses: 3 } })
    expect(outcome).toMatchObject({
      next: 'hold',
      message,
      lookInMs,
      held: { state, reservation: now, misses: 0 },
    })
  })

  it.each<[OwnedReservation, HoldState['state'], string]>([
    [ownedOf({ phase: 'ending' }), 'ended', 'cr-1 has ended.'],
    [ownedOf({ phase: 'ended', endsAtMs: NOW_MS }), 'ended', 'cr-1 has ended.'],
    [
      ownedOf({ phase: 'failed', state: 'payment-failed' }),
      'failed',
      'cr-1 failed: the provider reports payment-failed.',
    ],
  ])('is over once the provider says so: %#', (now, state, message) => {
    expect(without(look({ now }), 'news')).toEqual({
      next: 'over',
      message,
      lookInMs: 0,
      held: { state, reservation: now, upfrontMicroUsd: 0, idleMicroUsd: 0, idleMs: 0, misses: 0 },
    })
  })

  it.each<[string, OwnedReservation, number]>([
    ['at its start', ownedOf({ startsAtMs: NOW_MS + HOUR_MS }), HOUR_MS],
    ['daily before that', ownedOf({ startsAtMs: NOW_MS + 2 * DAY_MS }), DAY_MS],
    ['after seconds if it is late', ownedOf({ startsAtMs: NOW_MS }), 5 * SECOND_MS],
    ['after as long as it is late', ownedOf({ startsAtMs: NOW_MS - 8 * MINUTE_MS }), 8 * MINUTE_MS],
    ['every ten minutes if it is very late', ownedOf({ startsAtMs: NOW_MS - DAY_MS }), 10 * MINUTE_MS],
    ['at its end', active({ endsAtMs: NOW_MS + MINUTE_MS }), MINUTE_MS],
    ['not more than once a second', active({ endsAtMs: NOW_MS + 1 }), SECOND_MS],
    ['hourly if it should have ended', active({ endsAtMs: NOW_MS }), HOUR_MS],
  ])('is looked at %s', (_, now, lookInMs) => {
    expect(look({ now }).lookInMs).toBe(lookInMs)
  })
})

describe('a reservation that the provider does not list', () => {
  it('is not missed by a look soon after the last one', () => {
    const missed = look({ now: undefined, before: active(), held: { misses: 3 }, elapsedMs: MINUTE_MS })
    expect(missed).toMatchObject({ next: 'hold', held: { misses: 3 } })
  })

  it('is held on, and looked for again', () => {
    expect(look({ now: undefined, before: active(), held: { misses: 2 } })).toMatchObject({
      next: 'hold',
      lookInMs: 10 * MINUTE_MS,
      held: { state: 'active', misses: 3 },
      message: 'The provider does not list the reservation at the moment.',
    })
  })

  it('has failed after four looks', () => {
    expect(look({ now: undefined, before: active(), held: { misses: 3 } })).toMatchObject({
      next: 'over',
      held: { state: 'failed', misses: 4 },
      message: 'The provider no longer reports cr-1, although it should exist.',
    })
  })

  it('has ended once its end has passed', () => {
    const gone = { now: undefined, before: active() }
    expect(look({ ...gone, nowMs: END_MS })).toMatchObject({
      next: 'over',
      message: 'The reservation has ended.',
      held: { state: 'ended' },
    })
    expect(look({ ...gone, nowMs: END_MS - 1 }).next).toBe('hold')
    expect(look({ now: undefined, before: hourly(), nowMs: END_MS }).next).toBe('hold')
  })

  it('still costs its unused places', () => {
    expect(look({ now: undefined, before: hourly({ free: 2 }) }).held.idleMicroUsd).toBe(2_000_000)
  })
})

describe('the cost of unused time', () => {
  const costs = (one: Look): number => look({ ...one, held: { idleMicroUsd: 100 } }).held.idleMicroUsd - 100

  it.each<[string, Look, number]>([
    ['is that of the free places', { now: hourly({ free: 3 }) }, 3_000_000],
    [
      'is that of the places that became free',
      { now: hourly({ free: 3 }), before: hourly({ free: 1 }) },
      3_000_000,
    ],
    [
      'is that of the places that were free',
      { now: hourly({ free: 1 }), before: hourly({ free: 3 }) },
      3_000_000,
    ],
    ['is nothing if all are used', { now: hourly({ free: 0 }) }, 0],
    ['is nothing at the first look', { now: hourly(), elapsedMs: 0 }, 0],
    ['is nothing before it was active', { now: hourly(), before: hourly({ phase: 'scheduled' }) }, 0],
    ['is that until its end', { now: hourly({ phase: 'ended', free: 0 }), before: hourly() }, 4_000_000],
    ['is nothing for prepaid capacity', { now: active({ idleMicroUsdPerHour: 6_000_000 }) }, 0],
    ['is unknown without a price', { now: hourly({ idleMicroUsdPerHour: 0 }) }, 0],
    ['is rounded up', { now: hourly({ free: 1 }), elapsedMs: 1 }, 2],
  ])('%s', (_, one, microUsd) => {
    expect(costs(one)).toBe(microUsd)
  })

  it('is unknown if the provider names no price', () => {
    const now = without(hourly(), 'idleMicroUsdPerHour')
    expect(costs({ now })).toBe(0)
    expect(look({ now, rule: { spendMaxMicroUsd: 0 } }).next).toBe('hold')
  })
})

describe('the time without use', () => {
  const idleMs = (one: Look): number => look({ ...one, held: { idleMs: HOUR_MS } }).held.idleMs

  it.each<[string, Look, number]>([
    ['grows while no place is used', { now: active() }, HOUR_MS + 10 * MINUTE_MS],
    ['is over when one is used', { now: active({ free: 3 }) }, 0],
    ['is over when it is not active', { now: ownedOf({ phase: 'ended', free: 4 }) }, 0],
    ['does not include the time before it was active', { now: active(), before: ownedOf() }, HOUR_MS],
    ['does not include the time when one was used', { now: active(), before: active({ free: 3 }) }, HOUR_MS],
  ])('%s', (_, one, expected) => {
    expect(idleMs(one)).toBe(expected)
  })
})

describe('hourly capacity', () => {
  it('is released once it was unused for as long as the rule allows', () => {
    const one: Look = { now: hourly(), held: { idleMs: 50 * MINUTE_MS }, rule: { idleMaxMs: HOUR_MS } }
    expect(look(one)).toMatchObject({
      next: 'release',
      lookInMs: MINUTE_MS,
      message: 'It was unused for 1h: it is released.',
    })
    expect(look({ ...one, elapsedMs: 10 * MINUTE_MS - 1 }).next).toBe('hold')
    expect(look({ ...one, rule: {} }).next).toBe('hold')
  })

  it('is not released for the time before it began', () => {
    const before = hourly({ phase: 'scheduled', free: 0 })
    expect(look({ now: hourly(), before, elapsedMs: DAY_MS, rule: { idleMaxMs: HOUR_MS } }).next).toBe('hold')
  })

  // All four places cost $4 until the next look.
  it.each<[number, HoldOutcome['next']]>([
    [14_000_000, 'hold'],
    [13_999_999, 'release'],
  ])('is released before its unused time costs more than the limit: %d', (spendMaxMicroUsd, next) => {
    const held = { idleMicroUsd: 5_000_000, upfrontMicroUsd: 1_000_000 }
    const outcome = look({ now: hourly(), held, rule: { spendMaxMicroUsd } })
    expect(outcome.next).toBe(next)
    if (next === 'release')
      expect(outcome.message).toBe('Its unused time has cost $10.00 of at most $14.00: it is released.')
  })

  it('never costs more than the limit, whatever is used from one look to the next', () => {
    const free = [4, 0, 4, 4, 1, 0, 0, 4]
    const rule = { spendMaxMicroUsd: 21_000_000 }
    let { held, next } = look({ now: hourly(), elapsedMs: 0, rule })
    for (let at = 0; next === 'hold' && at < 100; at++)
      ({ held, next } = look({
        now: hourly({ free: free[at % free.length]! }),
        held,
        before: held.reservation!,
        rule,
      }))
    expect(next).toBe('release')
    expect(held.idleMicroUsd).toBeLessThanOrEqual(21_000_000)
    expect(held.idleMicroUsd).toBeGreaterThan(21_000_000 - 4_000_000)
  })

  it.each<[string, OwnedReservation]>([
    ['before it is active', hourly({ phase: 'scheduled' })],
    ['if it is prepaid', active()],
  ])('is never released %s', (_, now) => {
    const rule = { idleMaxMs: 1, spendMaxMicroUsd: 0 }
    expect(look({ now, held: { idleMs: DAY_MS, idleMicroUsd: 9 }, rule }).next).toBe('hold')
  })
})

describe('a warning', () => {
  const warningOf = (one: Look): string | undefined => look(one).warning

  it('says that the provider ends prepaid capacity earlier', () => {
    const now = active({ endsAtMs: END_MS - HOUR_MS, usableUntilMs: END_MS - 2 * HOUR_MS })
    expect(warningOf({ now, before: active() })).toBe(
      'The provider now ends cr-1 at 2026-11-04T23:00:00Z instead of 2026-11-05T00:00:00Z: usable until 2026-11-04T22:00:00Z.',
    )
    expect(warningOf({ now: active({ endsAtMs: END_MS - HOUR_MS }), before: active() })).toBe(
      'The provider now ends cr-1 at 2026-11-04T23:00:00Z instead of 2026-11-05T00:00:00Z.',
    )
    const ended = ownedOf({ phase: 'ended', endsAtMs: NOW_MS })
    expect(look({ now: ended, before: active() })).toMatchObject({
      next: 'over',
      warning: expect.stringContaining('now ends cr-1 at 2026-11-02T00:00:00Z') as unknown,
    })
  })

  it('says that prepaid capacity has lost places', () => {
    expect(warningOf({ now: active({ total: 3, free: 3 }), before: active() })).toBe(
      'cr-1 has 3 places now instead of 4.',
    )
  })

  it.each<[string, Look]>([
    ['at the first look', { now: active(), held: {} }],
    ['of a later end', { now: active({ endsAtMs: END_MS + 1 }), before: active() }],
    ['of more places', { now: active({ total: 5 }), before: active() }],
    ['of an end of hourly capacity', { now: hourly({ endsAtMs: END_MS }), before: hourly() }],
    ['of fewer places of hourly capacity', { now: hourly({ total: 3, free: 3 }), before: hourly() }],
    ['of less than an hour without use', { now: active(), held: { idleMs: 50 * MINUTE_MS - 1 } }],
  ])('is not given %s', (_, one) => {
    expect(warningOf(one)).toBeUndefined()
  })

  it('says after an hour that nothing uses it, and what that costs', () => {
    const held = { idleMs: 50 * MINUTE_MS, idleMicroUsd: 20_000_000 }
    expect(warningOf({ now: active(), held })).toBe('No machine has run in cr-1 for 1h. It is paid for.')
    expect(warningOf({ now: hourly(), held })).toBe(
      'No machine has run in cr-1 for 1h. It costs $24.00 per hour, $24.00 so far.',
    )
  })
})

describe('what was given back', () => {
  const released = (more: Partial<Look> = {}): HoldOutcome =>
    look({ now: hourly(), held: { releasedForMs: 0, idleMs: HOUR_MS }, rule: { idleMaxMs: 1 }, ...more })

  it('is neither given back again nor idle while lists still show it', () => {
    const { held, next, message } = released()
    expect({ held, next }).toMatchObject({
      held: { state: 'releasing', idleMicroUsd: 0, releasedForMs: 10 * MINUTE_MS },
      next: 'hold',
    })
    expect(message).toBe('cr-1 is released; the provider still lists it.')
  })

  it('is judged again, with what it has cost, once no list can be as late', () => {
    const { held, next } = released({ held: { releasedForMs: 10 * MINUTE_MS }, rule: {} })
    expect(held).toMatchObject({ state: 'active', idleMicroUsd: 8_000_000 })
    expect(held).not.toHaveProperty('releasedForMs')
    expect(next).toBe('hold')
  })

  it('is over once it is gone, and costs nothing from its return on', () => {
    for (const now of [undefined, hourly({ phase: 'ended' })])
      expect(released({ now, before: hourly() })).toMatchObject({
        next: 'over',
        held: { state: 'ended', idleMicroUsd: 0 },
      })
  })
})

describe('the time between the last look and the return', () => {
  const idle = (now: OwnedReservation | undefined): HoldOutcome =>
    look({ now, before: hourly(), held: { releasedForMs: -4 * MINUTE_MS } })

  it.each([
    ['no longer listed', undefined],
    ['ended', hourly({ phase: 'ended', free: 0 })],
    ['still listed as held', hourly()],
  ])('counts, and nothing after it: %s', (_, now) => {
    expect(idle(now).held.idleMicroUsd).toBe(1_600_000)
  })

  it('counts once', () => {
    const { held } = idle(hourly())
    expect(held.releasedForMs).toBe(6 * MINUTE_MS)
    expect(look({ now: undefined, before: hourly(), held }).held.idleMicroUsd).toBe(1_600_000)
  })

  it('counts in full with the rest if the return had no effect', () => {
    const late = { now: hourly(), held: { releasedForMs: -4 * MINUTE_MS }, elapsedMs: 20 * MINUTE_MS }
    expect(look(late).held).toMatchObject({ state: 'active', idleMicroUsd: 8_000_000 })
  })
})

describe('a look at a bad moment', () => {
  it('counts the last known price if it cannot be read: unknown is not free', () => {
    const now = without(hourly(), 'idleMicroUsdPerHour')
    const { held, next } = look({ now, before: hourly(), rule: { spendMaxMicroUsd: 7_000_000 } })
    expect(held).toMatchObject({ idleMicroUsd: 4_000_000, reservation: { idleMicroUsdPerHour: 6_000_000 } })
    expect(next).toBe('release')
  })

  it('takes nothing back if a clock was set back', () => {
    const { held } = look({ now: hourly(), held: { idleMicroUsd: 5, idleMs: 7 }, elapsedMs: -HOUR_MS })
    expect(held).toMatchObject({ idleMicroUsd: 5, idleMs: 7 })
  })
})

describe('the end of an extension that is bought', () => {
  const extendedToMs = END_MS + DAY_MS
  const extension = { phase: 'paid', endsAtMs: extendedToMs, boughtAtMs: 1 } as const

  it.each<[string, Partial<OwnedReservation>, number | undefined]>([
    ['is kept while lists show the one before', {}, extendedToMs],
    [
      'is kept while lists show one before whose payment failed',
      { extension: { ...extension, phase: 'failed' } },
      extendedToMs,
    ],
    ['is forgotten once the extension is listed', { extension }, undefined],
    ['is forgotten once it is the end', { endsAtMs: extendedToMs }, undefined],
  ])('%s', (_, changes, kept) => {
    const { held } = look({ now: active(changes), held: { extendedToMs } })
    expect(held.extendedToMs).toBe(kept)
  })

  it('is forgotten if its payment fails', () => {
    const extending = { microUsd: 5, endsAtMs: extendedToMs, boughtAtMs: 1 }
    const now = active({ extension: { ...extension, phase: 'failed' } })
    const { held } = look({ now, held: { extendedToMs, extending, upfrontMicroUsd: 5 } })
    expect(held).not.toHaveProperty('extendedToMs')
  })
})
