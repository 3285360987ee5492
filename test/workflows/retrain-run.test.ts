/** A run of a schedule as its owner sees it, and its news: what a webhook that does not answer may delay. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import type { RetrainCarry, RetrainInput, RetrainState, RunRef, RunTask } from '../../core/retraining/run'
import type { ReservationNotice } from '../../core/reservation/reserving'
import type * as Runs from '../../workflows/retraining/run'
import { ownedOf } from '../planner/reserving/facts'
import { SCHEDULE, SPEC_BY_HAND } from './retraining'
import { conditionOn, type Wait } from './waits'

let waiting: Wait[]
/** The posts, with what ends each. */
let posts: { seq: number; warnings: string[]; taken: () => void; refused: () => void }[]
let continued: RetrainInput[]
let isSuggested: boolean
let cancel: () => void
interface Handler {
  handle: (update: object) => unknown
  validate: (update: object) => void
  description: string | undefined
}
interface HandlerOptions {
  validator?: Handler['validate']
  description?: string
}

let handlers: Map<string, Handler>
/** What the Temporal UI shows. */
let page: string

class Continued extends Error {}

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: {
    current: () => ({
      cancelRequested: new Promise((_, reject) => (cancel = () => reject(new Error('cancelled')))),
    }),
  },
  condition: conditionOn(() => waiting),
  continueAsNew: async (input: RetrainInput) => {
    continued.push(input)
    throw new Continued('continues in a fresh history')
  },
  workflowInfo: () => ({
    workflowId: `retrain/${SCHEDULE}-1`,
    startTime: new Date(0),
    continueAsNewSuggested: isSuggested,
  }),
  allHandlersFinished: () => true,
  setCurrentDetails: (text: string) => (page = text),
  defineQuery: String,
  defineSignal: String,
  defineUpdate: String,
  setHandler: (
    name: string,
    handle: (update: object) => unknown,
    { validator = () => undefined, description }: HandlerOptions = {},
  ) => handlers.set(name, { handle, validate: validator, description }),
}))
jest.mock('../../workflows/attributes', () => ({ setAttributes: () => undefined }))
jest.mock('../../workflows/retraining/activities', () => ({
  attempted: {
    tellRun: ({ recordSeq, status }: RunTask & { status: { warnings: string[] } }) =>
      new Promise<void>((taken, refuse) => {
        const refused = (): void => refuse(new Error('no answer'))
        posts.push({ seq: recordSeq, warnings: status.warnings, taken, refused })
      }),
  },
}))
const { RetrainRun } = jest.requireActual<typeof Runs>('../../workflows/retraining/run')

const RUN: RunRef = {
  id: '2027-01-01',
  jobPrefix: 'ranker-20270101',
  dates: {
    nominal: '2027-01-01',
    opensAtMs: 0,
    zone: 'UTC',
    isByHand: false,
    notes: [],
    window: { start: '2026-10-01', end: '2027-01-01' },
  },
}

const runWith = (more: Partial<RetrainInput> = {}, notify = {}): Runs.RetrainRun => {
  const run = new RetrainRun({
    schedule: SCHEDULE,
    revision: 1,
    spec: { ...SPEC_BY_HAND, notify },
    bundle: null,
    secrets: [],
    owner: 'ada',
    deployment: 'dep',
    ...more,
  })
  run.resolved(RUN)
  return run
}
const telling = (): Runs.RetrainRun => runWith({}, { webhook: 'https://hooks.test/x' })

/** Lets everything happen that waits for nothing else. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Ends the condition that waits: by what it waits for, or by its limit. */
const endWait = (): Promise<void> => {
  const [{ isSo, end }] = waiting.splice(0) as [Wait]
  end(isSo())
  return settled()
}

beforeEach(() => {
  waiting = []
  posts = []
  continued = []
  isSuggested = true
  handlers = new Map()
})

describe('a webhook that does not answer', () => {
  it('holds up the end of a run for its limit, and no longer', async () => {
    const run = telling()
    run.warn('Something.')
    let isTold = false
    void run.told().then(() => (isTold = true))
    await settled()
    expect(isTold).toBe(false)
    expect(waiting).toMatchObject([{ limitMs: 6 * MINUTE_MS }])
    await endWait()
    expect(isTold).toBe(true)
  })

  it('holds up a fresh history for the same limit', async () => {
    const run = telling()
    run.warn('Something.')
    const continuing = run.continueFresh()
    continuing.catch(() => undefined)
    await settled()
    expect(continued).toEqual([])
    expect(waiting).toMatchObject([{ limitMs: 6 * MINUTE_MS }])
    await endWait()
    await expect(continuing).rejects.toThrow(Continued)
    expect(continued).toMatchObject([{ carry: { status: { warnings: ['Something.'] } } }])
  })

  it('holds up nothing once each post is taken or given up, in its order', async () => {
    const run = telling()
    run.warn('First.')
    run.warn('Second.')
    await settled()
    expect(posts.map(({ warnings }) => warnings)).toEqual([['First.']])
    posts[0]!.refused()
    await settled()
    expect(posts.map(({ seq }) => seq)).toEqual([1, 2])
    expect(posts[1]!.warnings).toEqual(['First.', 'Second.'])
    posts[1]!.taken()
    await settled()
    await run.told()
    expect(waiting).toEqual([])
  })

  it('is named once in a row, and again after other warnings', async () => {
    const run = telling()
    const DEAF = 'The webhook refused the event.'
    const refuse = async (...indices: number[]): Promise<void> => {
      for (const index of indices) {
        await settled()
        posts[index]!.refused()
      }
      await settled()
    }
    run.tell()
    run.tell()
    await refuse(0, 1)
    expect(run.status.warnings).toEqual([DEAF])
    run.warn('Another.')
    await refuse(2)
    expect(run.status.warnings).toEqual([DEAF, 'Another.', DEAF])
  })

  it('is not asked at all if the file names none', async () => {
    const run = runWith()
    run.warn('Something.')
    await run.told()
    expect([posts, waiting]).toEqual([[], []])
  })
})

describe('the warnings of a run', () => {
  it('are the last fifty', () => {
    const run = runWith()
    const all = Array.from({ length: 60 }, (_, index) => `Warning ${index}.`)
    run.warn(...all.slice(0, 20))
    for (const one of all.slice(20)) run.warn(one)
    expect(run.status.warnings).toEqual(all.slice(10))
  })
})

describe('a fresh history', () => {
  const carryOf = async (run: Runs.RetrainRun): Promise<RetrainCarry> => {
    await expect(run.continueFresh()).rejects.toThrow(Continued)
    return continued.at(-1)!.carry!
  }

  it('begins only when the old one is long, before the training, and while no job runs', async () => {
    const run = runWith()
    isSuggested = false
    await run.continueFresh()
    isSuggested = true
    run.move('training', 'Training.')
    await run.continueFresh()
    run.move('checking', 'Rehearsing.')
    run.update({ jobs: [{ part: 'rehearsal', jobId: 'job', startedAtMs: 0 }] })
    await run.continueFresh()
    run.update({ jobs: [] })
    run.stop = { state: 'skipped', message: 'Skipped by ada.' }
    await run.continueFresh()
    expect(continued).toEqual([])
    run.stop = undefined
    run.update({ jobs: [{ part: 'rehearsal', jobId: 'job', startedAtMs: 0, endedAtMs: 1 }] })
    await carryOf(run)
  })

  it('does not begin if the run is stopped while its news are posted', async () => {
    const run = telling()
    run.warn('Something.')
    const continuing = run.continueFresh()
    await settled()
    run.stop = { state: 'skipped', message: 'Skipped by ada.' }
    await endWait()
    await continuing
    expect(continued).toEqual([])
  })

  it('continues with what the old one knew', async () => {
    const run = runWith()
    run.move('waiting', 'Waiting.', 5)
    for (let entry = 1; entry <= 3; entry += 1) run.task()
    Object.assign(run, {
      stepsTried: 2,
      trainings: 1,
      isStartedNow: true,
      isUnbegun: true,
      isChecked: true,
      isRehearsed: true,
    })
    run.placement = { kind: 'open' }
    run.news.push('News.')
    const fresh = runWith({ carry: await carryOf(run) })
    expect(fresh).toMatchObject({
      stepsTried: 2,
      trainings: 1,
      isStartedNow: true,
      isChecked: true,
      isRehearsed: true,
      isUnbegun: true,
      placement: { kind: 'open' },
      news: ['News.'],
      status: { state: 'waiting', untilAtMs: 5 },
    })
    expect(fresh.task().recordSeq).toBe(4)
  })

  it('does not show trouble that the old one had', async () => {
    const run = runWith()
    run.trouble({ class: 'transient', message: 'No answer.' })
    expect((await carryOf(run)).status).not.toHaveProperty('trouble')
    expect(run.status.trouble).toBe('No answer.')
  })
})

describe('a reservation of a run', () => {
  const heard = (run: Runs.RetrainRun, id: string, more: Partial<ReservationNotice> = {}): void =>
    void handlers.get('reservation')!.handle({
      id,
      state: 'active',
      message: 'Held.',
      spentMicroUsd: 0,
      ...more,
    })
  const held = ownedOf()
  const moved = ownedOf({ endsAtMs: held.endsAtMs! + 1 })
  let run: Runs.RetrainRun
  beforeEach(() => {
    run = runWith()
    for (const id of ['res-1', 'res-2']) run.asked(id)
    run.placement = { kind: 'reserved', backend: 'ec2', reservation: held }
  })

  it.each([
    [
      'awaiting-approval',
      'Buy it: crucible reservations approve res-2. Do not: crucible reservations reject res-2.',
    ],
    ['undecided', 'See `crucible reservations show res-2`.'],
  ] as const)('that is %s is news, once for each message', (state, how) => {
    for (const message of ['One.', 'One.', 'Two.']) heard(run, 'res-2', { state, message })
    expect(run.news).toHaveLength(2)
    expect(run.news[0]).toBe(`Capacity res-2: One. ${how}`)
  })

  it.each(['searching', 'buying', 'active', 'failed'] as const)('that is %s is no news', (state) => {
    heard(run, 'res-2', { state })
    expect(run.news).toEqual([])
  })

  it('has the end that its last news say, and not that of an earlier one', () => {
    heard(run, 'res-1', { reservation: moved })
    expect(run.placement).toMatchObject({ reservation: held })
    heard(run, 'res-2', { reservation: moved })
    expect(run.placement).toMatchObject({ reservation: moved })
    heard(run, 'res-2')
    expect(run.placement).toMatchObject({ reservation: moved })
  })

  it('is lost once it is over, if the run uses it', () => {
    heard(run, 'res-1', { state: 'failed' })
    expect(run.isCapacityLost).toBe(false)
    heard(run, 'res-2', { state: 'ended' })
    expect(run.isCapacityLost).toBe(true)
    run.placement = { kind: 'open' }
    expect(run.isCapacityLost).toBe(false)
    run.placement = undefined
    expect(run.isCapacityLost).toBe(false)
  })

  it('that the run does not know is not heard', () => {
    heard(run, 'res-3', { spentMicroUsd: 9 })
    expect([run.capacityMicroUsd, run.status.reservations.length]).toEqual([0, 2])
  })
})

describe('the money of a run', () => {
  it.each([
    [100, 60],
    [41, 1],
    [39, 0],
    [undefined, undefined],
  ])('with a budget of %s has %s left after capacity for 30 and a job for 10', (budgetMicroUsd, left) => {
    const spec = { ...SPEC_BY_HAND, ...(budgetMicroUsd !== undefined && { budgetMicroUsd }) }
    const run = runWith({ spec })
    run.asked('res-1')
    run.noticed({ id: 'res-1', state: 'active', message: 'Held.', spentMicroUsd: 30 })
    const job = { part: 'rehearsal', startedAtMs: 0 } as const
    run.update({
      jobs: [
        { ...job, jobId: 'a', costMicroUsd: 10 },
        { ...job, jobId: 'b' },
      ],
    })
    expect(run.leftMicroUsd).toBe(left)
  })
})

describe('a run that is cancelled in Temporal', () => {
  it('stops as that, unless a person was first', async () => {
    const cancelled = { state: 'cancelled', message: 'Cancelled in Temporal.' }
    const run = runWith()
    cancel()
    await settled()
    expect(run.stop).toEqual(cancelled)
    const skipped = runWith()
    handlers.get('skipRun')!.handle({ by: 'ada' })
    cancel()
    await settled()
    expect(skipped.stop).toMatchObject({ state: 'skipped' })
  })
})

describe('what a person asks of a run', () => {
  const ask = (name: string): void => handlers.get(name)!.validate({})
  const inState = (state: RetrainState): Runs.RetrainRun => {
    const run = runWith()
    run.placement = { kind: 'open' }
    run.move(state, '')
    return run
  }

  it.each(['approveModel', 'rejectModel'])('is refused as %s unless its model waits for it', (name) => {
    const run = inState('awaiting-approval')
    expect(() => ask(name)).toThrow('The run is ending; no model awaits approval')
    run.isAsking = true
    ask(name)
    handlers.get(name)!.handle({ by: 'ada' })
    expect(() => ask('approveModel')).toThrow(/The model was (approved|rejected) by ada already\./)
    run.move('training', '')
    expect(() => ask(name)).toThrow('No model waits for approval: the run is training.')
  })

  it.each(['skipRun', 'startNow'])('is refused as %s once the training has begun', (name) => {
    inState('waiting')
    ask(name)
    inState('training')
    expect(() => ask(name)).toThrow(/^The training has begun/)
  })

  it.each([
    ['approveModel', 'approved', 'The model goes into production.'],
    ['rejectModel', 'rejected', 'The old model stays.'],
  ])('is on record as %s, and confirmed', (name, kind, message) => {
    const run = inState('awaiting-approval')
    expect(handlers.get(name)!.handle({ by: 'ada', reason: 'So.' })).toEqual({ message })
    expect(run.status.decision).toMatchObject({ kind, by: 'ada', reason: 'So.' })
  })

  it('as a start begins the training now', () => {
    const run = inState('waiting')
    handlers.get('startNow')!.handle({})
    expect(run.isStartedNow).toBe(true)
  })

  it('is refused for good', () => {
    inState('training')
    expect(() => ask('skipRun')).toThrow(expect.objectContaining({ type: 'invalid', nonRetryable: true }))
  })

  it('does not begin a training that is skipped, or that has no place', () => {
    const run = inState('waiting')
    run.placement = undefined
    expect(() => ask('startNow')).toThrow('No capacity is available yet.')
    run.placement = { kind: 'open' }
    handlers.get('skipRun')!.handle({ by: 'ada' })
    expect(() => ask('startNow')).toThrow('The run is ending: Skipped by ada.')
  })
})

describe('a run in the Temporal UI', () => {
  it('is shown from its start, with the trouble that it has', () => {
    const run = runWith()
    expect(page).toContain('**starting**')
    run.trouble({ class: 'transient', message: 'No answer.' })
    expect(page).toContain('No answer.')
    run.trouble(undefined)
    expect(page).not.toContain('No answer.')
  })

  it('says what each query, signal and update is for', () => {
    runWith()
    expect(handlers.size).toBeGreaterThan(3)
    for (const { description } of handlers.values()) expect(description).toMatch(/^[A-Z].*\.$/)
  })
})

describe('news of a reservation', () => {
  const waits = (message: string): ReservationNotice => ({
    id: 'res-1',
    state: 'awaiting-approval',
    message,
    spentMicroUsd: 0,
  })

  it('that need a person are reported once, and again when they change', () => {
    const run = runWith()
    run.asked('res-1')
    for (const message of ['Costs $5.', 'Costs $5.', 'Costs $6.']) run.noticed(waits(message))
    run.noticed({ ...waits('Costs $6.'), state: 'undecided' })
    expect(run.news).toHaveLength(3)
    expect(run.news[0]).toContain('Capacity res-1: Costs $5.')
  })

  it('are kept of the newest ten reservations', () => {
    const run = runWith()
    for (let count = 1; count <= 12; count++) run.asked(`res-${count}`)
    expect(run.status.reservations.map(({ id }) => id)).toEqual(
      [3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((number) => `res-${number}`),
    )
  })
})
