import { describe, expect, it } from '@jest/globals'
import { DrivenClock, RealClock, sleep } from './clock'

describe('clocks', () => {
  it('do each task at its instant, in order, one after the other when driven', async () => {
    const clock = new DrivenClock(0)
    const seen: [string, number][] = []
    const note = (name: string) => async (): Promise<void> => {
      await Promise.resolve()
      seen.push([name, clock.now()])
    }
    clock.at(20, note('late'))
    clock.at(10, note('first'))
    clock.at(10, note('second'))
    clock.at(10, note('forgotten'))()
    clock.at(10, () => void clock.at(15, note('added')))
    await clock.advance(18)
    expect(seen).toEqual([
      ['first', 10],
      ['second', 10],
      ['added', 15],
    ])
    expect(clock.now()).toBe(18)
    await clock.advance(2)
    expect(seen.at(-1)).toEqual(['late', 20])
  })

  it('wait in real time, and not at all for a caller who has left', async () => {
    const clock = new RealClock()
    const startedMs = performance.now()
    // Kept alive by hand: the clock's own timer lets a process end.
    const alive = setInterval(() => undefined, 1_000)
    await Promise.all([sleep(clock, 30), sleep(clock, 10), sleep(clock, 1e9, AbortSignal.timeout(20))])
    clearInterval(alive)
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29)
    await sleep(clock, 1e9, AbortSignal.abort())
  })
})
