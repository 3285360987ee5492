/** What a job does about an attempt that closed without settling: terminated by hand, failed, or never started. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import {
  ApplicationFailure,
  ChildWorkflowFailure,
  RetryState,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/common'
import type { Settlement } from '../../core/activities'
import type { DrainRequest } from '../../core/job/drain'
import { ATTEMPT_FAILED, type JobInput, type ResolvedJob } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Runs from '../../workflows/job/run'
import type * as Attempts from '../../workflows/job/run-attempt'
import { SPEC } from '../support/spec'
import { played, playedActivities, playedWorkflow } from './played-job'

const { drainMs } = DEFAULT_TIMING
const SETTLEMENT = {
  end: { kind: 'succeeded' },
  handle: null,
  costMicroUsd: 7,
  artifacts: [],
} as unknown as Settlement
const ORDER = {
  jobId: 'job-1',
  attempt: 3,
  backend: 'here',
  capacityType: 'spot',
  offers: [],
} as unknown as Order

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())

const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')
const { runAttempt } = jest.requireActual<typeof Attempts>('../../workflows/job/run-attempt')

/** How the child closes. */
let close: () => Promise<unknown>

const settled = (): Record<string, unknown>[] => played.inputsOf('settle')

beforeEach(() => {
  played.reset()
  played.answers = { attempt: () => close(), settle: () => SETTLEMENT }
})

const failing = (cause: Error) => () =>
  Promise.reject(
    new ChildWorkflowFailure(
      undefined,
      { workflowId: 'job/job-1/3', runId: 'run-2' },
      'attempt',
      RetryState.NON_RETRYABLE_FAILURE,
      cause,
    ),
  )

/** Runs the attempt of a job with these requests to stop. */
async function run(requests: DrainRequest[] = []): Promise<Settlement> {
  const job = new JobRun({
    ...{ jobId: 'job-1', spec: SPEC, bundle: null, owner: 'ada', deployment: 'dep-1', submittedAtMs: 0 },
  } satisfies JobInput)
  job.resolved = { timing: DEFAULT_TIMING } as ResolvedJob
  for (const { reason, windowMs } of requests) job.drains.add({ reason: reason as 'cancelled', windowMs })
  const words = { summary: '', reasons: [] }
  return played.endOf(runAttempt(job, { kind: 'order', order: ORDER, words, limitsVersion: 0 } as never))
}

describe('an attempt that was terminated by hand', () => {
  beforeEach(() => {
    close = failing(new TerminatedFailure('terminated'))
  })

  it('is settled by its job, which gives its machine the whole time to save and stop', async () => {
    expect(await run()).toEqual(SETTLEMENT)
    expect(settled()).toEqual([
      expect.objectContaining({
        order: ORDER,
        handle: null,
        end: null,
        drainReason: null,
        windowMs: drainMs,
      }),
    ])
  })

  it('gives its machine no more time than its owner does, for the same reason', async () => {
    await run([{ reason: 'cancelled', windowMs: 5_000 }])
    expect(settled()).toMatchObject([{ drainReason: 'cancelled', windowMs: 5_000, end: null }])
  })
})

describe('an attempt that failed', () => {
  it('without a class may have left a machine: nothing is known of its end', async () => {
    close = failing(new TypeError('a bug'))
    await run()
    expect(settled()).toMatchObject([{ end: null, windowMs: drainMs }])
  })

  it('with a class is settled as that failure', async () => {
    close = failing(ApplicationFailure.create({ type: 'transient', message: 'No worker.' }))
    await run()
    expect(settled()).toMatchObject([
      { end: { kind: 'failed', isLaunched: true, failure: { class: 'transient', message: 'No worker.' } } },
    ])
  })

  it('after it settled itself is not settled again', async () => {
    const details = [{ settlement: { ...SETTLEMENT, costMicroUsd: 9 } }]
    close = failing(ApplicationFailure.create({ type: ATTEMPT_FAILED, message: 'Lost.', details }))
    expect(await run()).toMatchObject({ costMicroUsd: 9 })
    expect(settled()).toEqual([])
  })

  it('by its time is settled', async () => {
    close = failing(new TimeoutFailure('late', undefined, 'START_TO_CLOSE'))
    await run()
    expect(settled()).toHaveLength(1)
  })
})

it('an attempt that closes as it should is not settled again', async () => {
  close = async () => ({ settlement: SETTLEMENT })
  expect(await run()).toEqual(SETTLEMENT)
  expect(settled()).toEqual([])
})
