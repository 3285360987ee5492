import { describe, expect, it } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import { LaunchTurns } from '../../storage/launch-turns'
import { MemoryStore } from '../backends/scripted/memory-store'

const GAP_MS = 12_000
const NOW_MS = 1_795_000_000_000

const turnsIn = (store: MemoryStore, now = () => NOW_MS, backend = 'here'): LaunchTurns =>
  new LaunchTurns(store, { backend, gapMs: GAP_MS }, { now, monotonicMs: () => NOW_MS })

describe('turns of launches', () => {
  it('begin at once after a pause, and otherwise a gap apart, also for concurrent workers', async () => {
    const store = new MemoryStore(() => NOW_MS)
    const workers = Array.from({ length: 4 }, () => turnsIn(store))
    const taken = await Promise.all(Array.from({ length: 20 }, (_, index) => workers[index % 4]!.take(0)))
    const times = taken.sort((a, b) => a - b)
    expect(times).toEqual(Array.from({ length: 20 }, (_, index) => NOW_MS + index * GAP_MS))
    expect(await turnsIn(store, () => NOW_MS + 60 * MINUTE_MS).take(0)).toBe(NOW_MS + 60 * MINUTE_MS)
    expect(await turnsIn(store, undefined, 'there').take(0)).toBe(NOW_MS)
  })

  it('come after the time that the provider named', async () => {
    const turns = turnsIn(new MemoryStore(() => NOW_MS))
    const notBeforeMs = NOW_MS + MINUTE_MS
    expect(await turns.take(notBeforeMs)).toBe(notBeforeMs)
    expect(await turns.take(0)).toBe(notBeforeMs + GAP_MS)
  })

  it('are not held up by a worker whose clock is an hour ahead', async () => {
    const store = new MemoryStore(() => NOW_MS)
    await turnsIn(store, () => NOW_MS + 60 * MINUTE_MS).take(0)
    expect(await turnsIn(store).take(0)).toBe(NOW_MS)
    expect(await turnsIn(store).take(0)).toBe(NOW_MS + GAP_MS)
  })

  it.each([
    ['minutes back', -5 * MINUTE_MS],
    ['2 h back', -120 * MINUTE_MS],
    ['2 h ahead', 120 * MINUTE_MS],
  ])('stay a gap apart in a worker whose clock is set %s', async (_, byMs) => {
    let stepMs = 0
    const store = new MemoryStore(() => NOW_MS)
    const clocks = { now: () => NOW_MS + stepMs, monotonicMs: () => 0 }
    const turns = new LaunchTurns(store, { backend: 'here', gapMs: GAP_MS }, clocks)
    await turns.take(0)
    stepMs = byMs
    expect(await turns.take(0)).toBe(NOW_MS + stepMs + GAP_MS)
    expect(await turns.take(0)).toBe(NOW_MS + stepMs + 2 * GAP_MS)
  })

  it('leave no more than a few documents', async () => {
    const store = new MemoryStore(() => NOW_MS)
    const turns = turnsIn(store)
    for (let count = 0; count < 200; count++) await turns.take(0)
    const keys: string[] = []
    for await (const { key } of store.list('launches/')) keys.push(key)
    expect(keys.length).toBeLessThanOrEqual(51)
    expect(keys.at(-1)).toBe('launches/here/000000000200.json')
  })
})
