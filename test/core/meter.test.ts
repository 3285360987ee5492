import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { AFFORDABLE_MAX_MS, affordableMs, spend, spendOver } from '../../core/meter'
import { formatUsd, microUsd } from '../../core/money'
import { DAY_MS, formatDuration, HOUR_MS } from '../../core/time'

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

  it('never affords more than there is, and never a whole second less', () => {
    const money = fc.nat({ max: 1e12 })
    const price = fc.integer({ min: 1, max: 1e9 })
    fc.assert(
      fc.property(money, price, (left, perHour) => {
        const ms = affordableMs(left, perHour)!
        expect(spendOver(ms, perHour)).toBeLessThanOrEqual(left)
        if (ms < AFFORDABLE_MAX_MS) expect(spendOver(ms + 1_000, perHour)).toBeGreaterThan(left)
      }),
    )
    expect(affordableMs(5, 0)).toBeNull()
    expect(affordableMs(-5, 3_600)).toBe(0)
  })
})

describe('figures for people', () => {
  it('shows money to the cent, and that a little is not nothing', () => {
    expect([0, 1_500, 10_000, 12_345_678, -2_000_000].map(formatUsd)).toEqual([
      '$0.00',
      '$0.0015',
      '$0.01',
      '$12.35',
      '-$2.00',
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
