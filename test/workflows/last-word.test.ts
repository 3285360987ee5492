import { expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, RetryState } from '@temporalio/common'
import type { FinishInput } from '../../core/activities'
import type * as Job from '../../workflows/job/job'
import { SPEC } from '../support/spec'

/** What the search for a machine throws. */
let thrown: Error
const finished: FinishInput[] = []

jest.mock('@temporalio/workflow', () => {
  const none = (): void => undefined
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope: {
      nonCancellable: async (work: () => unknown): Promise<unknown> => work(),
      current: () => ({ cancelRequested: new Promise(() => undefined) }),
    },
    ...{
      condition: async () => true,
      workflowInfo: () => ({ runId: 'run' }),
      allHandlersFinished: () => true,
    },
    ...{ setHandler: none, setCurrentDetails: none, upsertSearchAttributes: none, patched: () => true },
    ...{ defineSignal: none, defineUpdate: none, defineQuery: none },
  }
})
jest.mock('../../workflows/activities', () => ({
  orchestrator: {
    resolveJob: async () => ({ spec: SPEC, timing: {}, policy: {}, month: '2026-11' }),
    finishJob: async (input: FinishInput) => void finished.push(input),
  },
}))
jest.mock('../../workflows/job/run-attempt', () => ({}))
jest.mock('../../workflows/job/next-order', () => ({
  nextOrder: async () => {
    throw thrown
  },
}))

const { job } = jest.requireActual<typeof Job>('../../workflows/job/job')

const run = (): Promise<unknown> =>
  job({
    ...{ jobId: 'job-1', spec: SPEC, bundle: null, owner: 'somebody', deployment: 'dep-1', submittedAtMs: 0 },
  })

it('a job that an unforeseen failure would close is finished first: record, secrets and promised money', async () => {
  const cause = ApplicationFailure.nonRetryable('No such thing.', 'invalid')
  thrown = new ActivityFailure('failed', 'new', '1', RetryState.NON_RETRYABLE_FAILURE, undefined, cause)
  await expect(run()).rejects.toMatchObject({
    type: 'unclassified',
    message: 'Internal error: No such thing.',
  })
  expect(finished).toMatchObject([{ month: '2026-11', status: { state: 'failed', reason: 'unclassified' } }])
})

it('an error of our own code leaves the job to a worker with fixed code', async () => {
  thrown = new TypeError('x is undefined')
  await expect(run()).rejects.toBe(thrown)
  expect(finished).toHaveLength(1)
})
