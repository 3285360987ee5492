/** The money of a month, by its handlers alone: in which order it answers, and what a policy that fails leaves behind. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, RetryState } from '@temporalio/common'
import type { MonthlyLimits, PromiseAnswer, PromiseQuestion, TreasuryState } from '../../core/money/treasury'
import { emptyTreasury } from '../../core/money/treasury'
import type * as Treasury from '../../workflows/treasury/treasury'
import { admit } from '../../planner/plan/monthly-budget'

const handlers = new Map<string, (request?: unknown) => unknown>()
const described = new Map<string, string>()
let details: string
let continued: TreasuryState[]
let isHistoryLong: boolean
let unblock: () => void
/** What the policy was asked; each question waits for its answer. */
let asked: { question: PromiseQuestion; answer: (answer: PromiseAnswer | Error) => void }[]

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  ...{ defineQuery: (name: string) => name, defineUpdate: (name: string) => name },
  defineSignal: (name: string) => name,
  setHandler: (
    name: string,
    handle: (request?: unknown) => unknown,
    { description }: { description: string },
  ) => {
    handlers.set(name, handle)
    described.set(name, description)
  },
  setCurrentDetails: (text: string) => (details = text),
  workflowInfo: () => ({ continueAsNewSuggested: isHistoryLong }),
  allHandlersFinished: () => true,
  condition: async (isMet: () => boolean) => {
    while (!isMet()) await new Promise<void>((resolve) => (unblock = resolve))
  },
  continueAsNew: async (state: TreasuryState) => void continued.push(state),
}))
jest.mock('../../workflows/activities', () => ({
  local: {
    admitBudget: (question: PromiseQuestion) =>
      new Promise((resolve, reject) => {
        asked.push({
          question,
          answer: (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)),
        })
      }),
  },
}))
const { treasury } = jest.requireActual<typeof Treasury>('../../workflows/treasury/treasury')

const LIMITS: MonthlyLimits = { monthMicroUsd: 100, owners: {} }
const PROMISED: PromiseAnswer = { kind: 'promised' }

beforeEach(() => {
  handlers.clear()
  continued = []
  asked = []
  isHistoryLong = false
  void treasury(emptyTreasury('2026-11'))
})

const promise = (jobId: string, microUsd: number): Promise<PromiseAnswer> =>
  handlers.get('promise')!({ jobId, owner: 'ada', microUsd, limits: LIMITS }) as Promise<PromiseAnswer>
const lower = (jobId: string, microUsd: number): Promise<PromiseAnswer> =>
  handlers.get('promise')!({
    jobId,
    owner: 'ada',
    microUsd,
    limits: LIMITS,
    isLowered: true,
  }) as Promise<PromiseAnswer>
const settle = (jobId: string, spentMicroUsd: number): Promise<void> =>
  handlers.get('settle')!({ jobId, owner: 'ada', spentMicroUsd }) as Promise<void>
const stateNow = (): TreasuryState => handlers.get('treasury')!() as TreasuryState

/** Everything that can go on without an answer of the policy has done so. */
const still = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function answerNext(answer?: PromiseAnswer | Error): Promise<PromiseQuestion> {
  await still()
  const next = asked.shift()!
  next.answer(answer ?? admit(next.question))
  await still()
  return next.question
}

function failed(message: string): ActivityFailure {
  const cause = ApplicationFailure.nonRetryable(message)
  return new ActivityFailure(
    message,
    'admitBudget',
    '1',
    RetryState.MAXIMUM_ATTEMPTS_REACHED,
    undefined,
    cause,
  )
}

describe('the money of a month', () => {
  it('asks the policy about one request at a time, each with the outcome of the one before', async () => {
    const both = [promise('job-1', 60), promise('job-2', 60)]
    await still()
    expect(asked).toHaveLength(1)
    expect((await answerNext()).byAll).toEqual({ spentMicroUsd: 0, promisedMicroUsd: 0 })
    expect((await answerNext()).byAll).toEqual({ spentMicroUsd: 0, promisedMicroUsd: 60 })
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['promised', 'refused'])
    expect(Object.keys(stateNow().promised)).toEqual(['job-1'])
  })

  it('does what the policy says, whatever that is', async () => {
    const [generous, strict] = [promise('job-1', 1_000), promise('job-2', 1)]
    await answerNext(PROMISED)
    const refusal = { kind: 'refused', message: 'Not today.', hint: 'Ask tomorrow.' } as const
    await answerNext(refusal)
    expect([await generous, await strict]).toEqual([PROMISED, refusal])
    expect(stateNow()).toMatchObject({ promised: { 'job-1': { microUsd: 1_000 } }, limits: LIMITS })
  })

  it('settles a job after the request that came before, and reserves nothing for it afterwards', async () => {
    const first = promise('job-1', 60)
    await answerNext()
    await first
    const extended = promise('job-1', 80)
    const settled = settle('job-1', 70)
    const late = promise('job-1', 90)
    await answerNext()
    expect(await extended).toEqual(PROMISED)
    await settled
    expect(await late).toEqual(PROMISED)
    expect(stateNow()).toEqual({
      ...{ month: '2026-11', limits: LIMITS },
      ...{ promised: {}, spent: { ada: 70 }, over: ['job-1'] },
    })
    expect(asked).toEqual([])
  })

  it('asks nothing about a request that was granted before', async () => {
    const first = promise('job-1', 60)
    await answerNext()
    await first
    expect(await promise('job-1', 60)).toEqual(PROMISED)
    expect(await promise('job-1', 5)).toEqual(PROMISED)
    expect(stateNow().promised).toEqual({ 'job-1': { owner: 'ada', microUsd: 60 } })
  })

  it('reports a policy that fails as transient, reserves nothing, and continues with the next', async () => {
    const both = [promise('job-1', 60), promise('job-2', 60)]
    const refused = expect(both[0]).rejects.toMatchObject({
      type: 'transient',
      message: 'No worker could check the budget of 2026-11: not registered',
    })
    await answerNext(failed('not registered'))
    await refused
    await answerNext()
    expect(await both[1]).toEqual(PROMISED)
    expect(Object.keys(stateNow().promised)).toEqual(['job-2'])
  })

  it('fails with any other error as it is', async () => {
    const asking = expect(promise('job-1', 60)).rejects.toThrow(/^cancelled$/)
    await answerNext(new Error('cancelled'))
    await asking
  })

  it('shows what each owner has spent and reserved, and what is left', async () => {
    void treasury({
      ...{ month: '2026-11', over: ['job-0'] },
      limits: { monthMicroUsd: 90_000_000, owners: { bob: 20_000_000 } },
      promised: {
        'job-1': { owner: 'ada', microUsd: 30_000_000 },
        'reservation/res-a/1': { owner: 'bob', microUsd: 5_000_000 },
        'reservation/res-a/2': { owner: 'bob', microUsd: 1_000_000 },
      },
      spent: { ada: 4_000_000 },
    })
    expect(details.split('\n')).toEqual([
      '**2026-11**: `$4.00` spent, `$36.00` reserved, `$50.00` left of `$90.00`',
      '',
      '- ada: `$4.00` spent, `$30.00` reserved',
      '- bob: `$0.00` spent, `$6.00` reserved, `$14.00` left of `$20.00`',
      '',
      '1 open job, 2 open purchases of reservations.',
    ])
  })

  it('says in the Temporal UI what it can be asked', () => {
    expect(Object.fromEntries(described)).toEqual({
      treasury: 'What is reserved, and what is spent.',
      promise: 'Reserve the budget of a job.',
      settle: 'Report the end of a job, which releases its unspent money.',
    })
  })

  it('takes all that is reserved and spent into a fresh history', async () => {
    const [first, second] = [promise('job-1', 60), promise('job-2', 30)]
    await answerNext()
    await answerNext()
    await Promise.all([first, second, settle('job-1', 10)])
    isHistoryLong = true
    unblock()
    await still()
    expect(continued).toEqual([stateNow()])
    expect(continued[0]).toMatchObject({ promised: { 'job-2': { microUsd: 30 } }, spent: { ada: 10 } })
  })
})

describe('a raise that is given back', () => {
  it('asks no policy, in its turn', async () => {
    const raised = promise('reservation/res-a/1', 90)
    const lowered = lower('reservation/res-a/1', 20)
    await answerNext()
    expect(await Promise.all([raised, lowered])).toEqual([PROMISED, PROMISED])
    expect(asked).toEqual([])
    expect(stateNow().promised['reservation/res-a/1']).toEqual({ owner: 'ada', microUsd: 20 })
  })
})

describe('money of a part that is split off', () => {
  it('moves out of what is reserved already, and asks no policy', async () => {
    const whole = promise('reservation/res-a/1', 90)
    await answerNext()
    await whole
    const request = { jobId: 'reservation/res-b/1', owner: 'ada', microUsd: 40, limits: LIMITS }
    expect(await handlers.get('promise')!({ ...request, from: 'reservation/res-a/1' })).toEqual(PROMISED)
    expect(asked).toEqual([])
    expect(stateNow().promised).toEqual({
      'reservation/res-a/1': { owner: 'ada', microUsd: 50 },
      'reservation/res-b/1': { owner: 'ada', microUsd: 40 },
    })
  })
})
