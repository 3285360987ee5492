/** How a run of a schedule gets capacity, and how its jobs begin and end: with what the world answers. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import type { ReservationInput, ReservationNotice } from '../../core/reservation/reserving'
import type { RunJob } from '../../core/retraining/run'
import { DAY_MS, MINUTE_MS } from '../../core/time/time'
import type * as Capacity from '../../workflows/retraining/capacity'
import type * as Jobs from '../../workflows/retraining/jobs'
import type { Retries } from '../../workflows/forever'
import type { RetrainRun } from '../../workflows/retraining/run'
import { ownedOf } from '../planner/reserving/facts'
import { SCHEDULE } from './retraining'
import { conditionOn, settledWith, type Wait } from './waits'

let asked: [what: string, input: unknown][]
let answers: Record<string, (input: never) => unknown>
let waiting: Wait[]
let endChild: () => void
let cancels: (() => void)[]

const answer = async (name: string, input?: unknown): Promise<unknown> => {
  asked.push([name, input])
  return answers[name]?.(input as never)
}

jest.mock('@temporalio/workflow', () => {
  class CancellationScope {
    static current = (): object => ({
      consideredCancelled: false,
      cancelRequested: new Promise((_, reject) => cancels.push(() => reject(new Error('cancelled')))),
    })
    static nonCancellable = async (work: () => unknown): Promise<unknown> => work()
    run = (work: () => unknown): unknown => work()
    cancel = (): void => {
      asked.push(['cancel the job', undefined])
      cancels.forEach((cancel) => cancel())
    }
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    ParentClosePolicy: { ABANDON: 'ABANDON' },
    defineSignal: String,
    condition: conditionOn(() => waiting),
    startChild: async (type: string, options: object) => {
      await answer(type, options)
      return { result: () => new Promise<void>((end) => (endChild = end)) }
    },
    executeChild: (type: string, options: object) => answer(type, options),
    getExternalWorkflowHandle: (id: string) => ({ cancel: () => answer(`cancel ${id}`) }),
    workflowInfo: () => ({ workflowId: `retrain/${SCHEDULE}-1` }),
  }
})
jest.mock('../../workflows/attributes', () => ({ attributesOf: (attributes: object) => attributes }))
jest.mock('../../workflows/retraining/activities', () => {
  const activities = new Proxy({}, { get: (_, name: string) => (input: object) => answer(name, input) })
  return {
    retraining: activities,
    awaited: activities,
    decide: (_: object, name: string, input: object) => answer(name, input),
  }
})
const { getCapacity } = jest.requireActual<typeof Capacity>('../../workflows/retraining/capacity')
const { prepare, runPart } = jest.requireActual<typeof Jobs>('../../workflows/retraining/jobs')

const START_MS = 100 * DAY_MS
const inputOf = (reservationId: string): ReservationInput => ({
  reservationId,
  owner: 'ada',
  deployment: 'dep',
  submittedAtMs: 0,
  rule: { searchUntilAtMs: START_MS + DAY_MS },
  wish: { backend: 'ec2', kind: 'hourly', types: ['p5'], count: 1, durationMs: DAY_MS },
})
const STOP = { state: 'skipped', message: 'Skipped by ada.' } as const

let nowMs: number
let run: RetrainRun
let warnings: string[]
let fresh: number

function begin(more: Partial<RetrainRun> = {}): void {
  ;[warnings, fresh] = [[], 0]
  const reservations: ReservationNotice[] = []
  run = {
    input: { schedule: SCHEDULE, owner: 'ada', spec: { capacity: {} } },
    news: [],
    isLong: false,
    run: { id: '2027-01-01', jobPrefix: 'ranker' },
    stepsTried: 0,
    trainings: 3,
    spentMicroUsd: 4,
    status: { jobs: [], reservations },
    isUnbegun: false,
    leftMicroUsd: 9,
    retries: { pause: async () => undefined } as unknown as Retries,
    get notice() {
      return reservations.at(-1)
    },
    task: () => ({ recordSeq: 7 }),
    asked: (id: string) =>
      void reservations.push({ id, state: 'searching', message: 'Asked for.', spentMicroUsd: 0 }),
    noticed: (notice: ReservationNotice) => void reservations.splice(-1, 1, notice),
    move: () => undefined,
    update: (changes: object) => Object.assign(run.status, changes),
    warn: (...words: string[]) => void warnings.push(...words),
    continueFresh: async () => void (fresh += 1),
    trouble: () => undefined,
  } as unknown as RetrainRun
  Object.assign(run, more)
}

const heard = (state: ReservationNotice['state'], more: Partial<ReservationNotice> = {}): void =>
  run.noticed({ id: run.notice!.id, state, message: 'So.', spentMicroUsd: 0, ...more })
const settled = (): Promise<void> => settledWith(waiting)
/** Lets the one wait come to its limit. */
async function expire(): Promise<number | undefined> {
  const [one] = waiting.splice(0)
  nowMs += one!.limitMs!
  one!.end(one!.isSo())
  await settled()
  return one!.limitMs
}
const names = (): string[] => asked.map(([name]) => name)
const questions = (): unknown[] => asked.filter(([name]) => name === 'decideCapacity').map(([, it]) => it)
const exists = (): never => {
  throw new WorkflowExecutionAlreadyStartedError('exists', 'id', 'type')
}

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  nowMs = START_MS
  jest.spyOn(Date, 'now').mockImplementation(() => nowMs)
  ;[asked, waiting, cancels] = [[], [], []]
  const all = ['res-1', 'res-2']
  answers = {
    decideCapacity: ({ tried }: { tried: number }) =>
      tried < all.length
        ? { kind: 'reserve', index: tried, message: `Step ${tried + 1}.`, input: inputOf(all[tried]!) }
        : { kind: 'give-up', message: 'Every way was tried.' },
    readReservation: () => ({ id: 'res-1', state: 'searching', message: 'So.', spentMicroUsd: 0 }),
  }
  begin()
})

describe('a run that looks for capacity', () => {
  it('tries each step once, with what became of the last, and gives up after all', async () => {
    const getting = getCapacity(run)
    await settled()
    heard('unavailable')
    await settled()
    heard('rejected')
    await settled()
    expect(await getting).toBe('Every way was tried.')
    const common = { recordSeq: 7, trainings: 3, notifyWorkflowId: 'retrain/ranker-1', spentMicroUsd: 4 }
    expect(questions()).toEqual([
      { ...common, tried: 0 },
      { ...common, tried: 1, last: { state: 'unavailable', message: 'So.' } },
      { ...common, tried: 2, last: { state: 'rejected', message: 'So.' } },
    ])
    expect(warnings).toEqual(['Step 2.'])
  })

  it('has it once it is held', async () => {
    const getting = getCapacity(run)
    await settled()
    expect(asked.slice(1)).toEqual([
      ['requestCapacity', inputOf('res-1')],
      [
        'reserveCapacity',
        expect.objectContaining({
          workflowId: 'reservation/res-1',
          args: [inputOf('res-1')],
          typedSearchAttributes: { name: SCHEDULE, owner: 'ada', state: 'searching', backend: 'ec2' },
        }),
      ],
    ])
    heard('active', { reservation: ownedOf() })
    await settled()
    expect(await getting).toBeUndefined()
    expect(run).toMatchObject({
      placement: { kind: 'reserved', backend: 'ec2', reservation: ownedOf() },
      stepsTried: 1,
      isUnbegun: false,
    })
    expect(run.search).toBeUndefined()
  })

  it('tells its news meanwhile, and continues in a fresh history', async () => {
    void getCapacity(run)
    await settled()
    run.news.push('Approve it.')
    await settled()
    expect([warnings, run.news, fresh]).toEqual([['Approve it.'], [], 1])
  })

  it('tries the next step if the workflow of a search ends without a word', async () => {
    void getCapacity(run)
    await settled()
    endChild()
    await settled()
    expect(questions()).toHaveLength(2)
    expect(questions()[1]).toMatchObject({ last: { state: 'unavailable' } })
    expect(names().filter((name) => name.startsWith('cancel'))).toEqual([])
  })

  it.each(['exists already', 'was begun by an earlier history'])(
    'asks once a day how a search is that %s',
    async (which) => {
      if (which === 'exists already') answers['reserveCapacity'] = exists
      else {
        begin({ search: inputOf('res-1') })
        run.asked('res-1')
      }
      void getCapacity(run)
      await settled()
      expect(names().at(-1)).toBe('readReservation')
      asked = []
      expect(await expire()).toBe(DAY_MS)
      expect(names()).toEqual(['readReservation'])
    },
  )

  it('does not hide that a search could not be started', async () => {
    answers['reserveCapacity'] = () => {
      throw ApplicationFailure.create({ message: 'No namespace.' })
    }
    await expect(getCapacity(run)).rejects.toThrow('No namespace.')
  })

  it('waits a day after the end of the search, and looks daily while it may have bought', async () => {
    void getCapacity(run)
    await settled()
    heard('undecided')
    expect(await expire()).toBe(2 * DAY_MS)
    expect(await expire()).toBe(DAY_MS)
    expect(questions()).toHaveLength(1)
  })

  it('begins nothing once it is stopped during a decision, or before', async () => {
    const given = answers['decideCapacity']!
    answers['decideCapacity'] = (input) => ((run.stop = STOP), given(input))
    expect(await getCapacity(run)).toBeUndefined()
    expect(names()).toEqual(['decideCapacity'])
    expect(await getCapacity(run)).toBeUndefined()
    expect(names()).toEqual(['decideCapacity'])
  })

  it.each(['says what it bought', 'is over', 'closes'])(
    'ends a search, which %s, if it is stopped',
    async (how) => {
      const getting = getCapacity(run)
      await settled()
      run.stop = STOP
      await settled()
      expect(names().at(-1)).toBe('cancel reservation/res-1')
      expect(waiting).toMatchObject([{ limitMs: 10 * MINUTE_MS }])
      if (how === 'closes') endChild()
      else if (how === 'is over') heard('rejected')
      else heard('unpaid', { reservation: ownedOf() })
      await settled()
      expect(await getting).toBeUndefined()
      expect([warnings, run.placement]).toEqual([[], undefined])
    },
  )
})

describe('a job of a run', () => {
  const wish = { part: 'rehearsal' } as const
  const prepared = { jobId: 'ranker-reh', spec: { name: 'ranker', run: 'train' } }
  beforeEach(() => {
    answers['prepareJob'] = () => prepared
  })

  it.each(['invalid', 'auth'])('is not begun if its preparation is refused (%s)', async (type) => {
    answers['prepareJob'] = () => {
      throw ApplicationFailure.create({ type, message: 'No secret.' })
    }
    const end = { jobId: 'ranker-reh', isSucceeded: false, message: 'No secret.' }
    expect(await prepare(run, wish)).toEqual(end)
    expect(await runPart(run, wish)).toEqual(end)
    expect(run.status.jobs).toEqual([])
  })

  it('is prepared again after trouble, with the rest of the budget', async () => {
    let tries = 0
    answers['prepareJob'] = () => {
      tries += 1
      if (tries === 1) throw ApplicationFailure.create({ type: 'transient', message: 'No answer.' })
      return prepared
    }
    expect(await prepare(run, wish)).toBe(prepared)
    expect(asked[1]).toEqual([
      'prepareJob',
      { recordSeq: 7, part: 'rehearsal', jobId: 'ranker-reh', budgetMicroUsd: 9 },
    ])
  })

  it.each([
    [{ state: 'succeeded', message: 'Done.', costMicroUsd: 3 }, true, 'Done.', 'succeeded'],
    [{ state: 'failed', message: 'It broke.', costMicroUsd: 3 }, false, 'It broke.', 'failed'],
    [null, false, 'It was terminated by hand, or somebody had taken its workflow id.', 'failed'],
  ])(
    'that an earlier history has started is followed to its end: %j',
    async (result, isSucceeded, message, state) => {
      Object.assign(answers, { job: exists, endOfJob: () => result, resultOf: () => null })
      const end = await runPart(run, wish)
      expect(end).toMatchObject({ jobId: 'ranker-reh', isSucceeded, message })
      const job: RunJob = {
        part: 'rehearsal',
        jobId: 'ranker-reh',
        startedAtMs: START_MS,
        endedAtMs: START_MS,
      }
      expect(run.status.jobs).toEqual([{ ...job, state, ...(result && { costMicroUsd: 3 }) }])
    },
  )

  it('is in the list of jobs from its start, with the beginning of its command', async () => {
    let started: object | undefined
    const command = `train ${'--more '.repeat(20)}`
    answers['prepareJob'] = () => ({ ...prepared, spec: { name: 'ranker', run: command } })
    answers['job'] = (options: object) => ((started = options), { state: 'succeeded', message: 'Done.' })
    await runPart(run, wish)
    expect(started).toMatchObject({
      typedSearchAttributes: {
        name: 'ranker',
        owner: 'ada',
        state: 'pending',
        reason: 'submitted',
        backend: '',
      },
      staticSummary: `ranker: ${command}`.slice(0, 90),
    })
  })

  it('that an earlier history has started is cancelled with the run', async () => {
    let end: (result: object) => void
    Object.assign(answers, { job: exists, endOfJob: () => new Promise((resolve) => (end = resolve)) })
    const running = runPart(run, wish)
    await settled()
    run.stop = STOP
    await settled()
    expect(names().at(-1)).toBe('cancel job/ranker-reh')
    end!({ state: 'cancelled', message: 'Cancelled.' })
    expect(await running).toMatchObject({ isSucceeded: false, message: 'Cancelled.' })
  })

  it('may be told to end early, and is not once it is over', async () => {
    answers['job'] = () => new Promise((resolve) => setImmediate(() => resolve({ message: 'Done.' })))
    await runPart(run, wish, { until: async () => undefined })
    expect(names().at(-1)).toBe('cancel the job')
    asked = []
    const until = async (isOver: () => boolean): Promise<void> => {
      while (!isOver()) await new Promise(setImmediate)
    }
    await runPart(run, wish, { until })
    expect(names()).not.toContain('cancel the job')
  })
})
