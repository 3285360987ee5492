import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money'
import type { Order } from '../../core/plan'
import { HOUR_MS, MINUTE_MS } from '../../core/time'
import { DEFAULT_TIMING } from '../../core/timing'
import type { JobRun } from '../../workflows/job-run'
import { armBudget, armDeadline, limitsNow } from '../../workflows/limits'

const ORDER_AT_MS = Date.UTC(2026, 10, 21, 12)
/** What is kept free at the end of every limit. */
const RESERVE_MS = DEFAULT_TIMING.drainMs + DEFAULT_TIMING.powerOffMs
const ORDER = { priceMaxMicroUsdPerHour: microUsd(2) } as Order

/** What was armed, by its wish and the instant at which it fires. */
let armed: [wish: string, atMs: number][]

beforeEach(() => {
  armed = []
  jest.useFakeTimers({ now: ORDER_AT_MS })
})
afterEach(() => {
  jest.useRealTimers()
})

function runOf(status: Partial<JobRun['page']['status']>): JobRun {
  const arm: JobRun['wishes']['arm'] = ({ wish, inMs }) => void armed.push([wish, Date.now() + inMs])
  const run = { page: { status: { spentMicroUsd: 0, ...status } }, resolved: { timing: DEFAULT_TIMING } }
  return { ...run, orderAtMs: ORDER_AT_MS, wishes: { arm } } as unknown as JobRun
}

describe('the timer of the budget', () => {
  it('stops the attempt when the money is used up, counted from its order, with time to save', () => {
    armBudget(runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(4) }), ORDER)
    expect(armed).toEqual([['budget', ORDER_AT_MS + 3 * HOUR_MS - RESERVE_MS]])
  })

  it('counts a new budget from the order too, as the runner does, however late it comes', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10) })
    jest.setSystemTime(ORDER_AT_MS + 2 * HOUR_MS)
    armBudget(run, ORDER)
    expect(armed).toEqual([['budget', ORDER_AT_MS + 5 * HOUR_MS - RESERVE_MS]])
    expect(limitsNow(run, ORDER, 1)).toEqual({ seq: 1, deadlineAtMs: null, runMs: 5 * HOUR_MS })
  })

  it('does not count the pause before the order, in which nothing is paid for', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10) })
    jest.setSystemTime(ORDER_AT_MS - 5 * MINUTE_MS)
    armBudget(run, ORDER)
    expect(armed).toEqual([['budget', ORDER_AT_MS + 5 * HOUR_MS - RESERVE_MS]])
  })

  it('is not there without a budget, or where nothing costs anything', () => {
    armBudget(runOf({}), ORDER)
    armBudget(runOf({ budgetMicroUsd: microUsd(10) }), { ...ORDER, priceMaxMicroUsdPerHour: 0 })
    expect(armed).toEqual([])
  })
})

describe('the timer of the deadline', () => {
  it('fires early enough to save, and to be off by then', () => {
    armDeadline(runOf({ deadlineAtMs: ORDER_AT_MS + HOUR_MS }))
    armDeadline(runOf({}))
    expect(armed).toEqual([['deadline', ORDER_AT_MS + HOUR_MS - RESERVE_MS]])
  })
})
