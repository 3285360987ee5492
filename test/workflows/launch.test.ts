import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, RetryState, TimeoutFailure } from '@temporalio/common'
import type { LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { AttemptInput } from '../../core/messages'
import type * as Launch from '../../workflows/launch'

const HANDLE = { id: 'm-1' } as MachineHandle
const INPUT = {
  order: { backend: 'here', runnerStart: 'with-launch' },
  ...{ launchSeq: 3, settleSeq: 4 },
} as AttemptInput

/** What each activity answers or throws, which were asked, and what the last one was told. */
let answers: Record<string, () => unknown>
let asked: string[]
let told: unknown

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  sleep: async (durationMs: number) => void asked.push(`sleep ${durationMs}`),
}))
jest.mock('../../workflows/activities', () => {
  const act =
    (name: string) =>
    async (input: unknown): Promise<unknown> => {
      asked.push(name)
      told = input
      return answers[name]!()
    }
  const orchestrator = { withdraw: act('withdraw') }
  return { orchestrator, on: () => ({ launching: { launch: act('launch') }, verbs: { find: act('find') } }) }
})

const { launch, failedLaunch } = jest.requireActual<typeof Launch>('../../workflows/launch')

beforeEach(() => {
  asked = []
  answers = {}
})

function failing(cause: Error): () => never {
  return () => {
    throw new ActivityFailure('failed', 'launch', '1', RetryState.TIMEOUT, undefined, cause)
  }
}

const timedOut = (type: TimeoutFailure['timeoutType']): (() => never) =>
  failing(new TimeoutFailure('timed out', undefined, type))

const answering = (outcome: LaunchOutcome) => () => outcome

describe('a launch', () => {
  it.each(['START_TO_CLOSE', 'HEARTBEAT', 'SCHEDULE_TO_CLOSE'] as const)(
    'whose time is up is unconfirmed, not failed: it is looked for (%s)',
    async (type) => {
      answers = { launch: timedOut(type), find: () => ({ kind: 'found', handles: [HANDLE] }) }
      expect(await launch(INPUT)).toEqual({ kind: 'machine', handle: HANDLE })
      expect(asked).toEqual(['launch', 'find'])
    },
  )

  it('is looked for no sooner than the provider said, and until its lists can be trusted', async () => {
    const looks = [{ kind: 'unsettled', againInMs: 60_000 }, { kind: 'absent' }]
    answers = { launch: answering({ kind: 'unconfirmed', findAfterMs: 5_000 }), find: () => looks.shift() }
    expect(await launch(INPUT)).toMatchObject({
      kind: 'nothing',
      end: { kind: 'failed', isLaunched: false, failure: { class: 'transient' } },
    })
    expect(asked).toEqual(['launch', 'sleep 5000', 'find', 'sleep 60000', 'find'])
  })

  it('that failed in a class certainly bought nothing', async () => {
    const failure = { class: 'quota', message: 'no quota' } as const
    answers = { launch: failing(ApplicationFailure.nonRetryable('no quota', 'quota', failure)) }
    expect(await launch(INPUT)).toEqual({
      ...{ kind: 'nothing', handle: null, end: { kind: 'failed', isLaunched: false, failure } },
    })
    expect(asked).toEqual(['launch'])
  })

  it('that nobody picks up is no capacity, and is taken back', async () => {
    const settlement = { costMicroUsd: 0 }
    answers = { launch: timedOut('SCHEDULE_TO_START'), withdraw: () => ({ settlement }) }
    expect(await launch(INPUT)).toEqual({ kind: 'untouched', settlement })
    expect(told).toMatchObject({
      recordSeq: INPUT.settleSeq,
      end: { failure: { class: 'capacity', hint: 'Start one: `crucible worker here`.' } },
    })
    expect(asked).toEqual(['launch', 'withdraw'])
  })

  it('that somebody had picked up after all is settled', async () => {
    answers = { launch: timedOut('SCHEDULE_TO_START'), withdraw: () => ({ settlement: null }) }
    expect(await launch(INPUT)).toMatchObject({ kind: 'nothing', end: { failure: { class: 'capacity' } } })
  })

  it('that broke on the way is settled as a failure', () => {
    expect(failedLaunch(new Error('boom'))).toMatchObject({
      ...{ kind: 'nothing', end: { isLaunched: false, failure: { class: 'unclassified', message: 'boom' } } },
    })
  })
})
