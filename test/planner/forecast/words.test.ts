import { expect, it } from '@jest/globals'
import { expectedInWords, FORECAST_PARTS, NO_FORECAST, type Forecast } from '../../../core/job/forecast'
import { microUsd } from '../../../core/money/money'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { chancesInWords, partInWords, rangeInWords } from '../../../planner/forecast/words'

const FORECAST: Forecast = {
  ...NO_FORECAST,
  cost: { lowMicroUsd: microUsd(5.2), highMicroUsd: microUsd(8.1) },
  finish: { lowMs: 6.5 * HOUR_MS, highMs: 10 * HOUR_MS },
}
const FREE = { lowMicroUsd: 0, highMicroUsd: 0 }

it.each<[string, Partial<Forecast>, string]>([
  ['without any driver', {}, '$5.20 to $8.10, 6h 30m to 10h'],
  [
    'with one driver',
    { drivers: { cost: ['duration'], finish: ['boot'] } },
    '$5.20 to $8.10, 6h 30m to 10h, mainly from the training time',
  ],
  [
    'with two drivers',
    { drivers: { cost: ['duration', 'interruptions'], finish: [] } },
    '$5.20 to $8.10, 6h 30m to 10h, mainly from the training time and interruptions',
  ],
  [
    'with three drivers',
    { drivers: { cost: ['duration', 'interruptions', 'speed'], finish: [] } },
    '$5.20 to $8.10, 6h 30m to 10h, mainly from the training time, interruptions and the speed of its GPU',
  ],
  [
    'of what is free, with the drivers of its time',
    { cost: FREE, drivers: { cost: [], finish: ['boot', 'setup'] } },
    '6h 30m to 10h, mainly from the boot and the set-up',
  ],
  [
    'with the same words at both ends as one figure',
    {
      cost: { lowMicroUsd: microUsd(1), highMicroUsd: microUsd(1) },
      finish: { lowMs: HOUR_MS, highMs: HOUR_MS + 1 },
    },
    '$1.00, 1h',
  ],
])('a range has the words of one %s', (_, changes, words) => {
  expect(rangeInWords({ ...FORECAST, ...changes })).toBe(`90 % range: ${words}`)
})

it.each<[Forecast['chances'], string[]]>([
  [{}, []],
  [{ deadline: 0.83 }, ['83 % chance to keep the deadline']],
  [{ budget: 0.5 }, ['50 % chance to keep the budget']],
  [
    { deadline: 0.995, budget: 0.994 },
    ['> 99 % chance to keep the deadline', '99 % chance to keep the budget'],
  ],
  [
    { deadline: 0.005, budget: 0.004 },
    ['1 % chance to keep the deadline', '< 1 % chance to keep the budget'],
  ],
])('the chances %j have the words %j', (chances, words) => {
  expect(chancesInWords({ chances })).toEqual(words)
})

it('each part has words of its own', () => {
  expect(new Set(FORECAST_PARTS.map(partInWords)).size).toBe(14)
})

it('an expectation in words has two figures with their ranges', () => {
  const expected = {
    costMicroUsd: microUsd(6.56),
    durationMs: 8 * HOUR_MS + 7 * MINUTE_MS,
    forecast: FORECAST,
  }
  expect(expectedInWords(expected)).toBe('$6.56 ($5.20 to $8.10) in 8h 7m (6h 30m to 10h)')
})
