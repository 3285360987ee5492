import { expect, it } from '@jest/globals'
import { formatUsd, microUsd } from '../../../core/money/money'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'

it.each([
  [-5, '0s'],
  [0, '0s'],
  [400, '0.4s'],
  [9_900, '9.9s'],
  [9_999, '10.0s'],
  [10_000, '10s'],
  [10_001, '10s'],
  [10_400, '10s'],
  [12 * SECOND_MS, '12s'],
  [59_600, '1m'],
  [65 * SECOND_MS, '1m 05s'],
  [10 * MINUTE_MS, '10m'],
  [HOUR_MS + 30 * SECOND_MS, '1h'],
  [2 * HOUR_MS + 5 * MINUTE_MS, '2h 5m'],
  [3 * DAY_MS + 4 * HOUR_MS + 59 * MINUTE_MS, '3d 4h'],
  [400 * DAY_MS, '400d'],
])('%d ms are shown as %s', (durationMs, words) => {
  expect(formatDuration(durationMs)).toBe(words)
})

it('an instant is shown in UTC, to the second', () => {
  expect(formatInstant(Date.UTC(2026, 10, 21, 9, 30, 0, 999))).toBe('2026-11-21T09:30:00Z')
})

it.each([
  [0, '$0.00'],
  [1.005, '$1.00'],
  [0.01, '$0.01'],
  [0.0099, '$0.0099'],
  [0.0015, '$0.0015'],
  [0.000001, '<$0.0001'],
  [-2.5, '-$2.50'],
  [-0.0015, '-$0.0015'],
  [1234, '$1234.00'],
])('%d dollars are shown as %s', (usd, words) => {
  expect(formatUsd(microUsd(usd))).toBe(words)
})
