/** A job between two attempts, with a history that is long enough to begin a fresh one; and the job that continues in it. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { DecideInput, FinishInput } from '../../core/activities'
import { EMPTY_LEDGER, type Decision } from '../../core/job/ledger'
import type { JobCarry, JobInput } from '../../core/messages'
import type { JobRun } from '../../workflows/job/run'
import type * as Job from '../../workflows/job/job'
import { SPEC } from '../support/spec'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const HOUR_MS = 3_600_000
const TIMING = { drainMs: 60_000, powerOffMs: 30_000 }
const POLICY = { failuresMax: 1, interruptionsMax: 9, unclassifiedMax: 3 }
const AGAIN: Decision = {
  ...{ kind: 'again', reason: 'interrupted', message: 'Taken back.', afterMs: 5_000 },
  avoid: [{ offerKey: 'here/spot/v100/a', forMs: 60_000, why: 'interruption' }],
}
const DONE = { kind: 'finish', state: 'succeeded', reason: 'completed', message: 'Done.' } as const
const LEDGER = { ...EMPTY_LEDGER, attempts: 1, interruptions: 1 }

let asked: string[]
let finished: FinishInput[]
let continued: JobInput[]
let timers: number[]
let isCancelled: boolean
let decisions: Decision[]
let decided: DecideInput[]
let savedBy: number | undefined

class Continued extends Error {}

jest.mock('@temporalio/workflow', () => {
  const none = (): void => undefined
  const never = new Promise<never>(() => undefined)
  class CancellationScope {
    static nonCancellable = async (work: () => unknown): Promise<unknown> => work()
    static current = () => ({
      cancelRequested: isCancelled ? Promise.reject(new Error('cancelled')) : never,
      consideredCancelled: false,
    })
    run = (work: () => unknown) => work()
    cancel = none
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    sleep: (forMs: number) => (timers.push(forMs), never),
    condition: async () => true,
    continueAsNew: async (input: JobInput) => {
      continued.push(input)
      throw new Continued('continues in a fresh history')
    },
    workflowInfo: () => ({ runId: 'run', continueAsNewSuggested: true }),
    allHandlersFinished: () => true,
    ...{ setHandler: none, setCurrentDetails: none, upsertSearchAttributes: none, patched: () => true },
    ...{ defineSignal: none, defineUpdate: none, defineQuery: none },
  }
})
jest.mock('../../workflows/activities', () => ({
  orchestrator: {
    resolveJob: async () => {
      asked.push('resolveJob')
      return { spec: SPEC, timing: TIMING, policy: POLICY, runnerSha256: '', storeUrl: '' }
    },
    finishJob: async (input: FinishInput) => void finished.push(input),
  },
  copying: { copyCheckpoint: async () => (asked.push('copyCheckpoint'), { checkpoint: { step: 5 } }) },
  decide: async (_page: unknown, input: DecideInput) => {
    decided.push(input)
    return { decision: decisions.shift(), ledger: LEDGER }
  },
}))
jest.mock('../../workflows/job/run-attempt', () => ({
  runAttempt: async (run: JobRun) => {
    asked.push(`attempt ${run.nextSeq()}`)
    Object.assign(run.page.status, { state: 'running', spentMicroUsd: run.page.status.spentMicroUsd + 40 })
    const checkpoint = savedBy === undefined ? {} : { checkpoint: { id: '5', step: 5, attempt: savedBy } }
    return { end: { kind: 'succeeded' }, handle: null, costMicroUsd: 40, artifacts: [], ...checkpoint }
  },
}))
jest.mock('../../workflows/job/next-order', () => ({
  nextOrder: async (run: JobRun) =>
    run.drains.current === null
      ? { kind: 'order', order: { attempt: run.nextAttempt, offers: [], backend: 'here' } }
      : { kind: 'finish', state: 'cancelled', reason: 'cancelled', message: 'Cancelled.' },
}))

const { job } = jest.requireActual<typeof Job>('../../workflows/job/job')

const INPUT: JobInput = {
  ...{ jobId: 'job-1', bundle: null, owner: 'somebody', deployment: 'dep-1', submittedAtMs: NOW_MS },
  spec: { ...SPEC, deadlineAtMs: NOW_MS + HOUR_MS, budgetMicroUsd: 1_000 },
  source: { jobId: 'job-0', checkpoint: { id: '5-1', step: 5 } } as never,
}

beforeEach(() => {
  jest.useFakeTimers({ now: NOW_MS })
  asked = []
  finished = []
  continued = []
  timers = []
  isCancelled = false
  decisions = [AGAIN]
  decided = []
  savedBy = undefined
})
afterEach(() => void jest.useRealTimers())

async function carried(): Promise<JobCarry> {
  await expect(job(INPUT)).rejects.toBeInstanceOf(Continued)
  return continued[0]!.carry!
}

describe('a job with a long history', () => {
  it('takes along its input, ledger, money, deadline, what it avoids, its pause and its numbers', async () => {
    const carry = await carried()
    expect(continued).toEqual([{ ...INPUT, carry }])
    const [avoid] = AGAIN.kind === 'again' ? AGAIN.avoid : []
    expect(carry).toMatchObject({
      ledger: LEDGER,
      avoid: [avoid],
      pause: { forMs: 5_000, reason: 'interrupted', message: 'Taken back.' },
      status: { spentMicroUsd: 40, deadlineAtMs: NOW_MS + HOUR_MS, budgetMicroUsd: 1_000 },
      resolved: { timing: TIMING, policy: POLICY },
    })
    const seqs = asked.map((name) => Number(/^attempt (\d+)$/.exec(name)?.[1] ?? 0))
    expect(carry.recordSeq).toBeGreaterThan(Math.max(...seqs))
  })

  it('does not begin a fresh one while it is to stop: the request would be lost', async () => {
    isCancelled = true
    await expect(job(INPUT)).rejects.toMatchObject({ name: 'CancelledFailure' })
    expect(continued).toEqual([])
    expect(finished).toMatchObject([{ status: { state: 'cancelled' } }])
  })
})

describe('what follows an attempt', () => {
  it.each([
    ['saved a checkpoint', 1, true],
    ['restored an earlier one and saved none', 0, false],
    ['saved none', undefined, false],
  ])('is decided knowing that it %s', async (_name, by, hasSaved) => {
    savedBy = by
    await carried()
    expect(decided).toMatchObject([{ attempt: 1, hasSaved }])
  })
})

describe('a job in a fresh history', () => {
  it('resolves and copies nothing again, continues with the next attempt, and has its deadline', async () => {
    const carry = await carried()
    const { recordSeq } = carry
    expect(asked.slice(0, 2)).toEqual(['resolveJob', 'copyCheckpoint'])
    asked = []
    timers = []
    decisions = [DONE]
    jest.setSystemTime(NOW_MS + HOUR_MS / 2)
    await job({ ...INPUT, carry })
    expect(asked).toEqual([`attempt ${recordSeq}`])
    expect(timers).toEqual([HOUR_MS / 2 - TIMING.drainMs - TIMING.powerOffMs])
    expect(finished).toMatchObject([{ status: { state: 'succeeded', spentMicroUsd: 80 } }])
  })
})
