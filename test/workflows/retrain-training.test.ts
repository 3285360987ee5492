/** The trainings of a run: where they run, when they must leave, and what a run without a model says. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { JobInput, JobResult } from '../../core/messages'
import type { OverrunDecision, RunPlacement } from '../../core/retraining/run'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import type * as Trainings from '../../workflows/retraining/training'
import type { PartEnd, PartRequest } from '../../workflows/retraining/jobs'
import type { RetrainRun } from '../../workflows/retraining/run'
import { ownedOf } from '../planner/reserving/facts'
import { conditionOn, endOneOf, settled, type Wait } from './waits'

interface Options {
  prepared?: JobInput
  until: (isOver: () => boolean) => Promise<void>
}

/** What each training does, in order. */
let trainings: ((options: Options) => Partial<PartEnd> | Promise<Partial<PartEnd>>)[]
/** What was asked, in order. */
let asked: [what: string, input?: unknown][]
let model: object | null
let overrun: OverrunDecision
let waiting: Wait[]

jest.mock('@temporalio/workflow', () => ({
  condition: conditionOn(() => waiting),
  defineSignal: String,
}))
jest.mock('../../workflows/retraining/activities', () => ({
  retraining: { modelOf: async (input: object) => (asked.push(['modelOf', input]), model) },
  decide: async (_: object, name: string, input: object) => (asked.push([name, input]), overrun),
}))
jest.mock('../../workflows/retraining/jobs', () => ({
  runPart: async (_: object, wish: PartRequest, options: Options) => {
    asked.push(['train', options.prepared === undefined ? wish : { ...wish, isPrepared: true }])
    return {
      jobId: `job-${wish.number}`,
      isSucceeded: false,
      message: 'It broke.',
      ...(await trainings.shift()!(options)),
    }
  },
}))
jest.mock('../../workflows/retraining/release', () => ({
  giveBack: async () => void asked.push(['giveBack']),
}))
const { train } = jest.requireActual<typeof Trainings>('../../workflows/retraining/training')

const NOW_MS = 100 * DAY_MS
const PREPARED = { jobId: 'job-2' } as JobInput
const MODEL = { model: { step: 9 }, source: { jobId: 'job-2' } }
const KEPT = 'Its checkpoint of step 9 is kept.'
const ENDS_MS = NOW_MS + DAY_MS
/** With `endsAtMs: undefined`, it has no end. */
const reserved = (more: object = {}): RunPlacement & { kind: 'reserved' } => ({
  kind: 'reserved',
  backend: 'ec2',
  reservation: { ...ownedOf({ endsAtMs: ENDS_MS }), ...more },
})

let run: RetrainRun & { isCapacityLost: boolean }
let warnings: string[]

/** The second training of a run. */
function begin(placement: RunPlacement): Promise<Trainings.TrainingEnd> {
  warnings = []
  run = {
    placement,
    trainings: 2,
    stop: undefined,
    isCapacityLost: false,
    task: () => ({ recordSeq: 7 }),
    warn: (...more: string[]) => warnings.push(...more),
  } as unknown as typeof run
  return train(run, PREPARED)
}

const endWait = (happens: () => void = () => undefined): Promise<void> => endOneOf(waiting, happens)
const names = (): string[] => asked.map(([name]) => name)
const succeeds = (): Partial<PartEnd> => ({ isSucceeded: true })
const fails = (): Partial<PartEnd> => ({})
const withoutPlace = (attempts: number) => (): Partial<PartEnd> => ({
  result: { reason: 'no-placement', attempts } as JobResult,
})
/** Trains until it must leave. */
const leaves = async ({ until }: Options): Promise<Partial<PartEnd>> => {
  await until(() => false)
  return { message: 'It had to leave.' }
}

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  ;[asked, waiting, trainings] = [[], [], []]
  model = MODEL
  overrun = { kind: 'continue', backends: [{ backend: 'lambda' }], message: 'It continues on lambda.' }
})

describe('a training', () => {
  it('runs the prepared job in its placement, and leaves a model', async () => {
    trainings = [succeeds]
    const placement = reserved()
    expect(await begin(placement)).toEqual({ kind: 'trained', trained: MODEL })
    expect(asked).toEqual([
      ['train', { part: 'training', placement, number: 2, isPrepared: true }],
      ['modelOf', { recordSeq: 7, jobId: 'job-2' }],
    ])
  })

  it('that could not be prepared is not begun', async () => {
    const placement: RunPlacement = { kind: 'open' }
    const end = { jobId: 'job-2', isSucceeded: false, message: 'No secret.' }
    expect(await train({ placement } as RetrainRun, end)).toEqual({ kind: 'failed', message: 'No secret.' })
    expect(asked).toEqual([])
  })

  it('that leaves no checkpoint has no model', async () => {
    trainings = [succeeds]
    model = null
    expect(await begin(reserved())).toEqual({
      kind: 'failed',
      message: 'The training left no complete checkpoint, so there is no model.',
    })
  })

  it.each([
    ['a checkpoint', MODEL, `It broke. ${KEPT}`],
    ['nothing', null, 'It broke.'],
  ])('that fails and leaves %s says so, and is not continued', async (_, found, message) => {
    trainings = [fails]
    model = found
    expect(await begin(reserved())).toEqual({ kind: 'failed', message })
    expect(names()).toEqual(['train', 'modelOf'])
  })
})

describe('a training whose capacity is gone', () => {
  it('before it began is lost: the next step of the file is tried', async () => {
    trainings = [withoutPlace(0)]
    expect(await begin(reserved())).toEqual({ kind: 'lost' })
    expect(names()).toEqual(['train', 'modelOf'])
  })

  it('after it began continues where the file says, from its checkpoint', async () => {
    trainings = [withoutPlace(1), succeeds]
    const placement = reserved()
    expect(await begin(placement)).toEqual({ kind: 'trained', trained: MODEL })
    expect(asked.slice(2, 5)).toEqual([
      ['decideOverrun', { recordSeq: 7, reservation: placement.reservation }],
      ['giveBack'],
      [
        'train',
        {
          part: 'training',
          number: 3,
          source: MODEL.source,
          placement: { kind: 'open', backends: [{ backend: 'lambda' }] },
        },
      ],
    ])
    expect(warnings).toEqual(['It continues on lambda.'])
  })

  it('begins anew where the file says if it left nothing', async () => {
    trainings = [withoutPlace(1), fails]
    model = null
    expect(await begin(reserved())).toEqual({ kind: 'failed', message: 'It broke.' })
    expect(asked[4]![1]).toEqual(expect.not.objectContaining({ source: expect.anything() }))
    expect(names()).toEqual(['train', 'modelOf', 'decideOverrun', 'giveBack', 'train', 'modelOf'])
  })

  it('ends if the file does not say where else', async () => {
    trainings = [withoutPlace(1)]
    overrun = { kind: 'stop', message: 'The file says not where it continues.' }
    expect(await begin(reserved())).toEqual({
      kind: 'failed',
      message: `The file says not where it continues. ${KEPT}`,
    })
    expect([warnings, names()]).toEqual([[], ['train', 'modelOf', 'decideOverrun']])
  })

  it.each([0, 1])('and that was in none (%s attempts) has failed', async (attempts) => {
    trainings = [withoutPlace(attempts)]
    expect(await begin({ kind: 'open' })).toEqual({ kind: 'failed', message: `It broke. ${KEPT}` })
    expect(names()).toEqual(['train', 'modelOf'])
  })

  it.each([0, 1])('is over if the run is stopped (%s attempts)', async (attempts) => {
    trainings = [
      () => {
        run.stop = { state: 'cancelled', message: 'Cancelled.' }
        return withoutPlace(attempts)()
      },
    ]
    expect(await begin(reserved())).toMatchObject({ kind: 'failed' })
    expect(names()).toEqual(['train', 'modelOf'])
  })
})

describe('a training in a reservation', () => {
  it.each([
    ['at its end', {}, DAY_MS],
    ['when its machines can no longer be used', { usableUntilMs: ENDS_MS - HOUR_MS }, DAY_MS - HOUR_MS],
  ])('leaves %s, and continues', async (_, more, limitMs) => {
    trainings = [leaves, succeeds]
    const training = begin(reserved(more))
    await settled()
    expect(waiting[0]!.limitMs).toBe(limitMs)
    await endWait()
    expect(await training).toMatchObject({ kind: 'trained' })
    expect(names()).toContain('decideOverrun')
  })

  it.each([0, HOUR_MS])('whose end was %s ms ago leaves at once', async (agoMs) => {
    trainings = [leaves, succeeds]
    expect(await begin(reserved({ endsAtMs: NOW_MS - agoMs }))).toMatchObject({ kind: 'trained' })
    expect([waiting, names()[2]]).toEqual([[], 'decideOverrun'])
  })

  it.each([ENDS_MS, undefined])('leaves if that is lost before its end (%s)', async (endsAtMs) => {
    trainings = [leaves, succeeds]
    const training = begin(reserved({ endsAtMs }))
    await endWait(() => (run.isCapacityLost = true))
    expect(await training).toMatchObject({ kind: 'trained' })
    expect(warnings).toEqual(['It continues on lambda.'])
  })

  it.each([
    ['later', ENDS_MS + DAY_MS, 2 * DAY_MS, 'The reservation cr-1 now ends 1970-04-13T00:00:00Z.'],
    ['never', undefined, undefined, 'The reservation cr-1 no longer has an end.'],
  ])('that now ends %s stays for that long', async (_, endsAtMs, limitMs, warning) => {
    trainings = [leaves, fails]
    const placement = reserved()
    void begin(placement)
    await endWait(() => Object.assign(placement, reserved({ endsAtMs })))
    expect(warnings).toEqual([warning])
    expect(waiting).toMatchObject([{ limitMs }])
    expect(names()).toEqual(['train'])
  })

  it.each(['reserved', 'open'])('or not (%s) that is over first has not left', async (kind) => {
    let isOver = false
    trainings = [async ({ until }) => (await until(() => isOver), {})]
    const training = begin(kind === 'open' ? { kind } : reserved())
    await settled()
    expect(waiting[0]!.limitMs).toBe(kind === 'open' ? undefined : DAY_MS)
    await endWait(() => (isOver = true))
    expect(await training).toEqual({ kind: 'failed', message: `It broke. ${KEPT}` })
    expect(names()).toEqual(['train', 'modelOf'])
  })
})
