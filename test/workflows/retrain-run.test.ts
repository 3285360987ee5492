/** A run of a schedule as its owner sees it, and its news: what a webhook that does not answer may delay. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MINUTE_MS } from '../../core/time'
import type { RetrainCarry, RetrainInput, RetrainState, RunRef, RunTask } from '../../core/retrain-run'
import type * as Runs from '../../workflows/retrain-run'
import { SCHEDULE, SPEC_BY_HAND } from './retraining'

/** A condition that is not met yet, and its limit. */
interface Waiting {
  isSo: () => boolean
  limitMs: number | undefined
  end: (isMet: boolean) => void
}

let waiting: Waiting[]
/** The posts, with what ends each. */
let posts: { seq: number; warnings: string[]; taken: () => void; refused: () => void }[]
let continued: RetrainInput[]
let isSuggested: boolean
let handlers: Map<string, { handle: (update: object) => unknown; validate: (update: object) => void }>

class Continued extends Error {}

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: { current: () => ({ cancelRequested: new Promise(() => undefined) }) },
  condition: (isSo: () => boolean, limitMs?: number) =>
    isSo() ? Promise.resolve(true) : new Promise((end) => waiting.push({ isSo, limitMs, end })),
  continueAsNew: async (input: RetrainInput) => {
    continued.push(input)
    throw new Continued('continues in a fresh history')
  },
  workflowInfo: () => ({
    ...{ workflowId: `retrain/${SCHEDULE}-1`, startTime: new Date(0) },
    continueAsNewSuggested: isSuggested,
  }),
  ...{ allHandlersFinished: () => true, setCurrentDetails: () => undefined },
  ...{ defineQuery: String, defineSignal: String, defineUpdate: String },
  setHandler: (
    name: string,
    handle: (update: object) => unknown,
    { validator = () => undefined }: { validator?: (update: object) => void } = {},
  ) => handlers.set(name, { handle, validate: validator }),
}))
jest.mock('../../workflows/attributes', () => ({ setAttributes: () => undefined }))
jest.mock('../../workflows/retrain-activities', () => ({
  attempted: {
    tellRun: ({ recordSeq, status }: RunTask & { status: { warnings: string[] } }) =>
      new Promise<void>((taken, refuse) => {
        const refused = (): void => refuse(new Error('no answer'))
        posts.push({ seq: recordSeq, warnings: status.warnings, taken, refused })
      }),
  },
}))
const { RetrainRun } = jest.requireActual<typeof Runs>('../../workflows/retrain-run')

const RUN: RunRef = {
  ...{ id: '2027-01-01', jobPrefix: 'ranker-20270101' },
  dates: {
    ...{ nominal: '2027-01-01', opensAtMs: 0, zone: 'UTC', isByHand: false, notes: [] },
    window: { start: '2026-10-01', end: '2027-01-01' },
  },
}

const runWith = (more: Partial<RetrainInput> = {}, notify = {}): Runs.RetrainRun => {
  const run = new RetrainRun({
    ...{ schedule: SCHEDULE, revision: 1, spec: { ...SPEC_BY_HAND, notify }, bundle: null },
    ...{ secrets: [], owner: 'ada', deployment: 'dep', ...more },
  })
  run.resolved(RUN)
  return run
}
const telling = (): Runs.RetrainRun => runWith({}, { webhook: 'https://hooks.test/x' })

/** Lets everything happen that waits for nothing else. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Ends the condition that waits: by what it waits for, or by its limit. */
const endWait = (): Promise<void> => {
  const [{ isSo, end }] = waiting.splice(0) as [Waiting]
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
    const DEAF = 'The webhook did not take the news.'
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
    await carryOf(run)
  })

  it('continues with what the old one knew', async () => {
    const run = runWith()
    run.move('waiting', 'Waiting.', 5)
    run.task(3)
    Object.assign(run, {
      stepsTried: 2,
      trainings: 1,
      isStartedNow: true,
      isChecked: true,
      isRehearsed: true,
    })
    run.placement = { kind: 'open' }
    run.news.push('News.')
    const fresh = runWith({ carry: await carryOf(run) })
    expect(fresh).toMatchObject({
      ...{ stepsTried: 2, trainings: 1, isStartedNow: true, isChecked: true, isRehearsed: true },
      ...{ placement: { kind: 'open' }, news: ['News.'], status: { state: 'waiting', untilAtMs: 5 } },
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
    expect(() => ask(name)).toThrow('No model waits for approval any more')
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

  it('does not begin a training that is skipped, or that has no place', () => {
    const run = inState('waiting')
    run.placement = undefined
    expect(() => ask('startNow')).toThrow('There is no capacity yet.')
    run.placement = { kind: 'open' }
    handlers.get('skipRun')!.handle({ by: 'ada' })
    expect(() => ask('startNow')).toThrow('The run is ending: Skipped by ada.')
  })
})
