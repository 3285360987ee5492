import { describe, expect, it } from '@jest/globals'
import { without } from '../../core/defined'
import { microUsd } from '../../core/money/money'
import type { CapacityPlan, Gate, ReservedStep } from '../../core/retraining/retraining'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { nextCapacity, type CapacityFacts } from '../../planner/retraining/capacity'
import { judge, olderThanProduction, otherThanJudged } from '../../planner/retraining/gate'
import { onOverrun } from '../../planner/retraining/overrun'

const GATE: Gate = { metric: 'loss', better: 'lower', tolerance: { kind: 'relative', value: 0.02 } }

describe('the gate of a retraining', () => {
  it.each([
    ['better', 0.9, 1, true, 'loss is 0.9, in production 1: better.'],
    ['equal', 1, 1, true, 'loss is 1, in production 1: equal.'],
    ['at the tolerance', 1.02, 1, true, 'loss is 1.02, in production 1: worse, within the tolerance.'],
    [
      'beyond it',
      1.0201,
      1,
      false,
      'loss is 1.0201, in production 1: worse than the tolerance allows (1.02).',
    ],
    [
      'negative, within a share of the amount',
      -0.985,
      -1,
      true,
      'loss is -0.985, in production -1: worse, within the tolerance.',
    ],
    [
      'negative, beyond it',
      -0.97,
      -1,
      false,
      'loss is -0.97, in production -1: worse than the tolerance allows (-0.98).',
    ],
    ['the first one', 7, null, true, 'loss is 7; no model in production to compare with.'],
    ['missing', null, 1, false, 'The evaluation reported no usable loss.'],
    ['not a number', NaN, 1, false, 'The evaluation reported no usable loss.'],
    ['infinite', -Infinity, 1, false, 'The evaluation reported no usable loss.'],
    [
      'compared with a model that diverged',
      5,
      NaN,
      true,
      'loss is 5; no model in production to compare with.',
    ],
  ] as const)('judges a value that is %s', (_, value, production, isPassed, message) => {
    const verdict = judge(GATE, { value, production, productionFrom: 'rerun' })
    expect(verdict).toMatchObject({ isPassed, message })
  })

  it('leaves it to a person if the model in production has no such value', () => {
    const facts = { value: 0.5, production: null, productionFrom: 'unknown' } as const
    expect(judge(GATE, facts)).toMatchObject({
      isPassed: false,
      isUndecided: true,
      message: 'loss is 0.5, and the model in production has no loss to compare with.',
    })
    expect(judge({ ...GATE, limit: 0.4 }, facts).isUndecided).toBeUndefined()
    expect(judge(GATE, { ...facts, value: NaN }).isUndecided).toBeUndefined()
  })

  it('holds only for the model in production that the new one was judged against', () => {
    expect(otherThanJudged(0, undefined)).toBeUndefined()
    expect(otherThanJudged(2, { seq: 2, run: 'a' })).toBeUndefined()
    expect(otherThanJudged(2, { seq: 3, run: 'b' })).toBe(
      'The run b has put version 3 into production since the new model was judged.',
    )
  })

  it('knows metrics that are better when higher, amounts, limits, and recorded values', () => {
    const gate: Gate = {
      metric: 'auc',
      better: 'higher',
      tolerance: { kind: 'absolute', value: 0.01 },
      limit: 0.7,
    }
    const at = (value: number): [boolean, string] => {
      const { isPassed, message } = judge(gate, { value, production: 0.8, productionFrom: 'recorded' })
      return [isPassed, message]
    }
    expect(at(0.79)).toEqual([
      true,
      'auc is 0.79, in production 0.8, as recorded: worse, within the tolerance.',
    ])
    expect(at(0.78)[0]).toBe(false)
    expect(
      judge({ ...gate, limit: 0.9 }, { value: 0.85, production: null, productionFrom: 'none' }),
    ).toMatchObject({
      isPassed: false,
      message: 'auc is 0.85, beyond the limit of 0.9.',
    })
  })
})

const NOW = Date.UTC(2027, 0, 1)
const OPENS = NOW + 28 * DAY_MS
const STEP: ReservedStep = {
  kind: 'prepaid',
  backend: 'ec2',
  types: ['p5.48xlarge'],
  count: 2,
  durationMs: 4 * DAY_MS,
  startWithinMs: 2 * DAY_MS,
  upfrontMaxMicroUsd: microUsd(20_000),
}
const PLAN: CapacityPlan = {
  steps: [
    STEP,
    { ...STEP, startWithinMs: 10 * DAY_MS },
    { ...STEP, kind: 'hourly', spendMaxMicroUsd: microUsd(8_000) },
    { kind: 'unreserved', backends: [{ backend: 'ec2', capacityType: 'spot' }], deadlineMs: 5 * DAY_MS },
  ],
  fallbackMs: 7 * DAY_MS,
}
const withoutLimit = (step: ReservedStep): ReservedStep => without(step, ['upfrontMaxMicroUsd'])
const FACTS: CapacityFacts = {
  plan: PLAN,
  dates: { opensAtMs: OPENS, isByHand: false },
  tried: 0,
  nowMs: NOW,
}

describe('a model of older data than that in production', () => {
  const window = { start: '2026-10-01', end: '2027-01-01' }

  it('is named with both windows; one of the same data or newer ones may replace it, and the first one too', () => {
    const production = { seq: 3, window: { start: '2027-01-01', end: '2027-04-01' } }
    expect(olderThanProduction(window, production)).toBe(
      'The new model was trained on data up to 2027-01-01, and version 3 in production on newer data, up to 2027-04-01.',
    )
    expect(olderThanProduction(window, { seq: 3, window })).toBeUndefined()
    expect(olderThanProduction(production.window, { seq: 3, window })).toBeUndefined()
    expect(olderThanProduction(window, undefined)).toBeUndefined()
  })
})

describe('the next way to get capacity', () => {
  const wish = (facts: Partial<CapacityFacts>) => {
    const next = nextCapacity({ ...FACTS, ...facts })
    if (next.kind !== 'reserve') throw new Error(next.kind)
    return next.reservation
  }

  it('begins with the wish of the file, in the window, until the fallbacks begin', () => {
    expect(nextCapacity(FACTS)).toMatchObject({
      message:
        'looking for 2 x p5.48xlarge (prepaid) for 4d, in any Region, that starts up to 2d after the opening, for at most $20000.00.',
    })
    expect(wish({})).toEqual({
      wish: {
        backend: 'ec2',
        kind: 'prepaid',
        types: ['p5.48xlarge'],
        count: 2,
        durationMs: 4 * DAY_MS,
        earliestStartAtMs: OPENS,
        latestStartAtMs: OPENS + 2 * DAY_MS,
      },
      rule: {
        searchUntilAtMs: OPENS - 7 * DAY_MS,
        upfrontMaxMicroUsd: microUsd(20_000),
        unaskedMaxMicroUsd: microUsd(20_000),
      },
    })
  })

  it('shares the rest of the time among the fallbacks, and ends with none reserved', () => {
    const nowMs = OPENS - 7 * DAY_MS
    const ends = [1, 2].map((tried) => wish({ tried, nowMs }).rule.searchUntilAtMs)
    expect(ends).toEqual([OPENS - 3.5 * DAY_MS, OPENS])
    const last = { state: 'unavailable', message: 'Nothing was found.' }
    expect(nextCapacity({ ...FACTS, tried: 3, last })).toEqual({
      kind: 'open',
      index: 3,
      placement: {
        kind: 'open',
        backends: [{ backend: 'ec2', capacityType: 'spot' }],
        deadlineMs: 5 * DAY_MS,
      },
      message:
        'Fallback 3 of 3: no reservation, the job uses any offer on ec2:spot, to be done within 5d. Nothing was found.',
    })
    expect(nextCapacity({ ...FACTS, tried: 4, last })).toEqual({
      kind: 'give-up',
      message: 'Every way to get capacity was tried. Nothing was found.',
    })
  })

  it('shares it among reservations only', () => {
    const [first, second, third, open] = PLAN.steps
    const plan = { ...PLAN, steps: [first!, open!, second!, third!] }
    expect(wish({ plan, tried: 2, nowMs: OPENS - 7 * DAY_MS }).rule.searchUntilAtMs).toBe(
      OPENS - 3.5 * DAY_MS,
    )
  })

  it('lets the last reservation search as long as a start is possible, if nothing follows', () => {
    const plan = { ...PLAN, steps: [STEP] }
    expect(wish({ plan }).rule.searchUntilAtMs).toBe(OPENS + 2 * DAY_MS)
  })

  it('searches an hour at least, also after the window has opened, and may start at once', () => {
    const late = wish({ tried: 1, nowMs: OPENS + DAY_MS })
    expect(late.rule.searchUntilAtMs).toBe(OPENS + DAY_MS + HOUR_MS)
    expect(late.wish.earliestStartAtMs).toBeUndefined()
    expect(late.wish.latestStartAtMs).toBe(OPENS + 11 * DAY_MS)
  })

  it('never offers more than the rest of the budget, and asks a person above the limit of the file', () => {
    const { rule } = wish({ leftMicroUsd: microUsd(3_000) })
    expect(rule).toMatchObject({ upfrontMaxMicroUsd: microUsd(3_000), unaskedMaxMicroUsd: microUsd(3_000) })
    const plan = { ...PLAN, steps: [{ ...STEP, unaskedMaxMicroUsd: microUsd(500) }] }
    expect(wish({ plan }).rule.unaskedMaxMicroUsd).toBe(microUsd(500))
  })

  it('limits hourly capacity by what it may cost unused, which is bought without a person', () => {
    const rest = withoutLimit(STEP)
    const hourly: ReservedStep = {
      ...rest,
      kind: 'hourly',
      spendMaxMicroUsd: microUsd(8_000),
      idleMaxMs: HOUR_MS,
      share: 'all',
      regions: ['eu-west-1', 'us-east-1'],
      zones: ['eu-west-1a'],
      machineHourMaxMicroUsd: microUsd(9),
    }
    const plan = { ...PLAN, steps: [hourly, hourly] }
    expect(nextCapacity({ ...FACTS, plan }).message).toBe(
      'looking for 2 x p5.48xlarge (hourly) for 4d, in eu-west-1, us-east-1, that starts up to 2d after the opening, for at most $8000.00.',
    )
    const found = wish({ plan, leftMicroUsd: microUsd(5_000) })
    expect(found.wish).toMatchObject({ regions: ['eu-west-1', 'us-east-1'], zones: ['eu-west-1a'] })
    expect(found.rule).toEqual({
      searchUntilAtMs: OPENS - 7 * DAY_MS,
      unaskedMaxMicroUsd: microUsd(5_000),
      share: 'all',
      machineHourMaxMicroUsd: microUsd(9),
      spendMaxMicroUsd: microUsd(5_000),
      idleMaxMs: HOUR_MS,
    })
  })

  it('buys nothing without a person if the file has no limit', () => {
    const rest = withoutLimit(STEP)
    const plan = { ...PLAN, steps: [rest, { ...rest, types: ['p5', 'p4'] }] }
    expect(wish({ plan, leftMicroUsd: microUsd(5_000) }).rule).toEqual({
      searchUntilAtMs: OPENS - 7 * DAY_MS,
      unaskedMaxMicroUsd: 0,
    })
    const last = { state: 'unavailable', message: 'Nothing was found.' }
    expect(nextCapacity({ ...FACTS, plan, tried: 1, last })).toMatchObject({
      kind: 'reserve',
      index: 1,
      message:
        'Fallback 1 of 1: looking for 2 x p5 or p4 (prepaid) for 4d, in any Region, that starts up to 2d after the opening. Nothing was found.',
    })
    expect(nextCapacity({ ...FACTS, plan, last }).message).toMatch(/after the opening\.$/)
  })

  it('keeps its places for the training until an hour after the latest start', () => {
    const awaitedBy = { jobId: 'ranker-train', schedule: 'ranker', run: '2027-01-29' }
    expect(wish({ awaitedBy }).rule.awaited).toEqual({
      ...awaitedBy,
      fromMs: OPENS,
      untilMs: OPENS + 2 * DAY_MS + HOUR_MS,
    })
    expect(wish({ awaitedBy, nowMs: OPENS + 1 }).rule.awaited).toMatchObject({ fromMs: OPENS + 1 })
  })

  it('has no earliest start once the window is open', () => {
    const early = (nowMs: number) => wish({ nowMs }).wish.earliestStartAtMs
    expect([OPENS - 1, OPENS].map(early)).toEqual([OPENS, undefined])
  })

  it('is what a job finds at once, in the Regions of the file, if nothing is to be reserved', () => {
    const backends = [{ backend: 'ec2' }, { backend: 'modal', capacityType: 'spot' as const }]
    const plan: CapacityPlan = { ...PLAN, steps: [{ kind: 'unreserved', backends, regions: ['eu-west-1'] }] }
    expect(nextCapacity({ ...FACTS, plan })).toEqual({
      kind: 'open',
      index: 0,
      placement: { kind: 'open', backends, regions: ['eu-west-1'] },
      message: 'no reservation, the job uses any offer on ec2, modal:spot.',
    })
  })

  it('gives up when the file names no step', () => {
    expect(nextCapacity({ ...FACTS, plan: { ...PLAN, steps: [] } })).toEqual({
      kind: 'give-up',
      message: 'The file names no way to get capacity.',
    })
  })

  it('ends the only reservation at the fallback time, if a job without one follows', () => {
    const plan = { ...PLAN, steps: [STEP, PLAN.steps[3]!] }
    expect(wish({ plan }).rule.searchUntilAtMs).toBe(OPENS - 7 * DAY_MS)
    const second = { ...PLAN, steps: [PLAN.steps[3]!, STEP, STEP] }
    expect(wish({ plan: second, tried: 2 }).rule.searchUntilAtMs).toBe(OPENS)
  })

  it('buys nothing else after a person has refused', () => {
    const last = { state: 'rejected', message: 'Rejected by ada.' }
    expect(nextCapacity({ ...FACTS, tried: 1, last })).toMatchObject({ kind: 'open', index: 3 })
    const plan = { ...PLAN, steps: PLAN.steps.slice(0, 3) }
    expect(nextCapacity({ ...FACTS, plan, tried: 1, last })).toMatchObject({ kind: 'give-up' })
  })
})

describe('what may be paid for extensions', () => {
  const purpose = { trainings: 'ranker-20270101-train', backends: [] }
  const rule = (facts: Partial<CapacityFacts>) => {
    const extension = { maxMicroUsd: microUsd(6_000), purpose }
    const next = nextCapacity({ ...FACTS, extension, ...facts })
    if (next.kind !== 'reserve') throw new Error(next.kind)
    return next.reservation.rule
  }

  it('is the limit of the file, within what the purchase leaves of the budget', () => {
    expect(rule({})).toMatchObject({ extendMaxMicroUsd: microUsd(6_000), extendFor: purpose })
    expect(rule({ leftMicroUsd: microUsd(25_000) }).extendMaxMicroUsd).toBe(microUsd(5_000))
    expect(rule({ leftMicroUsd: microUsd(20_000) }).extendMaxMicroUsd).toBeUndefined()
  })

  it('is nothing if the file says nothing, and for hourly capacity, which has no fixed time', () => {
    const plan = { ...PLAN, steps: [PLAN.steps[2]!] }
    expect(rule({ plan }).extendMaxMicroUsd).toBeUndefined()
    expect(rule({ plan: { ...PLAN, steps: [STEP] } })).toHaveProperty('extendFor')
  })
})

describe('a training whose reservation is over', () => {
  const reservation = { id: 'cr-1' }

  it('continues where the file says, and stops if it says nothing', () => {
    const backends = [{ backend: 'ec2', capacityType: 'on-demand' as const }]
    expect(onOverrun({ backends }, { reservation })).toEqual({
      kind: 'continue',
      backends,
      message: 'The reservation cr-1 is over; the training continues on ec2:on-demand from its checkpoint.',
    })
    expect(onOverrun({ extendMaxMicroUsd: microUsd(9) }, { reservation })).toMatchObject({ kind: 'stop' })
  })
})
