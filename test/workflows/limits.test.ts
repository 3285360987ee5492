import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money'
import type { Order } from '../../core/plan'
import { HOUR_MS } from '../../core/time'
import { DEFAULT_TIMING } from '../../core/timing'
import type { JobRun } from '../../workflows/job-run'
import { armDeadline, limitsNow } from '../../workflows/limits'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
/** What is kept free at the end of every limit. */
const RESERVE_MS = DEFAULT_TIMING.drainMs + DEFAULT_TIMING.powerOffMs
const ORDER = { priceMaxMicroUsdPerHour: microUsd(2) } as Order

/** The instants for which a timer was armed. */
let armed: number[]

beforeEach(() => {
  armed = []
  jest.useFakeTimers({ now: NOW_MS })
})
afterEach(() => {
  jest.useRealTimers()
})

function runOf(status: Partial<JobRun['page']['status']>): JobRun {
  const stopRequests: Pick<JobRun['stopRequests'], 'arm'> = {
    arm: ({ inMs }) => void armed.push(Date.now() + inMs),
  }
  const run = { page: { status: { spentMicroUsd: 0, ...status } }, resolved: { timing: DEFAULT_TIMING } }
  return { ...run, stopRequests, orderAtMs: NOW_MS } as unknown as JobRun
}

describe('the limits of a machine that runs', () => {
  it('are what the ended attempts have left of the budget, and the dearest price of its order', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(4), deadlineAtMs: NOW_MS })
    const budget = { microUsd: microUsd(6), priceMaxMicroUsdPerHour: microUsd(2) }
    expect(limitsNow(run, ORDER, 3)).toEqual({
      ...{ seq: 3, deadlineAtMs: NOW_MS, budget },
    })
  })

  it('keep free what moving its data costs', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(4) })
    const { budget } = limitsNow(run, { ...ORDER, transferMicroUsd: microUsd(1) }, 3)
    expect(budget).toMatchObject({ microUsd: microUsd(5) })
  })

  it('are none without a wish, and no money where more is spent than there was', () => {
    expect(limitsNow(runOf({}), ORDER, 1)).toEqual({
      ...{ seq: 1, deadlineAtMs: null, budget: null },
    })
    const spent = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(11) })
    expect(limitsNow(spent, ORDER, 1).budget).toMatchObject({ microUsd: 0 })
  })
})

describe('the timer of the deadline', () => {
  it('fires early enough to save, and to be off by then', () => {
    armDeadline(runOf({ deadlineAtMs: NOW_MS + HOUR_MS }))
    armDeadline(runOf({}))
    expect(armed).toEqual([NOW_MS + HOUR_MS - RESERVE_MS])
  })
})
