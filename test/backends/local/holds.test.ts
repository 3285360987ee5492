import { tmpdir } from 'node:os'
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createHost } from '../../../backends/local/host'
import { Holds } from '../../../backends/local/holds'
import { microUsd } from '../../../core/money/money'
import type { Taken } from '../../../backends/local/slots'

let nowMs: number
let holds: Holds
const NONE: Taken = { slots: 0, gpus: new Set(), jobIds: new Set(), uids: new Set() }
const asker = (jobId: string, sinceMs: number): { jobId: string; sinceMs: number; ahead: string[] } => ({
  jobId,
  sinceMs,
  ahead: [],
})
const takenFor = (jobId: string, sinceMs: number): number =>
  holds.seenBy(asker(jobId, sinceMs), NONE, []).slots

beforeEach(() => {
  nowMs = 0
  holds = new Holds(() => nowMs)
})

describe('places held on this machine', () => {
  it('are taken for every other job, whatever it wishes for, until the order is here or half a minute is over', () => {
    holds.hold(asker('a', 1), { slots: 1, gpus: [] })
    holds.hold(asker('b', 2), { slots: 2, gpus: [] })
    expect([takenFor('a', 1), takenFor('b', 2), takenFor('c', 3)]).toEqual([2, 1, 3])
    holds.forget('b')
    expect(takenFor('c', 3)).toBe(1)
    nowMs = 30_000
    expect(takenFor('c', 3)).toBe(0)
  })

  it('gather for an older job that needs several, once smaller ones have gone ahead of it for two minutes', () => {
    const lacksSlots = { request: { cpus: { min: 2 } }, lacks: 'slots' } as const
    for (; nowMs < 120_000; nowMs += 10_000) {
      holds.noteShortage(asker('large', 1), lacksSlots)
      expect(takenFor('small', 2)).toBe(0)
    }
    expect(takenFor('small', 2)).toBe(2)
    expect(takenFor('older', 0)).toBe(0)
    // It no longer asks.
    nowMs += 20_000
    expect(takenFor('small', 2)).toBe(0)
  })

  it('are first for an order that lost its place', () => {
    holds.noteShortage(asker('ordered', 0), { request: {}, lacks: 'slots', isOrder: true })
    expect(takenFor('other', 1)).toBe(1)
  })

  it('count for the older jobs that have none yet', () => {
    holds.hold(asker('held', 1), { slots: 1, gpus: [] })
    const taken = { ...NONE, jobIds: new Set(['runs']) }
    expect(holds.withoutPlace({ ...asker('young', 9), ahead: ['held', 'runs', 'waits'] }, taken)).toBe(1)
  })

  it.each([-2, 2, 720])('last half a minute also when the clock is set by %i hours', (hours) => {
    const notHere = (): Promise<never> => Promise.reject(new Error('not here'))
    let wallMs = 1_800_000_000_000
    const monotonic = jest.spyOn(performance, 'now').mockReturnValue(1_000)
    try {
      const config = {
        root: tmpdir(),
        hasSpot: false,
        priceMicroUsdPerHour: microUsd(0),
        spotPriceMicroUsdPerHour: microUsd(0),
      }
      const host = createHost(config, { fetchRunner: notHere, clock: () => wallMs })
      const seen = (): number => host.holds.seenBy(asker('b', 2), NONE, []).slots
      host.holds.hold(asker('a', 1), { slots: 1, gpus: [] })
      wallMs += hours * 3_600_000
      expect(seen()).toBe(1)
      wallMs += 30_000
      monotonic.mockReturnValue(31_000)
      expect(seen()).toBe(0)
    } finally {
      monotonic.mockRestore()
    }
  })
})
