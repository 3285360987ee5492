import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { JobInput, JobStatus, ResolvedJob } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import type { Order } from '../../core/job/plan'
import { HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Runs from '../../workflows/job/run'
import { SPEC } from '../support/spec'

jest.mock('@temporalio/workflow', () => {
  const none = (): void => undefined
  return {
    defineSignal: none,
    defineQuery: none,
    setHandler: none,
    setCurrentDetails: none,
    upsertSearchAttributes: none,
    workflowInfo: () => ({ runId: 'run-1' }),
  }
})

const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')

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

function runOf(status: Partial<JobStatus>): Runs.JobRun {
  const run = new JobRun({
    jobId: 'job-a',
    spec: SPEC,
    bundle: null,
    owner: 'ada',
    deployment: 'dep-1',
    submittedAtMs: NOW_MS,
  } satisfies JobInput)
  run.resolved = { timing: DEFAULT_TIMING } as ResolvedJob
  Object.assign(run.page.status, status)
  run.drains.armDeadline = ({ inMs }) => void armed.push(Date.now() + inMs)
  return run
}

describe('the limits of a machine that runs', () => {
  it('are what the ended attempts have left of the budget, and the dearest price of its order', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(4), deadlineAtMs: NOW_MS })
    const budget = { microUsd: microUsd(6), priceMaxMicroUsdPerHour: microUsd(2) }
    expect(run.limitsFor(ORDER, 3)).toEqual({
      seq: 3,
      deadlineAtMs: NOW_MS,
      budget,
    })
  })

  it('keep free what moving its data costs', () => {
    const run = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(4) })
    const { budget } = run.limitsFor({ ...ORDER, transferMicroUsd: microUsd(1) }, 3)
    expect(budget).toMatchObject({ microUsd: microUsd(5) })
  })

  it('are none without a deadline or a budget, and no money where more is spent than there was', () => {
    expect(runOf({}).limitsFor(ORDER, 1)).toEqual({
      seq: 1,
      deadlineAtMs: null,
      budget: null,
    })
    const spent = runOf({ budgetMicroUsd: microUsd(10), spentMicroUsd: microUsd(11) })
    expect(spent.limitsFor(ORDER, 1).budget).toMatchObject({ microUsd: 0 })
  })
})

describe('the timer of the deadline', () => {
  it('fires early enough to save, and to be off by then', () => {
    runOf({ deadlineAtMs: NOW_MS + HOUR_MS }).armDeadline()
    runOf({}).armDeadline()
    expect(armed).toEqual([NOW_MS + HOUR_MS - RESERVE_MS])
  })
})
