import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { costSoFar, spend, spendOver, type Metered } from '../../../core/money/meter'
import { exactUsd, formatUsd, microUsd } from '../../../core/money/money'
import { DAY_MS, formatDuration, HOUR_MS } from '../../../core/time/time'

describe('the meter', () => {
  it('bills by the started second', () => {
    expect(spendOver(HOUR_MS, microUsd(3.06))).toBe(microUsd(3.06))
    expect(spendOver(1, 3_600)).toBe(1)
    expect(spendOver(1_000, 3_600)).toBe(1)
    expect(spendOver(1_001, 3_600)).toBe(2)
    expect(spendOver(0, microUsd(100))).toBe(0)
  })

  it('runs while a stretch is open, and stops with it', () => {
    const usage = { fromAtMs: 1_000, priceMicroUsdPerHour: microUsd(1) }
    expect(spend(usage, 1_000 + HOUR_MS)).toBe(microUsd(1))
    expect(spend({ ...usage, toAtMs: 1_000 + HOUR_MS }, 1_000 + 5 * HOUR_MS)).toBe(microUsd(1))
    // A clock that went back costs nothing rather than earning something.
    expect(spend(usage, 0)).toBe(0)
  })

  it('takes each moment at the price then in force', () => {
    const at = (...changes: [number, number][]): number =>
      spend(
        {
          fromAtMs: 0,
          toAtMs: 2 * HOUR_MS,
          priceMicroUsdPerHour: 100,
          changes: changes.map(([fromAtMs, priceMicroUsdPerHour]) => ({ fromAtMs, priceMicroUsdPerHour })),
        },
        0,
      )
    expect(at()).toBe(200)
    expect(at([HOUR_MS, 50])).toBe(150)
    expect(at([-5, 40], [0, 30], [HOUR_MS / 2, 60], [3 * HOUR_MS, 1_000])).toBe(15 + 90)
    // In no order that a provider would tell: each is in force until the next one.
    expect(at([HOUR_MS, 50], [HOUR_MS / 2, 10])).toBe(100 + 10)
  })

  it('bills no less than the least, at the price in force at the end', () => {
    const usage = { fromAtMs: 0, toAtMs: 1, priceMicroUsdPerHour: 3_600, billedAtLeastMs: 60_000 }
    expect(spend(usage, 0)).toBe(60)
    expect(spend({ ...usage, toAtMs: 60_001 }, 0)).toBe(61)
    const changes = [{ fromAtMs: 30_000, priceMicroUsdPerHour: 7_200 }]
    expect(spend({ ...usage, changes }, 0)).toBe(60)
    expect(spend({ ...usage, toAtMs: 30_001, changes }, 0)).toBe(30 + 60)
    // A price from the end on was never in force.
    expect(spend({ ...usage, toAtMs: 30_000, changes }, 0)).toBe(60)
    expect(spend({ ...usage, toAtMs: 0 }, 0)).toBe(0)
  })

  it('never shows less for a running machine than before', () => {
    const stepMs = fc.constantFrom(undefined, 1_000, 60_000, HOUR_MS)
    const bill = fc.record({
      priceMicroUsdPerHour: fc.integer({ min: 0, max: 50_000_000 }),
      billedAtLeastMs: fc.constantFrom(undefined, 1, 60_000, 10 * 60_000),
      billedInStepsOfMs: stepMs,
    })
    const moments = fc.array(
      fc.record({ afterMs: fc.integer({ min: 1, max: 200_000 }), isReport: fc.boolean() }),
      {
        maxLength: 30,
      },
    )
    fc.assert(
      fc.property(bill, moments, fc.integer({ min: 0, max: 30_000 }), (rounding, steps, slackMs) => {
        const launched = { fromAtMs: 1_000_000, ...rounding }
        let metered: Metered | undefined
        let [nowMs, shown] = [launched.fromAtMs, 0]
        for (const { afterMs, isReport } of steps) {
          nowMs += afterMs
          // The watch counts from the earliest possible start, and without the minimum.
          const { priceMicroUsdPerHour, billedInStepsOfMs } = rounding
          const usage = { fromAtMs: launched.fromAtMs - slackMs, priceMicroUsdPerHour, billedInStepsOfMs }
          if (isReport) metered = { toAtMs: nowMs, costMicroUsd: spend(usage, nowMs), priceMicroUsdPerHour }
          const cost = costSoFar({ ...launched, metered }, nowMs)
          expect(cost).toBeGreaterThanOrEqual(shown)
          shown = cost
        }
      }),
    )
  })

  it('counts the minimum of a running machine from its first moment', () => {
    const bill = { fromAtMs: 0, priceMicroUsdPerHour: 3_600, billedAtLeastMs: 60_000 }
    expect(costSoFar(bill, 1)).toBe(60)
    const metered = { toAtMs: 10_000, costMicroUsd: 10, priceMicroUsdPerHour: 3_600 }
    expect(costSoFar({ ...bill, metered }, 10_000)).toBe(60)
    expect(costSoFar({ ...bill, metered }, 90_000)).toBe(90)
  })

  it('bills by the started step where a provider bills in steps', () => {
    const usage = { fromAtMs: 0, toAtMs: 60_001, priceMicroUsdPerHour: 3_600, billedInStepsOfMs: 60_000 }
    expect(spend(usage, 0)).toBe(120)
    expect(spend({ ...usage, toAtMs: 60_000 }, 0)).toBe(60)
    expect(spend({ ...usage, toAtMs: 1, billedAtLeastMs: 90_000 }, 0)).toBe(120)
    expect(spendOver(1, 3_600, { billedInStepsOfMs: 60_000 })).toBe(60)
  })

  it('adds up without rounding, however long and dear, and is the sum of its stretches', () => {
    const price = fc.nat({ max: 1e9 })
    const path = fc.array(fc.tuple(fc.integer({ min: 1, max: 400 * HOUR_MS }), price), { maxLength: 8 })
    fc.assert(
      fc.property(price, path, fc.nat({ max: 3_000_000 }), (first, steps, seconds) => {
        const toAtMs = seconds * 1_000
        const changes = steps
          .map(([fromAtMs, priceMicroUsdPerHour]) => ({ fromAtMs, priceMicroUsdPerHour }))
          .sort((a, b) => a.fromAtMs - b.fromAtMs)
        const exact = [{ fromAtMs: 0, priceMicroUsdPerHour: first }, ...changes].reduce(
          (sum, step, i, all) => {
            const untilMs = Math.min(toAtMs, all[i + 1]?.fromAtMs ?? toAtMs)
            return sum + BigInt(Math.max(0, untilMs - step.fromAtMs)) * BigInt(step.priceMicroUsdPerHour)
          },
          0n,
        )
        const hour = BigInt(HOUR_MS)
        const usage = { fromAtMs: 0, toAtMs, priceMicroUsdPerHour: first, changes }
        expect(BigInt(spend(usage, 0))).toBe((exact + hour - 1n) / hour)
      }),
    )
  })
})

describe('figures for people', () => {
  it('shows money to the cent, and that a little is not nothing', () => {
    expect([0, 7, -7, 1_784, 1_500, 10_000, 12_345_678, -2_000_000].map(formatUsd)).toEqual([
      '$0.00',
      '<$0.0001',
      '>-$0.0001',
      '$0.0018',
      '$0.0015',
      '$0.01',
      '$12.35',
      '-$2.00',
    ])
  })

  it('writes money exactly where it is read again', () => {
    expect([0, 7, 1_784, 1_500_000, 40_000_000].map(exactUsd)).toEqual([
      '$0.00',
      '$0.000007',
      '$0.001784',
      '$1.50',
      '$40.00',
    ])
  })

  it('shows a duration in its two largest units', () => {
    const shown = [0, 400, 9_000, 12_000, 65_000, 60_000, HOUR_MS, HOUR_MS + 61_000, 3 * DAY_MS + 4 * HOUR_MS]
    expect(shown.map(formatDuration)).toEqual([
      '0s',
      '0.4s',
      '9s',
      '12s',
      '1m 05s',
      '1m',
      '1h',
      '1h 1m',
      '3d 4h',
    ])
  })
})
