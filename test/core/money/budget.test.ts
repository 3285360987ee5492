import { describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import {
  affordableMs,
  attemptBudget,
  budgetReserveMs,
  leftOfBudget,
  paidForMs,
  startReserveMs,
  startsWithinMs,
} from '../../../core/money/budget'
import { spendOver } from '../../../core/money/meter'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { stoppingMs } from '../../../core/time/timing'

/** An amount, the price of an hour, and for how long it pays; the runner is tested with the same. */
const VECTORS = JSON.parse(
  readFileSync(join(__dirname, '..', '..', 'runner', 'golden', 'vectors', 'affordable.json'), 'utf8'),
) as [left: number, perHour: number, ms: number | null][]

const PRICE = { priceMaxMicroUsdPerHour: 3_600 }

describe('the time that money pays for', () => {
  it('never costs more than the money, and never a whole second less', () => {
    const money = fc.nat({ max: 1e12 })
    const price = fc.integer({ min: 1, max: 1e9 })
    fc.assert(
      fc.property(money, price, (left, perHour) => {
        const ms = affordableMs(left, perHour)
        expect(spendOver(ms, perHour)).toBeLessThanOrEqual(left)
        if (ms < 3_650 * DAY_MS) expect(spendOver(ms + 1_000, perHour)).toBeGreaterThan(left)
      }),
    )
  })

  it('is whole steps where a provider bills in steps, and never a step less', () => {
    const money = fc.nat({ max: 1e12 })
    const price = fc.integer({ min: 1, max: 1e9 })
    const step = fc.constantFrom(1_000, 60_000, 900_000, HOUR_MS)
    fc.assert(
      fc.property(money, price, step, (left, perHour, billedInStepsOfMs) => {
        const ms = affordableMs(left, perHour, billedInStepsOfMs)
        expect(ms % billedInStepsOfMs).toBe(0)
        expect(spendOver(ms, perHour, { billedInStepsOfMs })).toBeLessThanOrEqual(left)
        if (ms < 3_650 * DAY_MS)
          expect(spendOver(ms + 1, perHour, { billedInStepsOfMs })).toBeGreaterThan(left)
      }),
    )
    expect(paidForMs({ microUsd: 3_599, ...PRICE, billedInStepsOfMs: HOUR_MS })).toBe(0)
    expect(attemptBudget(5, { ...PRICE, billedInStepsOfMs: HOUR_MS })).toMatchObject({
      billedInStepsOfMs: HOUR_MS,
    })
  })

  it('is the same as on the machine', () => {
    for (const [left, perHour, ms] of VECTORS) expect(affordableMs(left, perHour)).toBe(ms ?? Infinity)
    expect(affordableMs(-5, 3_600)).toBe(0)
  })

  it('has no limit without a price or a budget', () => {
    expect(affordableMs(5, 0)).toBe(Infinity)
    expect(paidForMs(null, 7)).toBe(Infinity)
  })

  it('is that of the unspent rest', () => {
    const budget = { microUsd: 3_600, ...PRICE }
    expect(paidForMs(budget)).toBe(HOUR_MS)
    expect(paidForMs(budget, 1_800)).toBe(HOUR_MS / 2)
    expect(paidForMs(budget, 4_000)).toBe(0)
  })
})

describe('the rest of a budget', () => {
  it('is what ended attempts have not spent, below zero after an overrun', () => {
    expect(leftOfBudget(100, 30)).toBe(70)
    expect(leftOfBudget(100, 130)).toBe(-30)
    expect(leftOfBudget(0, 0)).toBe(0)
    expect(leftOfBudget(undefined, 30)).toBeUndefined()
  })

  it('is for the machine once its data is moved, and never below zero', () => {
    expect(attemptBudget(100, PRICE)).toEqual({ microUsd: 100, ...PRICE })
    expect(attemptBudget(100, { ...PRICE, transferMicroUsd: 30 })).toEqual({ microUsd: 70, ...PRICE })
    expect(attemptBudget(-1, PRICE)).toEqual({ microUsd: 0, ...PRICE })
    expect(attemptBudget(undefined, { ...PRICE, transferMicroUsd: 30 })).toBeNull()
  })

  it('keeps the minute after the power-off of a machine that only our call ends, in whole steps of billing', () => {
    expect(attemptBudget(100, { ...PRICE, isBilledOn: true })).toEqual({ microUsd: 40, ...PRICE })
    expect(attemptBudget(5 * 3_600, { ...PRICE, isBilledOn: true, billedInStepsOfMs: HOUR_MS })).toEqual({
      microUsd: 4 * 3_600,
      ...PRICE,
      billedInStepsOfMs: HOUR_MS,
    })
    expect(attemptBudget(10, { ...PRICE, isBilledOn: true })).toEqual({ microUsd: 0, ...PRICE })
  })
})

it('each reserve of a budget adds up from the durations of an attempt', () => {
  const timing = { drainMs: 100_000, powerOffMs: 10_000, beatMs: 5_000 }
  expect(stoppingMs(timing)).toBe(110_000)
  expect(budgetReserveMs(timing)).toBe(135_000)
  expect(startReserveMs(timing)).toBe(165_000)
  const budget = { microUsd: 3_600, priceMaxMicroUsdPerHour: 3_600 }
  const limits = { seq: 0, deadlineAtMs: null, budget }
  expect(startsWithinMs({ ...timing, startWithinMs: DAY_MS, limits })).toBe(HOUR_MS - 40_000)
})
