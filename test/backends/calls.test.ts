import { describe, expect, it } from '@jest/globals'
import { cached } from '../../backends/calls'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'

describe('a value that is kept', () => {
  it.each([
    ['is used again within its time', 9 * MINUTE_MS, 1],
    ['is read again after it', 10 * MINUTE_MS, 2],
    ['is read again when the clock is set ahead by two hours', 2 * HOUR_MS, 2],
    ['is read again when the clock is set back by two hours', -2 * HOUR_MS, 2],
    ['is read again when the clock is set ahead by a month', 30 * DAY_MS, 2],
    ['is read again when the clock is set back by a month', -30 * DAY_MS, 2],
  ])('%s', async (_, stepMs, readings) => {
    let [nowMs, read] = [1.8e12, 0]
    const price = cached({ freshForMs: 10 * MINUTE_MS, clock: () => nowMs, read: async () => ++read })
    const { signal } = new AbortController()
    await price.get(signal)
    nowMs += stepMs
    expect((await price.get(signal)).value).toBe(readings)
    expect((await price.soon(1_000, signal))?.value).toBe(readings)
  })
})
