/** From a trained model to production: what is asked of whom, and every reason for which the old model stays. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import type { GateVerdict, RetrainStatus, RunJob } from '../../core/retraining/run'
import type { EvaluationRule, ModelRef, PromotedModel, PromotionRule } from '../../core/retraining/retraining'
import { DAY_MS } from '../../core/time/time'
import type { Retries } from '../../workflows/forever'
import type * as Models from '../../workflows/retraining/model'
import type { RetrainRun } from '../../workflows/retraining/run'
import { GATED, SCHEDULE } from './retraining'
import { conditionOn, endOneOf, settled, type Wait } from './waits'

type Asked = [what: string, input: Record<string, unknown>]

/** What was asked of activities and jobs, in order, and their answers. */
let asked: Asked[]
let answers: Record<string, (input: never) => unknown>
/** What waits for a condition, with its limit. */
let waiting: Wait[]

const answer = async (name: string, input: object): Promise<unknown> => {
  asked.push([name, input as Record<string, unknown>])
  return answers[name]!(input as never)
}

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: { current: () => ({ consideredCancelled: false }) },
  condition: conditionOn(() => waiting),
  workflowInfo: () => ({ workflowId: 'retrain/ranker-1' }),
  defineSignal: String,
}))
jest.mock('../../workflows/retraining/activities', () => ({
  retraining: new Proxy({}, { get: (_, name: string) => (input: object) => answer(name, input) }),
  decide: (_: object, name: string, input: object) => answer(name, input),
}))
jest.mock('../../workflows/retraining/jobs', () => ({
  runPart: (_: object, wish: { part: string }) => answer(wish.part, wish),
}))
jest.mock('../../workflows/retraining/release', () => ({ giveBack: () => answer('giveBack', {}) }))
const { judgeAndPromote } = jest.requireActual<typeof Models>('../../workflows/retraining/model')

const NOW_MS = 7 * DAY_MS
const MODEL: ModelRef = { jobId: 'new', checkpointId: '9-1', step: 9, digest: 'd', artifactsUrl: 'u' }
const SOURCE = { jobId: 'new' } as never
const OLD_SOURCE = { jobId: 'old' }
const OLD = {
  ...MODEL,
  jobId: 'old',
  seq: 3,
  metric: { name: 'loss', value: 0.25 },
} as unknown as PromotedModel
const PASSED: GateVerdict = {
  isPassed: true,
  message: 'It is better.',
  metric: 'loss',
  value: 0.2,
  production: 0.25,
  productionFrom: 'recorded',
}
const STAYS = "Version 3 stays in production. The new model's checkpoint is kept."
const WINDOW = { start: '2026-10-01', end: '2027-01-01' }
const ASK: Partial<PromotionRule> = { isAsked: true, askMs: 3 * DAY_MS }
/** As in `GATED`. */
const GATE: Partial<EvaluationRule> = {}

let run: RetrainRun
let status: Partial<RetrainStatus>
let warnings: string[]
let news: number

/** A run whose file has an evaluation, a promotion, or both. */
function begin(evaluation?: Partial<EvaluationRule>, promotion?: Partial<PromotionRule>): void {
  status = {}
  ;[warnings, news] = [[], 0]
  let seq = 0
  const spec = {
    evaluation: evaluation ? { ...GATED.evaluation!, ...evaluation } : undefined,
    promotion: promotion ? { ...GATED.promotion!, ...promotion } : undefined,
  }
  const retries = { pause: async () => undefined } as unknown as Retries
  run = {
    input: { spec },
    dates: { window: WINDOW },
    status,
    isAsking: false,
    retries,
    task: () => ({ recordSeq: (seq += 1) }),
    update: (more: object) => Object.assign(status, more),
    move: (state: RetrainStatus['state'], message: string, untilAtMs?: number) =>
      Object.assign(status, { state, message, untilAtMs }),
    warn: (...more: string[]) => warnings.push(...more),
    tell: () => (news += 1),
    trouble: () => undefined,
  } as unknown as RetrainRun
}

const ended =
  (jobId: string, isSucceeded = true) =>
  (): object => ({ jobId, isSucceeded, message: 'It broke.', result: { attempts: 2 } })
const refusing = (type: string) => (): never => {
  throw ApplicationFailure.create({ type, message: 'Another one was promoted.' })
}
const stop = (): void => {
  run.stop = { state: 'cancelled', message: 'Cancelled in Temporal.' }
}
const STOPPED = { state: 'cancelled', message: 'Cancelled in Temporal.' }

const judge = (): Promise<Models.RunEnd> => judgeAndPromote(run, { model: MODEL, source: SOURCE })
const names = (): string[] => asked.map(([name]) => name)
const inputOf = (name: string): Record<string, unknown> => asked.find(([each]) => each === name)![1]
const endWait = (happens: () => void = () => undefined): Promise<void> => endOneOf(waiting, happens)

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  ;[asked, waiting] = [[], []]
  answers = {
    productionOf: () => ({ promoted: OLD, source: OLD_SOURCE }),
    evaluation: ended('job-eval'),
    production: ended('job-prod'),
    promotion: ended('job-promo'),
    readMetric: () => 0.2,
    judgeModel: () => PASSED,
    giveBack: () => [],
    claimPromotion: () => ({ production: OLD }),
    promoteModel: () => ({ ...OLD, seq: 4 }),
  }
})

describe('a file without a promotion', () => {
  it('leaves the model as it is, and asks nothing', async () => {
    begin()
    expect(await judge()).toEqual({
      state: 'trained',
      message: 'The model is trained; the file has no promotion.',
    })
    expect(asked).toEqual([])
  })

  it('has its model judged, against none in production', async () => {
    begin(GATE)
    expect(await judge()).toMatchObject({ state: 'trained' })
    expect(names()).toEqual(['evaluation', 'readMetric', 'judgeModel'])
    expect(inputOf('judgeModel')).toMatchObject({ value: 0.2, production: null, productionFrom: 'none' })
    expect(inputOf('evaluation')).toEqual({ part: 'evaluation', source: SOURCE, model: MODEL })
    expect(status.verdict).toEqual(PASSED)
  })
})

describe('the gate', () => {
  it('compares the metric of the new model with the recorded one of the old', async () => {
    begin({ limit: 0.5 }, {})
    expect(await judge()).toEqual({
      state: 'promoted',
      message: 'Version 4 of ranker is in production. It is better.',
    })
    expect(names()).toEqual([
      'productionOf',
      'evaluation',
      'readMetric',
      'judgeModel',
      'claimPromotion',
      'promoteModel',
    ])
    expect(inputOf('productionOf')).toEqual({ model: SCHEDULE, window: WINDOW })
    expect(inputOf('evaluation')).toMatchObject({ model: MODEL, production: OLD })
    expect(inputOf('readMetric')).toEqual({ recordSeq: 1, jobId: 'job-eval', attempts: 2, metric: 'loss' })
    expect(inputOf('judgeModel')).toEqual({
      recordSeq: 2,
      value: 0.2,
      production: 0.25,
      productionFrom: 'recorded',
      gate: { metric: 'loss', better: 'lower', tolerance: { kind: 'relative', value: 0.1 }, limit: 0.5 },
    })
  })

  it.each([
    ['another metric', { name: 'accuracy', value: 0.9 }],
    ['none', undefined],
  ])('knows no value of an old model that was promoted with %s', async (_, metric) => {
    answers['productionOf'] = () => ({ promoted: { ...OLD, metric }, source: OLD_SOURCE })
    begin(GATE, {})
    await judge()
    expect(inputOf('judgeModel')).toMatchObject({ production: null, productionFrom: 'unknown' })
  })

  it('has the old model evaluated again as the file says, as the model of that job', async () => {
    let value = 0.2
    answers['readMetric'] = () => (value += 0.1)
    begin({ production: 'rerun' }, {})
    await judge()
    expect(inputOf('production')).toEqual({
      part: 'production',
      source: OLD_SOURCE,
      model: OLD,
      production: OLD,
    })
    expect(inputOf('judgeModel')).toMatchObject({ productionFrom: 'rerun' })
    expect(inputOf('judgeModel')['production']).toBeCloseTo(0.4)
    expect(warnings).toEqual([])
  })

  it('takes the recorded metric if the old model cannot be evaluated again', async () => {
    answers['production'] = ended('job-prod', false)
    begin({ production: 'rerun' }, {})
    await judge()
    expect(inputOf('judgeModel')).toMatchObject({ production: 0.25, productionFrom: 'recorded' })
    expect(warnings).toEqual([
      'The evaluation of the model in production failed: It broke. Its recorded metric is used.',
    ])
  })

  it('does not evaluate an old model again whose checkpoint is gone', async () => {
    answers['productionOf'] = () => ({ promoted: OLD, source: null })
    begin({ production: 'rerun' }, {})
    await judge()
    expect(names()).not.toContain('production')
    expect(inputOf('judgeModel')).toMatchObject({ productionFrom: 'recorded' })
  })

  it.each<[string, Record<string, () => unknown>, string]>([
    ['whose evaluation fails', { evaluation: ended('e', false) }, 'The evaluation failed: It broke.'],
    [
      'whose evaluation reports nothing',
      { readMetric: () => null },
      'The evaluation did not report loss: it must print a JSON object with it, or write metrics.json.',
    ],
  ])('keeps the old model instead of one %s', async (_, more, message) => {
    answers = { ...answers, ...more }
    begin(GATE, {})
    expect(await judge()).toEqual({ state: 'kept', message: `${message} ${STAYS}` })
    expect(status.verdict).toEqual({
      isPassed: false,
      message,
      metric: 'loss',
      value: null,
      production: null,
      productionFrom: 'none',
    })
    expect(names()).not.toContain('judgeModel')
  })

  it.each([
    ['is worse', {}, 'It is worse.'],
    [
      'cannot be compared, without a person who is asked',
      { isUndecided: true },
      'It is worse. With `ask: true` under `promotion`, a person may promote it.',
    ],
  ] as const)('keeps the old model instead of one that %s', async (_, more, words) => {
    answers['judgeModel'] = () => ({ ...PASSED, isPassed: false, message: 'It is worse.', ...more })
    begin(GATE, {})
    expect(await judge()).toEqual({ state: 'kept', message: `${words} ${STAYS}` })
    expect(names()).not.toContain('claimPromotion')
  })

  it('asks no person about a model that is worse', async () => {
    answers['judgeModel'] = () => ({ ...PASSED, isPassed: false, message: 'It is worse.' })
    begin(GATE, ASK)
    expect(await judge()).toMatchObject({ state: 'kept' })
  })

  it('has no word if the run is stopped meanwhile', async () => {
    answers['evaluation'] = () => (stop(), ended('e', false)())
    begin(GATE, {})
    expect(await judge()).toEqual(STOPPED)
    expect(status).not.toHaveProperty('verdict')
  })
})

describe('older data than those of the model in production', () => {
  const older = 'Its data are older.'
  beforeEach(() => {
    answers['productionOf'] = () => ({ promoted: OLD, source: OLD_SOURCE, older })
  })

  it('keep that model without an evaluation', async () => {
    begin(GATE, {})
    const how = 'With `ask: true` under `promotion`, a person may promote it.'
    expect(await judge()).toEqual({ state: 'kept', message: `${older} ${how} ${STAYS}` })
    expect(names()).toEqual(['productionOf'])
  })

  it('are shown to the person who is asked', async () => {
    begin(undefined, ASK)
    void judge()
    await settled()
    expect(status.message).toBe(`The new model waits for approval, for 3d. ${older}`)
  })
})

describe('a person who is asked', () => {
  const decide = (kind: 'approved' | 'rejected', reason?: string) => (): void =>
    void Object.assign(status, {
      decision: { kind, by: 'ada', atMs: 0, reason: reason ? reason : undefined },
    })

  it('has the time of the file, after hourly capacity is given back', async () => {
    begin(undefined, ASK)
    const judging = judge()
    await settled()
    expect(names()).toEqual(['productionOf', 'giveBack'])
    expect(status).toEqual({
      state: 'awaiting-approval',
      message: 'The new model waits for approval, for 3d.',
      untilAtMs: NOW_MS + 3 * DAY_MS,
    })
    expect([run.isAsking, news, waiting[0]!.limitMs]).toEqual([true, 1, 3 * DAY_MS])
    await endWait()
    expect(run.isAsking).toBe(false)
    expect(await judging).toEqual({ state: 'kept', message: `It was not approved within 3d. ${STAYS}` })
  })

  it('puts the model into production, which the record says', async () => {
    begin(undefined, ASK)
    const judging = judge()
    await endWait(decide('approved'))
    expect(await judging).toEqual({ state: 'promoted', message: 'Version 4 of ranker is in production.' })
    expect(inputOf('claimPromotion')).toMatchObject({ isApproved: true })
    expect(inputOf('promoteModel')).toMatchObject({ isApproved: true })
  })

  it.each([
    ['with a reason', 'too slow', 'Rejected by ada: too slow.'],
    ['without one', undefined, 'Rejected by ada.'],
  ])('keeps the old model %s', async (_, reason, words) => {
    begin(undefined, ASK)
    const judging = judge()
    await endWait(decide('rejected', reason))
    expect(await judging).toEqual({ state: 'kept', message: `${words} ${STAYS}` })
  })

  it('sees why the gate could not decide', async () => {
    const undecided = { ...PASSED, isPassed: false, isUndecided: true, message: 'No metric to compare.' }
    answers['judgeModel'] = () => undecided
    begin(GATE, ASK)
    const judging = judge()
    await settled()
    expect(status.message).toBe('The new model waits for approval, for 3d. No metric to compare.')
    await endWait(decide('approved'))
    expect(await judging).toMatchObject({ state: 'promoted' })
  })

  it('sees no doubt about a model that passed', async () => {
    begin(GATE, ASK)
    void judge()
    await settled()
    expect(status.message).toBe('The new model waits for approval, for 3d.')
  })

  it('is waited for no longer once the run is stopped', async () => {
    begin(undefined, ASK)
    const judging = judge()
    await endWait(stop)
    expect(await judging).toEqual(STOPPED)
    expect(names()).not.toContain('claimPromotion')
  })
})

describe('a promotion', () => {
  const job = { run: 'publish' }

  it('names the version it was judged against, and the metric', async () => {
    begin(GATE, {})
    await judge()
    const wish = { name: SCHEDULE, judgedAgainst: 3 }
    expect(inputOf('claimPromotion')).toEqual({ recordSeq: 3, workflowId: 'retrain/ranker-1', ...wish })
    const metric = { name: 'loss', value: 0.2 }
    expect(inputOf('promoteModel')).toEqual({ recordSeq: 4, ...wish, model: MODEL, metric })
    expect(status.promoted).toEqual({ ...OLD, seq: 4 })
  })

  it('of a first model was judged against none, and needs no metric', async () => {
    answers['productionOf'] = () => null
    answers['claimPromotion'] = () => ({ production: null })
    begin(undefined, { job })
    await judge()
    const wish = { name: SCHEDULE, judgedAgainst: 0 }
    expect(inputOf('promoteModel')).toEqual({ recordSeq: 2, ...wish, model: MODEL })
    expect(inputOf('promotion')).toEqual({ part: 'promotion', source: SOURCE, model: MODEL })
  })

  it('runs the command of the file first, with what it replaces', async () => {
    const replaced = { ...OLD, seq: 5 }
    answers['claimPromotion'] = () => ({ production: replaced })
    begin(undefined, { job })
    await judge()
    expect(names()).toEqual(['productionOf', 'claimPromotion', 'promotion', 'promoteModel'])
    expect(inputOf('promotion')).toMatchObject({ source: SOURCE, model: MODEL, production: replaced })
  })

  it.each<[string, string, RunJob['part'] | 'claimPromotion' | 'promoteModel', () => unknown]>([
    ['claim is refused', 'Another one was promoted.', 'claimPromotion', refusing('invalid')],
    ['pointer is refused', 'Another one was promoted.', 'promoteModel', refusing('invalid')],
    ['command fails', 'The promotion command failed: It broke.', 'promotion', ended('p', false)],
  ])('whose %s keeps the old model', async (_, words, step, given) => {
    answers[step] = given
    begin(undefined, { job })
    expect(await judge()).toEqual({ state: 'kept', message: `${words} ${STAYS}` })
    expect(names().at(-1)).toBe(step)
    expect(status).not.toHaveProperty('promoted')
  })

  it('of a first model that is refused leaves none in production', async () => {
    answers['productionOf'] = () => null
    answers['claimPromotion'] = refusing('invalid')
    begin(undefined, {})
    expect(await judge()).toEqual({
      state: 'kept',
      message:
        "Another one was promoted. There is no model in production. The new model's checkpoint is kept.",
    })
  })

  it.each(['claimPromotion', 'promoteModel'])('repeats its %s while another one promotes', async (step) => {
    let tries = 0
    const given = answers[step]!
    answers[step] = () => ((tries += 1) === 1 ? refusing('transient')() : given({} as never))
    begin(undefined, {})
    expect(await judge()).toMatchObject({ state: 'promoted' })
    expect(tries).toBe(2)
  })

  it('is waited for no longer once the run is stopped, and publishes nothing', async () => {
    answers['claimPromotion'] = () => new Promise(() => undefined)
    begin(undefined, { job })
    const judging = judge()
    await endWait(stop)
    expect(await judging).toEqual(STOPPED)
    expect(names().at(-1)).toBe('claimPromotion')
  })

  it('whose command is stopped with the run ends as that', async () => {
    answers['promotion'] = () => (stop(), ended('p', false)())
    begin(undefined, { job })
    expect(await judge()).toEqual(STOPPED)
  })
})
