import { expect, it } from '@jest/globals'
import { confidenceOf, NO_FORECAST, type Forecast } from '../../../core/job/forecast'

it.each<[highUsd: number, highMs: number, words: string]>([
  [17, 99, 'high'],
  [18, 99, 'medium'],
  [30, 99, 'medium'],
  [31, 99, 'low'],
  // What is free is judged by its time.
  [0, 17, 'high'],
  [0, 31, 'low'],
])(
  'a cost of up to %s from 10, and a time of up to %s from 10, have %s confidence',
  (highUsd, highMs, words) => {
    const forecast: Forecast = {
      ...NO_FORECAST,
      cost: { lowMicroUsd: highUsd === 0 ? 0 : 10, highMicroUsd: highUsd },
      finish: { lowMs: 10, highMs },
    }
    expect(confidenceOf(forecast)).toBe(words)
  },
)
