/** Early ends of a run of a schedule: what is bought is not forgotten, and nothing is begun. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import type { ReservationInput, ReservationNotice, ReservationState } from '../../core/reservation/reserving'
import type { RetrainInput, RunJob, RunRef } from '../../core/retraining/run'
import type { ModelRef, PromotionRule, ReservedStep } from '../../core/retraining/retraining'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type * as Capacity from '../../workflows/retraining/capacity'
import type * as Jobs from '../../workflows/retraining/jobs'
import type * as Models from '../../workflows/retraining/model'
import type * as Releases from '../../workflows/retraining/release'
import type * as Runs from '../../workflows/retraining/run'
import type * as Retrain from '../../workflows/retraining/retrain'
import { ownedOf } from '../planner/reserving/facts'
import { SCHEDULE, SPEC_BY_HAND } from './retraining'
import { conditionOn, settledWith, type Wait } from './waits'

let waiting: Wait[]
/** What the run asked of the world, in order. */
let asked: string[]
/** Answers of activities, and of children. */
let answers: Record<string, (input: never) => unknown>
let handlers: Map<string, (update: object) => unknown>

/** The answer of the world to what is asked. */
const answer = async (name: string, input: unknown): Promise<unknown> => {
  asked.push(name)
  return (answers[name] as ((input: unknown) => unknown) | undefined)?.(input) ?? null
}

jest.mock('@temporalio/workflow', () => {
  class CancellationScope {
    static current = (): object => ({ cancelRequested: new Promise(() => undefined) })
    static nonCancellable = async (work: () => unknown): Promise<unknown> => work()
    run = (work: () => unknown): unknown => work()
    cancel = (): void => void asked.push('cancel the job')
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    condition: conditionOn(() => waiting),
    startChild: async (_: string, { workflowId }: { workflowId: string }) => {
      await answer(`start ${workflowId}`, undefined)
      return { result: () => new Promise(() => undefined) }
    },
    executeChild: (_: string, { workflowId }: { workflowId: string }) => answer(workflowId, undefined),
    getExternalWorkflowHandle: (id: string) => ({ cancel: () => answer(`cancel ${id}`, undefined) }),
    workflowInfo: () => ({
      workflowId: `retrain/${SCHEDULE}-1`,
      runId: 'run',
      firstExecutionRunId: 'run',
      startTime: new Date(0),
      searchAttributes: {},
      continueAsNewSuggested: false,
    }),
    ParentClosePolicy: {},
    allHandlersFinished: () => true,
    setCurrentDetails: () => undefined,
    defineQuery: String,
    defineSignal: String,
    defineUpdate: String,
    setHandler: (name: string, handle: (update: object) => unknown) => handlers.set(name, handle),
  }
})
jest.mock('../../workflows/attributes', () => ({
  setAttributes: () => undefined,
  attributesOf: () => [],
}))
jest.mock('../../workflows/retraining/activities', () => {
  const activities = new Proxy({}, { get: (_, name: string) => (input: unknown) => answer(name, input) })
  return {
    retraining: activities,
    attempted: activities,
    awaited: activities,
    decide: (_: object, name: string, input: unknown) => answer(name, input),
  }
})
const { RetrainRun } = jest.requireActual<typeof Runs>('../../workflows/retraining/run')
const { getCapacity } = jest.requireActual<typeof Capacity>('../../workflows/retraining/capacity')
const { judgeAndPromote } = jest.requireActual<typeof Models>('../../workflows/retraining/model')
const { releaseAll } = jest.requireActual<typeof Releases>('../../workflows/retraining/release')
const { runPart } = jest.requireActual<typeof Jobs>('../../workflows/retraining/jobs')
const { retrain } = jest.requireActual<typeof Retrain>('../../workflows/retraining/retrain')

const SKIPPED = { state: 'skipped', message: 'Skipped by ada.' } as const
const RUN: RunRef = {
  id: '2027-01-01',
  jobPrefix: 'ranker-20270101',
  dates: {
    nominal: '2027-01-01',
    opensAtMs: 0,
    zone: 'UTC',
    isByHand: true,
    notes: [],
    window: { start: '2026-10-01', end: '2027-01-01' },
  },
}
const STEP: ReservedStep = {
  kind: 'hourly',
  backend: 'ec2',
  types: ['p5'],
  count: 1,
  durationMs: DAY_MS,
  startWithinMs: DAY_MS,
}
const SPEC = { ...SPEC_BY_HAND, capacity: { steps: [STEP, STEP], fallbackMs: 0 } }
const INPUT: RetrainInput = {
  schedule: SCHEDULE,
  revision: 1,
  spec: SPEC,
  bundle: null,
  secrets: [],
  owner: 'ada',
  deployment: 'dep',
}
const MODEL: ModelRef = {
  jobId: 'job',
  checkpointId: '1-1',
  step: 1,
  digest: 'd',
  artifactsUrl: 'u',
}

const inputOf = (reservationId: string): ReservationInput => ({
  reservationId,
  owner: 'ada',
  deployment: 'dep',
  submittedAtMs: 0,
  rule: { searchUntilAtMs: 0 },
  wish: { backend: 'ec2', kind: 'hourly', types: ['p5'], count: 1, durationMs: DAY_MS },
})
const HOURLY = { reservation: { ...ownedOf(), kind: 'hourly' as const } }
const noticeOf = (
  id: string,
  state: ReservationState,
  more: Partial<ReservationNotice> = {},
): ReservationNotice => ({ id, state, message: 'So.', spentMicroUsd: microUsd(1), ...more })

const runOf = (more: Partial<RetrainInput> = {}): Runs.RetrainRun => {
  const run = new RetrainRun({ ...INPUT, ...more })
  run.resolved(RUN)
  return run
}

const settled = (): Promise<void> => settledWith(waiting)
/** Ends what waits by its limit. */
const expire = async (limitMs: number): Promise<void> => {
  const [one] = waiting.filter((each) => Math.abs((each.limitMs ?? 0) - limitMs) < MINUTE_MS)
  if (one === undefined) throw new Error(`nothing waits for ${limitMs}: ${JSON.stringify(waiting)}`)
  waiting = waiting.filter((each) => each !== one)
  one.end(one.isSo())
  await settled()
}
const ids = { first: 'res-1', second: 'res-2' }

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(HOUR_MS)
  waiting = []
  asked = []
  handlers = new Map()
  answers = {
    resolveRun: () => RUN,
    decideCapacity: ({ tried }: { tried: number }) =>
      [ids.first, ids.second]
        .slice(tried)
        .map((id) => ({ kind: 'reserve', index: tried, message: 'Looking.', input: inputOf(id) }))[0] ?? {
        kind: 'give-up',
        message: 'Every way was tried.',
      },
    releaseCapacity: ({ reservationId }: { reservationId: string }) => {
      asked.push(`give back ${reservationId}`)
      return { message: `Gave back ${reservationId}.` }
    },
    readReservation: ({ reservationId }: { reservationId: string }) => noticeOf(reservationId, 'ended'),
    finishRun: ({ result }: { result: object }) => result,
  }
})

describe('a search that is called off', () => {
  it('is waited for: what a purchase under way has bought is given back, and its cost counts', async () => {
    const run = runOf()
    const getting = getCapacity(run)
    await settled()
    run.noticed(noticeOf(ids.first, 'buying'))
    run.stop = SKIPPED
    await settled()
    expect(asked.at(-1)).toBe('cancel reservation/res-1')
    let isOver = false
    void getting.then(() => (isOver = true))
    await settled()
    expect(isOver).toBe(false)
    run.noticed(noticeOf(ids.first, 'scheduled', HOURLY))
    await settled()
    expect(isOver).toBe(true)
    const releasing = releaseAll(run)
    await settled()
    expect(asked).toContain('give back res-1')
    run.noticed(noticeOf(ids.first, 'ended', { ...HOURLY, spentMicroUsd: microUsd(7) }))
    await settled()
    await releasing
    expect(run.spentMicroUsd).toBe(microUsd(7))
  })

  it('is named in a warning if it does not answer', async () => {
    const run = runOf()
    const getting = getCapacity(run)
    await settled()
    run.stop = SKIPPED
    await settled()
    await expire(10 * MINUTE_MS)
    await getting
    expect(run.status.warnings).toEqual([
      'The search res-1 has not ended: see `crucible reservations show res-1`.',
    ])
  })
})

describe('a search that is silent after its end', () => {
  it('is ended before the next one begins', async () => {
    const run = runOf()
    void getCapacity(run)
    await settled()
    jest.spyOn(Date, 'now').mockReturnValue(HOUR_MS + DAY_MS)
    await expire(DAY_MS)
    expect(asked.at(-1)).toBe('cancel reservation/res-1')
    await expire(10 * MINUTE_MS)
    expect(asked).toContain('start reservation/res-2')
    expect(run.status.reservations.map(({ state }) => state)).toEqual(['unavailable', 'searching'])
  })

  it('is waited for if it may have bought: another one would buy again', async () => {
    const run = runOf()
    void getCapacity(run)
    await settled()
    run.noticed(noticeOf(ids.first, 'undecided'))
    await settled()
    jest.spyOn(Date, 'now').mockReturnValue(HOUR_MS + DAY_MS)
    await expire(DAY_MS)
    expect(waiting).toHaveLength(1)
    expect(asked.filter((each) => /cancel|res-2/.test(each))).toEqual([])
    run.noticed(noticeOf(ids.first, 'scheduled', HOURLY))
    await settled()
    expect(run.placement).toMatchObject({ kind: 'reserved' })
  })
})

describe('a search that a fresh history continues', () => {
  const carried = (more: object): Runs.RetrainRun => {
    const status = { ...runOf().status, reservations: [noticeOf(ids.first, 'searching')] }
    const carry = {
      status,
      run: RUN,
      stepsTried: 1,
      trainings: 0,
      recordSeq: 5,
      search: inputOf(ids.first),
      ...more,
    }
    return runOf({ carry })
  }

  it('is begun if the old history had trouble before that', async () => {
    const run = carried({ isUnbegun: true })
    void getCapacity(run)
    await settled()
    expect(asked).toEqual(['requestCapacity', 'start reservation/res-1'])
    expect(run.status.reservations).toHaveLength(1)
    expect(run.isUnbegun).toBe(false)
  })

  it('is not begun again', async () => {
    answers['readReservation'] = () => noticeOf(ids.first, 'searching')
    void getCapacity(carried({}))
    await settled()
    expect(asked).toEqual(['readReservation'])
  })
})

describe('hourly capacity', () => {
  it('of every step is given back at the end, once, and each bill is waited for', async () => {
    const run = runOf()
    for (const id of [ids.first, ids.second, 'res-3']) run.asked(id)
    run.noticed(noticeOf(ids.first, 'active', HOURLY))
    run.noticed(noticeOf(ids.second, 'releasing', HOURLY))
    run.noticed(noticeOf('res-3', 'ended', HOURLY))
    const releasing = releaseAll(run)
    await settled()
    expect(asked.filter((each) => each.startsWith('give back'))).toEqual(['give back res-1'])
    await expire(10 * MINUTE_MS)
    await expire(10 * MINUTE_MS)
    await releasing
    expect(run.status.reservations.map(({ state }) => state)).toEqual(['ended', 'ended', 'ended'])
  })

  it('that could not be given back is named in a warning', async () => {
    const run = runOf()
    run.asked(ids.first)
    run.noticed(noticeOf(ids.first, 'active', HOURLY))
    answers['releaseCapacity'] = () => {
      throw new Error('no answer')
    }
    void releaseAll(run)
    await settled()
    expect(run.status.warnings).toEqual(['The capacity res-1 was not released: no answer'])
  })
})

describe('hourly capacity that a training could not use', () => {
  const job = 'job/ranker-20270101-train'
  const refused = (attempts: number) => () => {
    throw Object.assign(new Error('no place'), { attempts })
  }
  const begun = async (attempts: number): Promise<void> => {
    answers = {
      ...answers,
      checkRun: () => ({ problems: [] }),
      [job]: refused(attempts),
      prepareJob: ({ jobId }: { jobId: string }) => ({ jobId, spec: { name: 'n', run: 'r' } }),
      resultOf: () => ({ state: 'failed', reason: 'no-placement', message: 'No place.', attempts }),
      decideOverrun: () => ({ kind: 'continue', backends: [], message: 'It continues.' }),
    }
    void retrain(INPUT)
    await settled()
    const reservation = { ...HOURLY.reservation, startsAtMs: 0 }
    handlers.get('reservation')!(noticeOf(ids.first, 'active', { reservation }))
    for (let turn = 0; turn < 5; turn++) await settled()
  }

  it.each([
    ['before the next step begins, if it has not begun', 0, 'start reservation/res-2'],
    ['before it continues elsewhere', 1, 'job/ranker-20270101-train-t2'],
  ])('is given back %s', async (_, attempts, next) => {
    await begun(attempts)
    const since = asked.slice(asked.indexOf(job))
    expect(since).toEqual(expect.arrayContaining(['give back res-1', next]))
    expect(since.indexOf('give back res-1')).toBeLessThan(since.indexOf(next))
  })
})

describe('a job of a run that is stopped', () => {
  it.each(['before it is prepared', 'while it is prepared'])('is not started: %s', async (when) => {
    const run = runOf()
    if (when === 'before it is prepared') run.stop = SKIPPED
    answers['prepareJob'] = ({ jobId }: { jobId: string }) => {
      run.stop = SKIPPED
      return { jobId, spec: { name: 'n', run: 'r' } }
    }
    const end = await runPart(run, { part: 'rehearsal' })
    expect(end).toEqual({ jobId: 'ranker-20270101-reh', isSucceeded: false, message: 'Skipped by ada.' })
    expect(asked).toEqual(when === 'before it is prepared' ? [] : ['prepareJob'])
    expect(run.status.jobs).toEqual([])
  })
})

describe('a rehearsal', () => {
  it('is not begun if the capacity is lost during the checks', async () => {
    const rehearsal = { run: 'train --steps 1' }
    void retrain({ ...INPUT, spec: { ...SPEC, rehearsal } })
    await settled()
    const notify = handlers.get('reservation')!
    notify(noticeOf(ids.first, 'scheduled', { reservation: { ...HOURLY.reservation, startsAtMs: DAY_MS } }))
    answers['checkRun'] = () => {
      notify(noticeOf(ids.first, 'failed', HOURLY))
      return { problems: [] }
    }
    await settled()
    await expire(DAY_MS - HOUR_MS)
    expect(asked).toContain('start reservation/res-2')
    expect(asked).not.toContain('prepareJob')
  })
})

describe('a model', () => {
  const trained = { model: MODEL, source: { jobId: 'job' } } as unknown as Parameters<
    typeof judgeAndPromote
  >[1]
  const promoting = (promotion: Partial<PromotionRule>): Runs.RetrainRun => {
    const rule = { model: SCHEDULE, isAsked: true, askMs: 3 * DAY_MS, ...promotion }
    return runOf({ spec: { ...SPEC, promotion: rule } })
  }

  it('is asked for without hourly capacity that costs money meanwhile, and not after the time of the answer', async () => {
    const run = promoting({})
    run.asked(ids.first)
    run.noticed(noticeOf(ids.first, 'active', HOURLY))
    const judging = judgeAndPromote(run, trained)
    await settled()
    expect(asked.at(-1)).toBe('give back res-1')
    expect(run).toMatchObject({ isAsking: true, status: { state: 'awaiting-approval' } })
    await expire(3 * DAY_MS)
    expect(await judging).toMatchObject({
      state: 'kept',
      message: expect.stringMatching(/^It was not approved within 3d\./),
    })
    expect(run.isAsking).toBe(false)
  })

  it.each([
    ['is in production if its command was done when the run was cancelled', 'succeeded', 'promoted'],
    ['is not if the command was cancelled with the run', 'cancelled', 'cancelled'],
  ] as const)('%s', async (_, state: NonNullable<RunJob['state']>, end) => {
    const run = promoting({ isAsked: false, job: { run: 'publish' } })
    answers = {
      ...answers,
      claimPromotion: () => ({ production: null }),
      prepareJob: ({ jobId }: { jobId: string }) => ({ jobId, spec: { name: 'n', run: 'r' } }),
      'job/ranker-20270101-promo': () => {
        run.stop = { state: 'cancelled', message: 'Cancelled in Temporal.' }
        if (state === 'cancelled') throw new Error('cancelled')
        return { state, message: 'Done.', costMicroUsd: 1 }
      },
      promoteModel: () => ({ ...MODEL, seq: 4 }),
    }
    const judging = judgeAndPromote(run, trained)
    await settled()
    expect(await judging).toMatchObject({ state: end })
    expect(asked.includes('promoteModel')).toBe(end === 'promoted')
  })
})
