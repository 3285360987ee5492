/** The main line of a run of a schedule: what it waits for, and how it ends. Its steps are played by the test. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import { carrying } from '../../core/failure'
import type {
  RetrainInput,
  RetrainResult,
  RetrainStatus,
  RunPlacement,
  RunRef,
} from '../../core/retraining/run'
import type { RetrainSpec } from '../../core/retraining/retraining'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type * as Retrain from '../../workflows/retraining/retrain'
import type { RetrainRun } from '../../workflows/retraining/run'
import { ownedOf } from '../planner/reserving/facts'
import { SCHEDULE, SPEC_BY_HAND } from './retraining'
import { conditionOn, type Wait } from './waits'

class Continued extends Error {}

let waiting: Wait[]
let nowMs: number
let info: Record<string, unknown>
let handlers: Map<string, (update: object) => unknown>
/** What was done, in order, and what each step does. */
let asked: [what: string, input: Record<string, unknown>][]
let steps: Record<string, (run: RetrainRun, input: Record<string, unknown>) => unknown>

const step = async (name: string, run: RetrainRun | undefined, input: object): Promise<unknown> => {
  asked.push([name, input as Record<string, unknown>])
  return steps[name]?.(run!, input as Record<string, unknown>)
}

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  CancellationScope: {
    current: () => ({ cancelRequested: new Promise(() => undefined), consideredCancelled: false }),
    nonCancellable: (work: () => unknown) => work(),
  },
  condition: conditionOn(() => waiting),
  continueAsNew: async () => {
    throw new Continued('continues in a fresh history')
  },
  workflowInfo: () => info,
  allHandlersFinished: () => true,
  setCurrentDetails: () => undefined,
  defineQuery: String,
  defineSignal: String,
  defineUpdate: String,
  setHandler: (name: string, handle: (update: object) => unknown) => handlers.set(name, handle),
}))
jest.mock('../../workflows/attributes', () => ({
  setAttributes: (attributes: { state?: string }) =>
    attributes.state === 'starting' && asked.push(['attributes', attributes]),
}))
jest.mock('../../workflows/retraining/activities', () => ({
  retraining: new Proxy({}, { get: (_, name: string) => (input: object) => step(name, undefined, input) }),
}))
jest.mock('../../workflows/retraining/capacity', () => ({
  getCapacity: (run: RetrainRun) => step('getCapacity', run, {}),
}))
jest.mock('../../workflows/retraining/jobs', () => ({
  prepare: (run: RetrainRun, wish: object) => step('prepare', run, wish),
  runPart: (run: RetrainRun, { part }: { part: string }, options: object) => step(part, run, options),
}))
jest.mock('../../workflows/retraining/training', () => ({
  train: (run: RetrainRun, prepared: object) => step('train', run, prepared),
}))
jest.mock('../../workflows/retraining/model', () => ({
  judgeAndPromote: (run: RetrainRun, trained: object) => step('judge', run, trained),
}))
jest.mock('../../workflows/retraining/release', () => ({
  giveBack: (run: RetrainRun) => step('giveBack', run, {}),
  releaseAll: (run: RetrainRun) => step('releaseAll', run, {}),
}))
const { retrain } = jest.requireActual<typeof Retrain>('../../workflows/retraining/retrain')

const START_MS = 100 * DAY_MS
/** The window opens so much later. */
const LEAD_MS = 10 * DAY_MS
const PREPARED = { jobId: 'job' }
const TRAINED = { model: { jobId: 'job', step: 9, digest: 'd' }, source: {} }

const runOf = (opensInMs: number, more: Partial<RunRef['dates']> = {}): RunRef => ({
  id: '2027-01-01',
  jobPrefix: 'ranker-20270101',
  dates: {
    nominal: '2027-01-01',
    opensAtMs: START_MS + opensInMs,
    zone: 'UTC',
    isByHand: false,
    notes: [],
    window: { start: '2026-10-01', end: '2027-01-01' },
    ...more,
  },
})

function begin(spec: Partial<RetrainSpec> = {}): Promise<RetrainResult> {
  const input: RetrainInput = {
    schedule: SCHEDULE,
    revision: 1,
    spec: { ...SPEC_BY_HAND, ...spec },
    bundle: null,
    secrets: [],
    owner: 'ada',
    deployment: 'dep',
  }
  const running = retrain(input)
  running.catch(() => undefined)
  return running
}

const status = (): RetrainStatus => handlers.get('status')!({}) as RetrainStatus
const names = (): string[] => asked.map(([name]) => name).filter((name) => name !== 'attributes')
const inputOf = (name: string): Record<string, unknown> => asked.find(([each]) => each === name)![1]
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
/** Lets a wait come to its end, or end because of what happens. */
async function endWait(happens?: () => void): Promise<string> {
  await settled()
  const [one] = waiting.splice(0)
  if (one === undefined) throw new Error('nothing waits')
  if (happens === undefined) nowMs += one.limitMs!
  else happens()
  one.end(one.isSo())
  await settled()
  return `${one.summary}: ${one.limitMs}`
}
const has =
  (placement: RunPlacement) =>
  (run: RetrainRun): undefined =>
    void (run.placement = placement)
const OPEN: RunPlacement = { kind: 'open' }
const reservedIn = (ms: number): RunPlacement => ({
  kind: 'reserved',
  backend: 'ec2',
  reservation: ownedOf({ startsAtMs: START_MS + ms }),
})
const stop =
  (state: 'skipped' | 'cancelled' = 'skipped') =>
  (run: RetrainRun): void =>
    void (run.stop = { state, message: 'Stopped by ada.' })
/** The reservation is over, as its last news say. */
const loses = (run: RetrainRun, message = 'r-1 failed.'): void => {
  run.asked('res-1')
  run.noticed({ id: 'res-1', state: 'failed', message, spentMicroUsd: 5 })
}

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  nowMs = START_MS
  jest.spyOn(Date, 'now').mockImplementation(() => nowMs)
  ;[waiting, asked] = [[], []]
  handlers = new Map()
  info = {
    workflowId: `retrain/${SCHEDULE}-1`,
    runId: 'run-1',
    firstExecutionRunId: 'run-1',
    startTime: new Date(START_MS),
    searchAttributes: {},
    continueAsNewSuggested: false,
  }
  steps = {
    resolveRun: () => runOf(0),
    getCapacity: has(OPEN),
    checkRun: () => ({ problems: [] }),
    prepare: () => PREPARED,
    train: () => ({ kind: 'trained', trained: TRAINED }),
    judge: () => ({ state: 'promoted', message: 'Version 4 is in production.' }),
    finishRun: (_, { result }) => ({ ...(result as object), endedAtMs: nowMs }),
  }
})

describe('a run whose window is open', () => {
  it('goes through its steps without a wait, and reports', async () => {
    steps['judge'] = (run) => {
      run.update({ jobs: [{ part: 'training', jobId: 'job', startedAtMs: 0, costMicroUsd: 7 }] })
      return { state: 'promoted', message: 'Version 4 is in production.' }
    }
    const result = await begin()
    expect(names()).toEqual([
      'resolveRun',
      'getCapacity',
      'checkRun',
      'prepare',
      'train',
      'judge',
      'releaseAll',
      'finishRun',
    ])
    expect(result).toEqual({
      schedule: SCHEDULE,
      run: runOf(0),
      state: 'promoted',
      message: 'Version 4 is in production.',
      warnings: [],
      startedAtMs: START_MS,
      endedAtMs: START_MS,
      model: TRAINED.model,
      costMicroUsd: 7,
      capacityMicroUsd: 0,
      jobs: status().jobs,
    })
    expect(status()).toMatchObject({ state: 'promoted', endedAtMs: START_MS })
    expect(inputOf('prepare')).toEqual({ part: 'training', placement: OPEN, number: 1 })
    expect(inputOf('train')).toBe(PREPARED)
    expect(inputOf('judge')).toBe(TRAINED)
    expect(inputOf('checkRun')).toMatchObject({ placement: OPEN })
    expect(inputOf('attributes')).toEqual({
      name: SCHEDULE,
      owner: 'ada',
      state: 'starting',
      reason: 'starting',
    })
  })

  it('fails with why it has no capacity, with its result', async () => {
    steps['getCapacity'] = () => 'Every way was tried.'
    const failure = await begin().catch((error: unknown) => error)
    expect(failure).toMatchObject({
      type: 'retraining-failed',
      message: 'Every way was tried.',
      nonRetryable: true,
      details: [{ state: 'failed', message: 'Every way was tried.' }],
    })
    expect(names()).toEqual(['resolveRun', 'getCapacity', 'releaseAll', 'finishRun'])
  })

  it('fails with why its training has failed', async () => {
    steps['train'] = () => ({ kind: 'failed', message: 'It broke.' })
    await expect(begin()).rejects.toThrow('It broke.')
    expect(names()).not.toContain('judge')
  })

  it.each(['getCapacity', 'checkRun', 'prepare', 'train'])(
    'ends as skipped if it is stopped during %s',
    async (name) => {
      let run: RetrainRun
      const capacity = steps['getCapacity']!
      steps['getCapacity'] = (its) => ((run = its), capacity(its, {}))
      const given = steps[name]!
      steps[name] = (its, input) => {
        const answer = given(its ?? run, input)
        stop()(its ?? run)
        return answer
      }
      expect(await begin()).toMatchObject({ state: 'skipped', message: 'Stopped by ada.' })
      expect(names().slice(-3)).toEqual([name, 'releaseAll', 'finishRun'])
    },
  )

  it('that is cancelled closes as cancelled, with its result', async () => {
    steps['getCapacity'] = stop('cancelled')
    await expect(begin()).rejects.toMatchObject({
      name: 'CancelledFailure',
      message: 'Stopped by ada.',
      details: [{ state: 'cancelled' }],
    })
  })

  it('ends with a word by an error that would close it silently, and not by a bug', async () => {
    steps['getCapacity'] = () => {
      throw ApplicationFailure.create({ message: 'Too large.' })
    }
    await expect(begin()).rejects.toThrow('Internal error: Too large.')
    expect(names()).toContain('finishRun')
    asked = []
    steps['getCapacity'] = () => {
      throw new TypeError('a bug')
    }
    await expect(begin()).rejects.toThrow(TypeError)
    expect(names()).not.toContain('finishRun')
  })
})

describe('a run that its schedule does not allow', () => {
  it('fails at once, and reports nothing', async () => {
    const failure = { class: 'auth', code: 'NOT_ALLOWED', message: 'The schedule was deleted.' } as const
    steps['resolveRun'] = () => {
      throw ApplicationFailure.create({ ...carrying(failure), nonRetryable: true })
    }
    await expect(begin()).rejects.toMatchObject({ type: 'auth', message: failure.message })
    expect(names()).toEqual(['resolveRun'])
    expect(status()).toMatchObject({ state: 'failed', message: failure.message })
  })
})

describe('the dates of a run', () => {
  it('are those of the instant at which it began, if no schedule has started it', async () => {
    await begin()
    const { input, ...more } = inputOf('resolveRun')
    expect(input).toMatchObject({ schedule: SCHEDULE, owner: 'ada' })
    expect(more).toEqual({
      workflowId: `retrain/${SCHEDULE}-1`,
      runId: 'run-1',
      scheduledAtMs: START_MS,
    })
  })

  it('are those of the schedule otherwise, also of a run that was reset', async () => {
    const scheduled = [new Date(START_MS - MINUTE_MS)]
    Object.assign(info, {
      firstExecutionRunId: 'run-0',
      searchAttributes: { TemporalScheduledStartTime: scheduled },
    })
    await begin()
    expect(inputOf('resolveRun')).toMatchObject({
      firstRunId: 'run-0',
      runId: 'run-1',
      scheduledAtMs: START_MS - MINUTE_MS,
    })
  })

  it.each([
    [HOUR_MS - 1, []],
    [
      HOUR_MS,
      [
        'It begins 1h after its date: the previous run was not over, the server was down, or it is a backfill.',
      ],
    ],
  ])('are news %s ms later', async (lateMs, warnings) => {
    info['searchAttributes'] = { TemporalScheduledStartTime: [new Date(START_MS - lateMs)] }
    expect((await begin()).warnings).toEqual(warnings)
  })

  it.each([
    [false, ['It moved to Monday.']],
    [true, []],
  ])('have notes, which a run by hand (%s) is not about', async (isByHand, warnings) => {
    steps['resolveRun'] = () => runOf(0, { isByHand, notes: ['It moved to Monday.'] })
    expect((await begin()).warnings).toEqual(warnings)
  })
})

describe('a run before its window', () => {
  beforeEach(() => {
    steps['resolveRun'] = () => runOf(LEAD_MS)
  })
  const CHECKS = { checkMs: 2 * DAY_MS }

  it('checks as early as the file says, prepares five minutes before, and begins when it opens', async () => {
    steps['checkRun'] = () => ({ problems: ['The secret is gone.'] })
    const running = begin(CHECKS)
    await settled()
    expect(status()).toMatchObject({
      state: 'waiting',
      message: 'Waiting until the checks.',
      untilAtMs: START_MS + 8 * DAY_MS,
    })
    expect(await endWait()).toBe(`until the checks: ${8 * DAY_MS}`)
    expect(names().at(-1)).toBe('checkRun')
    expect(await endWait()).toBe(`until the window is near: ${2 * DAY_MS - 5 * MINUTE_MS}`)
    expect(names().at(-1)).toBe('prepare')
    expect(await endWait()).toBe(`until the window opens: ${5 * MINUTE_MS}`)
    expect(await running).toMatchObject({ state: 'promoted', warnings: ['The secret is gone.'] })
  })

  it('waits for capacity that begins later', async () => {
    steps['getCapacity'] = has(reservedIn(LEAD_MS + DAY_MS))
    void begin(CHECKS)
    expect(await endWait()).toBe(`until the checks: ${9 * DAY_MS}`)
  })

  it('waits for its window with capacity that begins earlier, or has begun', async () => {
    steps['getCapacity'] = has({ ...reservedIn(DAY_MS) })
    void begin(CHECKS)
    expect(await endWait()).toBe(`until the checks: ${8 * DAY_MS}`)
  })

  it.each([1, 2, 3])('begins by the word of a person, in each of its waits (%s)', async (wait) => {
    const running = begin(CHECKS)
    for (let before = 1; before < wait; before++) await endWait()
    await endWait(() => handlers.get('startNow')!({}))
    expect(await running).toMatchObject({ state: 'promoted' })
    expect(names()).toEqual(expect.arrayContaining(['checkRun', 'prepare', 'train']))
  })

  it.each([1, 2, 3])('ends by the word of a person, in each of its waits (%s)', async (wait) => {
    const running = begin(CHECKS)
    for (let before = 1; before < wait; before++) await endWait()
    await endWait(() => handlers.get('skipRun')!({ by: 'ada' }))
    expect(await running).toMatchObject({ state: 'skipped', message: 'Skipped by ada.' })
    expect(names()).not.toContain('train')
  })

  it('continues in a fresh history while nothing is prepared, and not after that', async () => {
    let running = begin(CHECKS)
    await endWait(() => (info['continueAsNewSuggested'] = true))
    await expect(running).rejects.toThrow(Continued)
    info['continueAsNewSuggested'] = false
    nowMs = START_MS
    running = begin(CHECKS)
    await endWait()
    await endWait()
    await settled()
    info['continueAsNewSuggested'] = true
    expect(waiting[0]!.isSo()).toBe(false)
    await endWait()
    expect(await running).toMatchObject({ state: 'promoted' })
  })
})

describe('capacity that is lost', () => {
  it.each([1, 2, 3])(
    'before the training leads to the next step, and is given back (wait %s)',
    async (wait) => {
      steps['resolveRun'] = () => runOf(LEAD_MS)
      let run: RetrainRun
      let times = 0
      steps['getCapacity'] = (its) => {
        run = its
        has((times += 1) === 1 ? reservedIn(0) : OPEN)(its)
      }
      const running = begin({ checkMs: 2 * DAY_MS })
      for (let before = 1; before < wait; before++) await endWait()
      await endWait(() => loses(run))
      expect(names().filter((name) => /getCapacity|giveBack/.test(name))).toEqual([
        'getCapacity',
        'giveBack',
        'getCapacity',
      ])
      expect(status().warnings).toEqual([
        'The capacity is lost: r-1 failed. The next step of the file is tried.',
      ])
      while (names().at(-1) !== 'finishRun') await endWait()
      expect(await running).toMatchObject({ state: 'promoted', costMicroUsd: 5, capacityMicroUsd: 5 })
      // What was prepared for the lost place is another job.
      expect(asked.filter(([name]) => name === 'prepare').map(([, { number }]) => number)).toEqual(
        wait === 3 ? [1, 2] : [1],
      )
      // The new place is checked as well, unless its training was prepared.
      expect(names().filter((name) => name === 'checkRun')).toHaveLength(wait === 2 ? 2 : 1)
    },
  )

  it('as the training finds leads to the next step as well', async () => {
    let times = 0
    steps['train'] = () => ((times += 1) === 1 ? { kind: 'lost' } : { kind: 'trained', trained: TRAINED })
    const { warnings } = await begin()
    expect(names().filter((name) => /prepare|giveBack|train|getCap/.test(name))).toEqual([
      'getCapacity',
      'prepare',
      'train',
      'giveBack',
      'getCapacity',
      'prepare',
      'train',
    ])
    expect(warnings).toEqual(['The capacity is lost: its place is lost. The next step of the file is tried.'])
  })
})

describe('a rehearsal', () => {
  const rehearsal = { run: 'train --steps 1' }
  type Until = { until: (isOver: () => boolean) => Promise<void> }
  const ends = (isSucceeded: boolean) => async (_: RetrainRun, options: object) => {
    await (options as Until).until(() => true)
    return { isSucceeded, message: 'It broke.' }
  }
  /** Runs for as long as it may. */
  const lasts = async (_: RetrainRun, options: object): Promise<object> => {
    await (options as Until).until(() => false)
    return { isSucceeded: false, message: 'It had to stop.' }
  }

  it.each([
    ['that succeeds is no news', true, []],
    ['that fails is news, and no reason not to train', false, ['The rehearsal failed: It broke.']],
  ])('%s', async (_, isSucceeded, warnings) => {
    steps['rehearsal'] = ends(isSucceeded)
    expect(await begin({ rehearsal })).toMatchObject({ state: 'promoted', warnings })
    expect(names().slice(2, 4)).toEqual(['checkRun', 'rehearsal'])
  })

  it('of a run that is late on open capacity is waited for without a limit', async () => {
    steps['rehearsal'] = lasts
    void begin({ rehearsal })
    await settled()
    expect(waiting).toMatchObject([{ limitMs: undefined }])
  })

  it('ends five minutes before the window', async () => {
    steps['resolveRun'] = () => runOf(HOUR_MS)
    steps['rehearsal'] = lasts
    void begin({ rehearsal, checkMs: DAY_MS })
    expect(await endWait()).toBe(`until the rehearsal must end: ${55 * MINUTE_MS}`)
    expect(status().warnings).toEqual(['The rehearsal was ended early: the window opens soon.'])
  })

  it('ends if its capacity is lost', async () => {
    let run: RetrainRun
    steps['resolveRun'] = () => runOf(HOUR_MS)
    let times = 0
    steps['getCapacity'] = (its) => {
      run = its
      has((times += 1) === 1 ? reservedIn(0) : OPEN)(its)
    }
    steps['rehearsal'] = lasts
    void begin({ rehearsal, checkMs: DAY_MS })
    await endWait(() => loses(run))
    expect(status().warnings[0]).toBe('The rehearsal was ended early: the capacity was lost.')
  })

  it('is no news if the run is stopped', async () => {
    let run: RetrainRun
    steps['getCapacity'] = (its) => ((run = its), has(OPEN)(its))
    steps['rehearsal'] = () => (stop()(run), { isSucceeded: false, message: 'It had to stop.' })
    expect(await begin({ rehearsal })).toMatchObject({ state: 'skipped', warnings: [] })
  })

  it.each([
    ['the capacity is reserved', reservedIn(0), 0],
    ['the window opens in five minutes', OPEN, 5 * MINUTE_MS],
  ])('is left out if %s', async (_, placement, opensInMs) => {
    steps['resolveRun'] = () => runOf(opensInMs)
    steps['getCapacity'] = has(placement)
    const running = begin({ rehearsal, checkMs: HOUR_MS })
    await settled()
    if (opensInMs > 0) await endWait()
    expect(await running).toMatchObject({ state: 'promoted' })
    expect(names()).not.toContain('rehearsal')
  })
})
