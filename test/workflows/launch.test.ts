import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, RetryState, TimeoutFailure } from '@temporalio/common'
import type { LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import { budgetReserveMs } from '../../core/money/budget'
import type { AttemptInput } from '../../core/messages'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Launch from '../../workflows/job/launch'

const HANDLE = { id: 'm-1' } as MachineHandle
const INPUT = {
  order: { backend: 'here', runnerStart: 'with-launch' },
  launchSeq: 3,
  settleSeq: 4,
} as AttemptInput

/** What each activity answers or throws, which were asked, and the arguments of the last one. */
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
  const starting = (_backend: string, withinMs: number) => {
    asked.push(`start within ${withinMs}`)
    return { start: act('start') }
  }
  return {
    orchestrator,
    starting,
    on: () => ({ launching: { launch: act('launch') }, verbs: { find: act('find') } }),
  }
})

jest.mock('../../workflows/job/launch-in-turn', () => ({
  launchInTurn: async () => {
    asked.push('launch in turn')
    return answers['launch in turn']!()
  },
}))

const tested = jest.requireActual<typeof Launch>('../../workflows/job/launch')
const { failedLaunch, startRunner } = tested
const launch = (input: AttemptInput): ReturnType<typeof tested.launch> =>
  tested.launch(input, { drain: null })

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
      kind: 'nothing',
      handle: null,
      end: { kind: 'failed', isLaunched: false, failure },
    })
    expect(asked).toEqual(['launch'])
  })

  it('that no worker picks up is no capacity, and is taken back', async () => {
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

  it('that waits for its turn is sent in another way, with the same outcomes', async () => {
    const paced = { ...INPUT, order: { ...INPUT.order, isPaced: true as const } }
    answers = { 'launch in turn': answering({ kind: 'launched', handle: HANDLE }) }
    expect(await launch(paced)).toEqual({ kind: 'machine', handle: HANDLE })
    const settlement = { costMicroUsd: 0 }
    answers = { 'launch in turn': () => ({ kind: 'unserved' }), withdraw: () => ({ settlement }) }
    expect(await launch(paced)).toEqual({ kind: 'untouched', settlement })
    expect(told).toMatchObject({ end: { failure: { class: 'capacity' } } })
    answers = {
      'launch in turn': () => ({ kind: 'called-off', by: 'cancelled' }),
      withdraw: () => ({ settlement: null }),
    }
    const end = { kind: 'stopped', by: 'cancelled' }
    expect(await launch(paced)).toEqual({ kind: 'nothing', handle: null, end })
    expect(told).toMatchObject({ recordSeq: INPUT.settleSeq, end })
    expect(asked.filter((each) => each === 'launch')).toEqual([])
  })

  it('that broke on the way is settled as a failure', () => {
    expect(failedLaunch(new Error('boom'))).toMatchObject({
      kind: 'nothing',
      end: { isLaunched: false, failure: { class: 'unclassified', message: 'boom' } },
    })
  })
})

describe('the start of a runner', () => {
  const NOW_MS = 1_795_000_000_000
  const TIMING = { ...DEFAULT_TIMING, startWithinMs: 20 * MINUTE_MS, silenceMs: 5 * MINUTE_MS }
  const PRICE = { priceMaxMicroUsdPerHour: 1_000_000 }
  const startAfter = (sinceMs: number, microUsd?: number): ReturnType<typeof startRunner> => {
    jest.useFakeTimers({ now: NOW_MS })
    const budget = microUsd === undefined ? null : { microUsd, ...PRICE }
    const order = { backend: 'here', runner: { limits: { seq: 0, deadlineAtMs: null, budget } } }
    const input = { ...INPUT, order, timing: TIMING } as unknown as AttemptInput
    const beganAtMs = NOW_MS - sinceMs
    return startRunner(input, { ...HANDLE, launchedAtMs: beganAtMs }, beganAtMs)
  }
  afterEach(() => {
    jest.useRealTimers()
  })

  it('is tried for as long as a runner may still begin, and at least for one silence', async () => {
    answers = { start: () => undefined }
    expect(await startAfter(MINUTE_MS)).toBe('started')
    expect(await startAfter(19 * MINUTE_MS)).toBe('started')
    expect(asked).toEqual([
      `start within ${19 * MINUTE_MS}`,
      'start',
      `start within ${5 * MINUTE_MS}`,
      'start',
    ])
  })

  it('is tried for no longer than the budget pays, less what stopping takes and what clocks may differ', async () => {
    answers = { start: () => undefined }
    const paidMs = budgetReserveMs(TIMING) + CLOCK_SLACK_MS + 3 * MINUTE_MS
    expect(await startAfter(MINUTE_MS, Math.ceil((paidMs / HOUR_MS) * 1_000_000))).toBe('started')
    const [within] = asked
    const forMs = Number(/\d+/.exec(within!)![0])
    expect(forMs).toBeGreaterThanOrEqual(2 * MINUTE_MS)
    expect(forMs).toBeLessThan(2 * MINUTE_MS + 1_000)
    asked = []
    // Without any time left, too: a time limit of nothing would be none.
    expect(await startAfter(3 * MINUTE_MS, Math.ceil((paidMs / HOUR_MS) * 1_000_000))).toBe('unanswered')
    expect(await startAfter(4 * MINUTE_MS, Math.floor((paidMs / HOUR_MS) * 1_000_000))).toBe('unanswered')
    expect(asked).toEqual([])
  })

  it('that was refused is a failure, and one without an answer is not', async () => {
    const refusal = new ActivityFailure(
      'failed',
      'start',
      '1',
      RetryState.NON_RETRYABLE_FAILURE,
      undefined,
      ApplicationFailure.nonRetryable('no rights', 'auth', { class: 'auth', message: 'no rights' }),
    )
    answers = {
      start: () => {
        throw refusal
      },
    }
    expect(await startAfter(0)).toMatchObject({
      kind: 'failed',
      isLaunched: true,
      failure: { class: 'auth' },
    })
    answers = { start: timedOut('SCHEDULE_TO_CLOSE') }
    expect(await startAfter(0)).toBe('unanswered')
  })
})
