/** The life of a job, step by step: what each step is given, and what follows from its answer. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, RetryState } from '@temporalio/common'
import type { Failure } from '../../core/failure'
import { EMPTY_LEDGER, type Decision } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Job from '../../workflows/job/job'
import { SPEC } from '../support/spec'
import { answersWith, DONE, INPUT, NOW_MS, orderOf, RESOLVED, RESULT, type Script } from './job-script'
import { played, playedActivities, playedWorkflow } from './played-job'

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())
const { job } = jest.requireActual<typeof Job>('../../workflows/job/job')

const AGAIN: Decision = {
  kind: 'again',
  reason: 'interrupted',
  message: 'Taken back.',
  afterMs: 5 * MINUTE_MS,
  avoid: [{ offerKey: 'here/spot/v100/a', forMs: HOUR_MS, why: 'interruption' }],
}
let script: Script

beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  played.reset()
  script = { decisions: [DONE], settlements: [] }
  played.answers = answersWith(script)
})

const live = (input = INPUT): Promise<unknown> => played.endOf(job(input))
const failing = (failure: Failure): never => {
  const { class: type, message } = failure
  const cause = ApplicationFailure.create({ type, message, details: [failure], nonRetryable: true })
  throw new ActivityFailure('failed', 'activity', '1', RetryState.NON_RETRYABLE_FAILURE, undefined, cause)
}
const status = (): JobStatus => played.handlers.get('status')!.handle() as JobStatus

describe('a job that succeeds at once', () => {
  it('is resolved, planned, attempted, decided on and finished, under one record number after the other', async () => {
    expect(await live()).toBe(RESULT)
    expect(played.names()).toEqual(['resolveJob', 'plan', 'attempt', 'decide', 'finishJob'])
    expect(played.inputsOf('resolveJob')).toEqual([INPUT])
    expect(played.inputsOf('plan')).toEqual([
      {
        jobId: 'job-1',
        deployment: 'dep-1',
        recordSeq: 2,
        attempt: 1,
        resolved: RESOLVED,
        bundle: null,
        ledger: EMPTY_LEDGER,
        avoid: [],
        deadlineAtMs: NOW_MS + 10 * HOUR_MS,
        budgetMicroUsd: microUsd(20),
      },
    ])
    expect(played.inputsOf('decide')).toMatchObject([{ recordSeq: 5 }])
    expect(played.inputsOf('finishJob')).toMatchObject([{ recordSeq: 6 }])
  })

  it('runs its attempt as a child that is cancelled with it, and is found by its attributes', async () => {
    await live()
    const { typedSearchAttributes, ...child } = played.inputsOf('attempt')[0]!
    expect(child).toEqual({
      type: 'attempt',
      workflowId: 'job/job-1/1',
      taskQueue: 'crucible',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      parentClosePolicy: 'REQUEST_CANCEL',
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      args: [{ order: orderOf(1), timing: DEFAULT_TIMING, launchSeq: 3, settleSeq: 4 }],
      // Two dollar signs would make a formula of the text between them.
      staticSummary: 'train, attempt 1: here, \\$3.00/h',
      staticDetails: '- cheapest\n- at `$3.00`/h',
    })
    const attributes = (typedSearchAttributes as { getAll(): { key: { name: string }; value: string }[] })
      .getAll()
      .map(({ key, value }) => [key.name, value])
    expect(Object.fromEntries(attributes)).toEqual({
      CrucibleName: 'train',
      CrucibleOwner: 'ada',
      CrucibleBackend: 'here:spot',
      CrucibleState: 'provisioning',
      CrucibleReason: 'launching',
    })
  })

  it('is decided on with what its attempt was offered, got, saved and cost', async () => {
    const realised = { capacityType: 'on-demand', type: 'v100', place: 'b', priceMicroUsdPerHour: 3 }
    script.settlements = [
      {
        handle: { realised, launchedAtMs: NOW_MS } as never,
        checkpoint: { id: '7', step: 7, attempt: 1 },
      },
    ]
    await live()
    expect(played.inputsOf('decide')).toEqual([
      {
        jobId: 'job-1',
        recordSeq: 5,
        attempt: 1,
        end: { kind: 'succeeded' },
        drainReason: null,
        offerKeys: ['here/spot/v100/a', 'here/spot/v100/b'],
        machine: { offerKey: 'here/on-demand/v100/b', placeKey: 'here/*/*/b' },
        ledger: { ...EMPTY_LEDGER, spentMicroUsd: microUsd(5) },
        policy: RESOLVED.policy,
        hasSaved: true,
        budget: {
          leftMicroUsd: microUsd(15),
          priceMaxMicroUsdPerHour: microUsd(3),
          costMicroUsd: microUsd(5),
        },
      },
    ])
  })

  it('is decided on without a machine or a budget where it had none', async () => {
    await live({ ...INPUT, spec: SPEC })
    const [decided] = played.inputsOf('decide')
    expect(decided).toMatchObject({ hasSaved: false })
    expect(decided?.machine).toBeUndefined()
    expect(decided?.budget).toBeUndefined()
    expect(played.timers).toEqual([])
  })

  it('is finished with its settled status, what its attempt left, and what its clean-up needs', async () => {
    const artifacts = [{ path: 'model.pt', sizeBytes: 9, sha256: 'f' }]
    script.settlements = [{ artifacts, progress: { step: 40 } as never }]
    played.answers['resolveJob'] = () => ({
      ...RESOLVED,
      month: '2026-11',
      spec: { ...SPEC, checkpoint: { keep: 3 } },
    })
    await live()
    expect(played.inputsOf('finishJob')).toEqual([
      {
        jobId: 'job-1',
        recordSeq: 6,
        artifacts,
        progress: { step: 40 },
        month: '2026-11',
        checkpointsKept: 3,
        status: expect.objectContaining({
          state: 'succeeded',
          reason: 'completed',
          message: 'Done.',
          spentMicroUsd: microUsd(5),
        }),
      },
    ])
  })

  it('needs no clean-up of months or checkpoints where it has neither', async () => {
    await live()
    const [finish] = played.inputsOf('finishJob')
    expect(Object.keys(JSON.parse(JSON.stringify(finish)) as object)).toEqual([
      'jobId',
      'recordSeq',
      'status',
      'artifacts',
    ])
    expect(finish).toMatchObject({ artifacts: [] })
  })
})

describe('a job that continues after an attempt', () => {
  it('plans the next one with what it has learned, and holds it back for as long as decided', async () => {
    script.decisions = [AGAIN, DONE]
    await live()
    expect(played.inputsOf('plan')[1]).toEqual({
      jobId: 'job-1',
      deployment: 'dep-1',
      recordSeq: 6,
      attempt: 2,
      resolved: RESOLVED,
      bundle: null,
      ledger: { ...EMPTY_LEDGER, attempts: 1, spentMicroUsd: microUsd(5) },
      avoid: AGAIN.kind === 'again' ? AGAIN.avoid : [],
      startsInMs: 5 * MINUTE_MS,
      deadlineAtMs: NOW_MS + 10 * HOUR_MS,
      budgetMicroUsd: microUsd(20),
    })
    expect(played.inputsOf('attempt')[1]).toMatchObject({
      workflowId: 'job/job-1/2',
      args: [
        {
          pause: { forMs: 5 * MINUTE_MS, reason: 'interrupted', message: 'Taken back.' },
          launchSeq: 7,
          settleSeq: 8,
        },
      ],
    })
    expect(played.inputsOf('decide')[1]).toMatchObject({
      attempt: 2,
      ledger: { attempts: 1, spentMicroUsd: microUsd(10) },
      budget: { leftMicroUsd: microUsd(10) },
    })
    expect(played.inputsOf('finishJob')).toMatchObject([{ status: { attemptsTotal: 2 } }])
  })
})

describe('a job that ends without success', () => {
  const end = (state: 'failed' | 'cancelled'): void =>
    void (script.decisions = [{ kind: 'finish', state, reason: 'workload-failed', message: 'Exit code 3.' }])

  it('closes as failed, with its reason as type and its result as detail', async () => {
    end('failed')
    await expect(live()).rejects.toMatchObject({
      name: 'ApplicationFailure',
      type: 'workload-failed',
      message: 'Exit code 3.',
      nonRetryable: true,
      details: [RESULT],
    })
  })

  it('closes as cancelled, with its result as detail', async () => {
    end('cancelled')
    await expect(live()).rejects.toMatchObject({
      name: 'CancelledFailure',
      message: 'Exit code 3.',
      details: [RESULT],
    })
  })

  it.each([
    ['auth', undefined, 'Denied.'],
    ['invalid', 'Set a GPU.', 'Denied. Set a GPU.'],
    ['quota', 'Ask for more.', 'Denied. Ask for more.'],
  ] as const)('is not attempted if a worker refuses it: %s', async (reason, hint, message) => {
    played.answers['resolveJob'] = () =>
      failing({ class: reason, message: 'Denied.', hint: hint ? hint : undefined })
    await expect(live()).rejects.toMatchObject({ type: reason, message })
    expect(played.logged).toEqual([['Job failed', { reason, message }]])
    expect(played.names()).toEqual(['resolveJob', 'finishJob'])
    expect(played.timers).toEqual([])
    expect(played.inputsOf('finishJob')[0]).toMatchObject({ artifacts: [], status: { state: 'failed' } })
  })

  it.each([
    [undefined, 'Internal error: No such thing.'],
    ['Report it.', 'Internal error: No such thing. Report it.'],
  ])('is finished after an error that would have closed it: with the hint %s', async (hint, message) => {
    played.answers['plan'] = () => failing({ class: 'invalid', message: 'No such thing.', hint })
    played.answers['attempt'] = () => undefined
    await expect(live()).rejects.toMatchObject({ type: 'unclassified', message })
    expect(played.inputsOf('finishJob')).toMatchObject([{ status: { state: 'failed' } }])
  })
})

describe('a job whose worker has trouble', () => {
  it('is resolved and finished once that is over, and says so meanwhile', async () => {
    for (const name of ['resolveJob', 'finishJob']) {
      const done = played.answers[name]!
      played.answers[name] = () => {
        played.answers[name] = done
        return failing({ class: 'transient', message: `No store for ${name}.` })
      }
    }
    const ended = job(INPUT)
    await played.settled()
    expect(status().trouble).toBe('No store for resolveJob.')
    expect(await played.endPause()).toBe(10 * SECOND_MS)
    expect(status()).toMatchObject({ trouble: 'No store for finishJob.', state: 'succeeded' })
    await played.endPause()
    expect(await played.endOf(ended)).toBe(RESULT)
    // The trouble of the moment is not part of the record.
    for (const { status: settled } of played.inputsOf('finishJob'))
      expect(settled).toEqual(expect.not.objectContaining({ trouble: expect.anything() }))
    expect(played.inputsOf('finishJob').map(({ recordSeq }) => recordSeq)).toEqual([6, 7])
  })
})
