import { expect, it } from '@jest/globals'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import * as assumptions from '../../../planner/plan/assumptions'
import type { Range } from '../../../planner/forecast/range'
import { expected, NOW_MS, offer, SPEC } from '../wishes'

const isRange = (value: unknown): value is Range =>
  typeof value === 'object' && value !== null && 'source' in value
const named = Object.entries(assumptions).filter((entry): entry is [string, Range] => isRange(entry[1]))
const TIMES = ['LAUNCH_WAIT', 'RELAUNCH_WAIT', 'QUEUE_WAIT', 'BOOT', 'IMAGE_PULL', 'SET_UP', 'STOP'].concat(
  'UNKNOWN_INPUTS',
  'UNKNOWN_RESTORE',
)

it.each(named)('%s has its middle between its ends', (_, { low, middle, high }) => {
  expect(low).toBeGreaterThan(0)
  expect(low).toBeLessThan(middle)
  expect(middle).toBeLessThan(high)
})

it.each(named.filter(([name]) => TIMES.includes(name)))(
  '%s is a time from a second to twenty minutes',
  (_, { low, high }) => {
    expect(low).toBeGreaterThanOrEqual(SECOND_MS)
    expect(high).toBeGreaterThanOrEqual(MINUTE_MS)
    expect(high).toBeLessThanOrEqual(20 * MINUTE_MS)
  },
)

it('a price table widens the range of costs once it is older than a month', () => {
  const width = (ageMs: number): number => {
    const aged = offer({ priceSource: { kind: 'static', observedAtMs: NOW_MS - ageMs } })
    const { lowMicroUsd, highMicroUsd } = expected(aged, { spec: { ...SPEC, durationMs: 10 * HOUR_MS } })
      .forecast.cost
    return highMicroUsd / lowMicroUsd
  }
  expect(width(30 * DAY_MS)).toBe(width(0))
  expect(width(30 * DAY_MS + 1)).toBeGreaterThan(width(0))
})
