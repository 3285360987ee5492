import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import type { HoldState, HoldOutcome } from '../../../core/reservation/activities'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { judgeHold } from '../../../planner/reserving/hold'
import { INTENT, NOW_MS, ownedOf, without } from './facts'

const ACTIVE = ownedOf({ phase: 'active', free: 4, startsAtMs: NOW_MS - DAY_MS })
const HOURLY: OwnedReservation = {
  ...without(ACTIVE, 'endsAtMs'),
  kind: 'hourly',
  idleMicroUsdPerHour: microUsd(2),
}

function look(
  reservation: OwnedReservation,
  held: Partial<HoldState> = {},
  elapsedMs = 10 * MINUTE_MS,
): HoldOutcome {
  return judgeHold({
    reservation,
    reservationId: INTENT,
    rule: {},
    elapsedMs,
    nowMs: NOW_MS,
    held: {
      state: 'active',
      reservation,
      upfrontMicroUsd: 0,
      idleMicroUsd: 0,
      idleMs: 0,
      misses: 0,
      ...held,
    },
  })
}

describe('news about what is held', () => {
  it('are none while jobs run', () => {
    expect(look({ ...ACTIVE, free: 3 })).not.toHaveProperty('news')
  })

  it('say once in each idle time what it costs and what to do', () => {
    const before = { idleMs: HOUR_MS - 10 * MINUTE_MS, idleMicroUsd: microUsd(7) }
    const first = look(HOURLY, before)
    expect(first.news).toEqual([
      {
        event: 'idle',
        text:
          'No machine has run in cr-1 for 1h. It costs $8.00 per hour; its unused time has cost $8.33 so far. ' +
          `Submit jobs, make it smaller (crucible reservations resize ${INTENT} --count N), or release it (crucible reservations release ${INTENT}).`,
      },
    ])
    expect(look(HOURLY, first.held)).not.toHaveProperty('news')
    expect(look(HOURLY, { ...before, idleMs: before.idleMs - 1 })).not.toHaveProperty('news')
    const used = look({ ...HOURLY, free: 3 }, first.held)
    expect(used.held.idleMs).toBe(0)
    expect(look(HOURLY, { ...used.held, reservation: HOURLY }, HOUR_MS).news).toHaveLength(1)
  })

  it('say how long prepaid capacity is paid for', () => {
    expect(look(ACTIVE, { idleMs: HOUR_MS - 1 }).news).toEqual([
      {
        event: 'idle',
        text: 'No machine has run in cr-1 for 1h 10m. Its 4 × p5 are paid for until 2026-11-05T00:00:00Z: submit jobs.',
      },
    ])
  })

  it('leave idle time to the release if the rule wants that now', () => {
    const held = {
      state: 'active',
      reservation: HOURLY,
      upfrontMicroUsd: 0,
      idleMicroUsd: 0,
      misses: 0,
    } as const
    const outcome = judgeHold({
      reservation: HOURLY,
      reservationId: INTENT,
      elapsedMs: HOUR_MS,
      nowMs: NOW_MS,
      rule: { idleMaxMs: HOUR_MS },
      held: { ...held, idleMs: 0 },
    })
    expect(outcome.next).toBe('release')
    expect(outcome).not.toHaveProperty('news')
  })

  it('say a day before, once, that it begins', () => {
    const early = ownedOf({ startsAtMs: NOW_MS + DAY_MS + 1 })
    const before = look(early, { state: 'scheduled' })
    expect(before).not.toHaveProperty('news')
    expect(before.lookInMs).toBe(1)
    const first = look(ownedOf(), { state: 'scheduled' })
    expect(first.news).toEqual([
      {
        event: 'begins',
        text: '4 × p5 in east-a (cr-1) begin in 1d, at 2026-11-03T00:00:00Z. Have jobs ready: they prefer it to other machines.',
      },
    ])
    expect(look(ownedOf(), first.held)).not.toHaveProperty('news')
    const hourly = look(
      { ...HOURLY, phase: 'scheduled', startsAtMs: NOW_MS + HOUR_MS },
      { state: 'scheduled' },
    )
    expect(hourly.news?.[0]?.text).toContain('It costs money from then on, used or not.')
    expect(look(ownedOf({ phase: 'assessing' }), { state: 'scheduled' })).not.toHaveProperty('news')
  })

  it('say that a payment failed, and what to check', () => {
    const failed = ownedOf({ phase: 'failed', state: 'payment-failed' })
    expect(look(failed, { state: 'unpaid' }).news).toEqual([
      {
        event: 'payment-failed',
        text: "cr-1 failed: the provider reports payment-failed. Nothing is held. Check the account's means of payment.",
      },
    ])
    expect(look(failed, { state: 'scheduled' }).news).toMatchObject([{ event: 'changed-by-provider' }])
  })

  it('say that the provider ends it earlier', () => {
    const reservation = { ...ACTIVE, free: 1, endsAtMs: NOW_MS + HOUR_MS }
    expect(look(reservation, { reservation: { ...ACTIVE, free: 1 } }).news).toEqual([
      {
        event: 'changed-by-provider',
        text: 'The provider now ends cr-1 at 2026-11-02T01:00:00Z instead of 2026-11-05T00:00:00Z.',
      },
    ])
  })
})

describe('capacity that is taken back', () => {
  it.each([
    [
      'before its end',
      { ...ACTIVE, endsAtMs: NOW_MS + DAY_MS },
      /^cr-1 was taken back by the provider, before its end at 2026-11-03T00:00:00Z: it is reported as cancelled\.$/,
    ],
    [
      'by the hour',
      HOURLY,
      /^cr-1 was taken back by the provider or by a person in its account: it is reported/,
    ],
  ] as const)('is reported, as it is not its end: %s', (_, reservation, text) => {
    const outcome = look({ ...reservation, phase: 'ended', state: 'cancelled' }, { state: 'active' })
    expect(outcome).toMatchObject({ next: 'over', message: expect.stringMatching(text) })
    expect(outcome.news).toEqual([{ event: 'changed-by-provider', text: outcome.message }])
  })

  it.each([
    ['at its end', { ...ACTIVE, endsAtMs: NOW_MS + MINUTE_MS }, {}],
    ['once it is given back', HOURLY, { releasedForMs: MINUTE_MS }],
  ] as const)('is only over %s', (_, reservation, held) => {
    const outcome = look({ ...reservation, phase: 'ended', state: 'expired' }, held)
    expect(outcome).toMatchObject({ next: 'over', message: 'cr-1 has ended.' })
    expect(outcome).not.toHaveProperty('news')
  })
})

describe('an extension that is not paid yet', () => {
  const extending = { microUsd: microUsd(5), endsAtMs: NOW_MS + 9 * DAY_MS, boughtAtMs: NOW_MS }
  const held = { extending, upfrontMicroUsd: microUsd(12) }
  const shown = (phase: 'unpaid' | 'paid' | 'failed', changes: object = {}): OwnedReservation => ({
    ...ACTIVE,
    free: 1,
    extension: { phase, endsAtMs: extending.endsAtMs, boughtAtMs: NOW_MS, ...changes },
  })

  it.each([
    ['is not listed', { ...ACTIVE, free: 1 }],
    ['is unpaid', shown('unpaid')],
    ['is hidden by an earlier one that failed', shown('failed', { boughtAtMs: NOW_MS - 1 })],
    ['is hidden by another one', shown('failed', { endsAtMs: NOW_MS })],
  ])('stays so while it %s', (_, reservation) => {
    const outcome = look(reservation, held)
    expect(outcome.held).toMatchObject(held)
    expect(outcome).not.toHaveProperty('news')
  })

  it.each([
    ['its payment', shown('paid')],
    ['the end of the reservation', { ...ACTIVE, free: 1, endsAtMs: extending.endsAtMs }],
  ])('is paid by %s', (_, reservation) => {
    const outcome = look(reservation, held)
    expect(outcome.held.upfrontMicroUsd).toBe(microUsd(12))
    expect(outcome.held).not.toHaveProperty('extending')
    expect(outcome).not.toHaveProperty('news')
  })

  it('costs nothing once its payment failed', () => {
    const outcome = look(shown('failed'), { ...held, extendedMicroUsd: microUsd(8) })
    expect(outcome.held).toMatchObject({ upfrontMicroUsd: microUsd(7), extendedMicroUsd: microUsd(3) })
    expect(outcome.held).not.toHaveProperty('extending')
    expect(outcome.news).toEqual([
      {
        event: 'payment-failed',
        text:
          'The payment of $5.00 for the extension of cr-1 failed: it ends at 2026-11-05T00:00:00Z, as before. ' +
          `Check the account's means of payment. Then: crucible reservations extend ${INTENT}.`,
      },
    ])
  })
})

describe('hourly capacity that the provider could not hold after all', () => {
  it('is no failed payment', () => {
    const failed = { ...HOURLY, phase: 'failed', state: 'failed' } as const
    expect(look(failed, { state: 'unpaid', reservation: { ...HOURLY, phase: 'assessing' } }).news).toEqual([
      { event: 'changed-by-provider', text: 'cr-1 failed: the provider reports failed.' },
    ])
  })
})
