import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { Parts } from '../../../planner/forecast/parts'
import { column, normalQuantile, POINTS, uniformOf, type Dimension } from '../../../planner/forecast/points'
import { sampleOf } from '../../../planner/forecast/sample'
import { offer } from '../wishes'
import { exactParts, sure } from './exact'

const FREE = { onceMicroUsd: 0, perMachineMicroUsd: 0 }
type Beside = Partial<Parameters<typeof sampleOf>[2]>

function sampled(parts: Partial<Parts>, changes: Partial<Offer> = {}, beside: Beside = {}) {
  return sampleOf(exactParts(parts), offer(changes), { moving: FREE, storing: undefined, ...beside })
}

/** The value at every point alike. */
function same(values: Float64Array): number {
  expect(values).toHaveLength(POINTS)
  expect(new Set(values).size).toBe(1)
  return values[0]!
}

function billed(parts: Partial<Parts>, changes: Partial<Offer> = {}, beside: Beside = {}) {
  const { cost, budgeted, extra } = sampled(parts, changes, beside)
  return {
    cost: same(cost),
    budgeted: same(budgeted),
    extra: extra !== undefined ? same(extra) : undefined,
  }
}

// Waiting 20 s; a start of 225 s; 36,000 s of work; 10 s to stop.
const CALM = 36_255
/** A change of machines: a wait of 50 s, a start of 240 s with restoring, and 10 s to stop. */
const CHANGE = 300

describe('the life of a job without uncertainty', () => {
  it.each<[string, number, Partial<Parts>, Partial<Offer>, Beside]>([
    ['is the sum of its parts', CALM, {}, {}, {}],
    ['restores a checkpoint first if it is resumed', CALM + 15, { isResumed: true }, {}, {}],
    ['writes ten checkpoints in ten hours', CALM + 10 * 36, { saving: sure(36 * SECOND_MS) }, {}, {}],
    ['writes only those that it comes to', CALM + 36, { saving: sure(36_000), everyMs: 6 * HOUR_MS }, {}, {}],
    ['writes none without checkpoints', CALM, { saving: sure(36_000), everyMs: Infinity }, {}, {}],
    [
      'is as long as its duration and speed make the work',
      CALM + 18_000,
      { duration: sure(3), speed: sure(0.5) },
      {},
      {},
    ],
    ['moves once when its reservation ends before it', CALM + CHANGE, {}, {}, { reservedMs: 5 * HOUR_MS }],
    ['does not move when its reservation lasts just long enough', CALM, {}, {}, { reservedMs: 36_235_000 }],
    ['moves when a millisecond is missing', CALM + CHANGE, {}, {}, { reservedMs: 36_234_999 }],
    ['does not move within the limit of a run', CALM, {}, { runMsMax: 36_235_000 }, {}],
    [
      'moves once when the limit of a run is a little too short',
      CALM + CHANGE,
      {},
      { runMsMax: 36_234_999 },
      {},
    ],
    // 36,235 s in runs of 9,250 s, and each but the first loses 250 s to the change: 26,985 s in runs of 9,000 s.
    ['moves as often as the limit of a run makes it', CALM + 3 * CHANGE, {}, { runMsMax: 9_250_000 }, {}],
    // Runs of less than a minute of work count as a minute: 35,985 s are 600 of them.
    ['moves no more often than each minute', CALM + 600 * CHANGE, {}, { runMsMax: 250_000 }, {}],
    [
      'follows the limit of a run, not the end of a reservation',
      CALM,
      {},
      { runMsMax: 11 * HOUR_MS },
      { reservedMs: HOUR_MS },
    ],
  ])('%s', (_, seconds, parts, changes, beside) => {
    expect(same(sampled(parts, changes, beside).doneMs)).toBeCloseTo(seconds * SECOND_MS, 3)
  })
})

describe('the cost of a life without uncertainty', () => {
  const hour = microUsd(3.6)
  const priced = { priceMicroUsdPerHour: hour }
  const perSecond = 1_000
  /** The machine is on without the wait. */
  const on = 36_235

  it('is the time that the machine is on at its price', () => {
    const { cost, budgeted } = billed({}, priced)
    expect([cost, budgeted]).toEqual([on * perSecond, on * perSecond])
    expect(billed({ price: sure(1.5) }, priced).cost).toBe(on * perSecond * 1.5)
    expect(billed({}, priced).extra).toBeUndefined()
  })

  it('has the price of moving data for the first machine and for each further one', () => {
    const moving = { onceMicroUsd: 500, perMachineMicroUsd: 70 }
    expect(billed({}, priced, { moving }).budgeted).toBe(on * perSecond + 500)
    const moved = billed({}, priced, { moving, reservedMs: HOUR_MS }).budgeted
    expect(moved - billed({}, priced, { reservedMs: HOUR_MS }).budgeted).toBe(570)
  })

  it('has the charges of the store, which no budget covers', () => {
    const storing = { onceMicroUsd: 100, perMachineMicroUsd: 40, perHourMicroUsd: 3_600 }
    const { cost, budgeted } = billed({ store: sure(2) }, priced, { storing })
    expect(cost - budgeted).toBeCloseTo(2 * (100 + on), 6)
    const moved = billed({}, priced, { storing, reservedMs: HOUR_MS })
    expect(moved.cost - moved.budgeted).toBeCloseTo(100 + 40 + on + 250, 6)
  })

  it('is extra only beyond the price of an idle place, with data and store', () => {
    const reserved = (idleMicroUsdPerHour: number): Partial<Offer> => ({
      ...priced,
      reservation: { free: 1, total: 1, idleMicroUsdPerHour },
    })
    const beside: Beside = {
      moving: { onceMicroUsd: 500, perMachineMicroUsd: 0 },
      storing: { onceMicroUsd: 100, perMachineMicroUsd: 0, perHourMicroUsd: 0 },
    }
    expect(billed({}, reserved(0), beside).extra).toBe(on * perSecond + 600)
    expect(billed({}, reserved(hour / 4), beside).extra).toBe(on * 750 + 600)
    expect(billed({}, reserved(2 * hour), beside).extra).toBe(600)
  })

  it('rounds the time of each machine up to a step', () => {
    const steps = { ...priced, billedInStepsOfMs: 2 * HOUR_MS }
    expect(billed({}, steps).cost).toBe(12 * hour)
    // Two machines of together 36,485 s, which no cut but the middle one divides evenly: 10.13 hours in steps of 20.
    const twenty = { ...priced, billedInStepsOfMs: 20 * HOUR_MS }
    expect(billed({}, twenty, { reservedMs: HOUR_MS }).cost).toBe(2 * 20 * hour)
    // Four machines.
    expect(billed({}, { ...twenty, runMsMax: 9_250_000 }).cost).toBe(4 * 20 * hour)
  })

  it('bills the first and the last machine of a life for different times', () => {
    const { cost } = sampleOf(exactParts(), offer({ ...priced, billedInStepsOfMs: HOUR_MS }), {
      moving: FREE,
      storing: undefined,
      reservedMs: HOUR_MS,
    })
    // 10.13 hours in two parts, one of them from 2.5 to 7.6 hours: both are rounded up, to 11 or 12 hours together.
    const costs = [...cost].map((each) => each / hour)
    expect(new Set(costs)).toEqual(new Set([11, 12]))
    // The parts after the points are equally probable: 0.135 of each hour of the first part begin another hour of the second.
    expect(costs.filter((each) => each === 12).length / POINTS).toBeCloseTo(0.135, 1)
  })
})

/** The cumulative probabilities of a Poisson distribution, inverted at the middle of each of 64 equally probable strata. */
function poissonQuantiles(mean: number): number[] {
  return Array.from({ length: POINTS }, (_, k) => {
    const p = (k + 0.5) / POINTS
    let count = 0
    for (let term = Math.exp(-mean), sum = term; sum < p; sum += term) term *= mean / ++count
    return count
  })
}

describe('the interruptions of a life', () => {
  const lost = (perHour: number, changes: Partial<Parts> = {}) => {
    const rate = sure(perHour)
    return sampleOf(exactParts({ rate, shakyRate: rate, ...changes }), offer(), {
      moving: { onceMicroUsd: 0, perMachineMicroUsd: 1_000_000_000 },
      storing: undefined,
    })
  }
  /** Each machine after the first one costs a thousand dollars here. */
  const countsOf = ({ cost }: { cost: Float64Array }): number[] =>
    [...cost].map((each) => Math.floor(each / 1_000_000_000)).sort((a, b) => a - b)

  it('are as many as their rate makes of the time, which grows by what is repeated', () => {
    // 10.065 hours at one in ten hours; each costs 240 s and half an hour: 0.0567 of the mean time between two.
    const exponent = 0.1 * (2_040 / 3_600)
    const mean = 0.1 * (36_235 / 3_600) * ((Math.exp(exponent) - 1) / exponent)
    const sample = lost(0.1)
    expect(sample.interruptions).toBeCloseTo(mean, 9)
    expect(countsOf(sample)).toEqual(poissonQuantiles(mean))
  })

  it('repeat as much as was not saved, with a new start and a new wait each', () => {
    const { doneMs, cost } = lost(0.1)
    const repeated = [...doneMs].map((ms, i) => {
      const count = Math.floor(cost[i]! / 1_000_000_000)
      return { count, ms: ms - CALM * SECOND_MS - count * (50 + 240) * SECOND_MS }
    })
    for (const { count, ms } of repeated)
      if (count === 0) expect(ms).toBe(0)
      else expect(ms).toBeGreaterThanOrEqual(0)
    const sum = (of: (each: { count: number; ms: number }) => number): number =>
      repeated.reduce((total, each) => total + of(each), 0)
    const count = sum((each) => each.count)
    expect(sum(({ ms }) => ms) / count / MINUTE_MS).toBeCloseTo(30, -1)
    // Work lost at any moment of an hour is equally probable: its variance is a twelfth of its square.
    const variance = sum((each) => (each.ms - (each.count * HOUR_MS) / 2) ** 2) / count
    expect(variance / (HOUR_MS ** 2 / 12)).toBeGreaterThan(0.4)
    expect(variance / (HOUR_MS ** 2 / 12)).toBeLessThan(1.6)
  })

  it('repeat half of all work without checkpoints', () => {
    const exponent = 0.02 * ((240 + 18_000) / 3_600)
    const mean = 0.02 * (36_235 / 3_600) * ((Math.exp(exponent) - 1) / exponent)
    expect(lost(0.02, { everyMs: Infinity }).interruptions).toBeCloseTo(mean, 9)
  })

  it('grow at most as if two came in the time that one costs', () => {
    const growth = (Math.exp(2) - 1) / 2
    expect(lost(6).interruptions).toBeCloseTo(6 * (36_235 / 3_600) * growth, 6)
    expect(lost(12).interruptions / lost(6).interruptions).toBeCloseTo(2, 9)
  })

  it.each([29.9, 30.1])('of a mean of %d have that mean and a variance of the same size', (mean) => {
    // Nothing is repeated, so that the mean is the rate times the time.
    const calm: Partial<Parts> = { everyMs: 1e-9, saving: sure(0) }
    const none = Object.fromEntries(
      ['boot', 'image', 'setup', 'fetch', 'restore'].map((part) => [part, sure(0)]),
    )
    const sample = lost(mean / (36_010 / 3_600), { ...calm, ...none })
    expect(sample.interruptions).toBeCloseTo(mean, 6)
    const counts = countsOf(sample)
    const average = counts.reduce((sum, each) => sum + each, 0) / POINTS
    const variance = counts.reduce((sum, each) => sum + (each - average) ** 2, 0) / POINTS
    expect(average).toBeCloseTo(mean, 0)
    expect(variance / mean).toBeCloseTo(1, 1)
    const normal = Array.from({ length: POINTS }, (_, k) =>
      Math.round(mean + Math.sqrt(mean) * normalQuantile((k + 0.5) / POINTS)),
    )
    expect(counts).toEqual(mean < 30 ? poissonQuantiles(mean) : normal)
  })

  it('lengthen a job by at most half where it lost a machine, and never less than usual', () => {
    const usual = lost(0.1)
    const usualMs = [...usual.doneMs].map((ms) => ms - 20_000)
    const withoutWait = { waitAgain: sure(0) }
    const calmly = [...lost(0.1, withoutWait).doneMs].map((ms) => ms - 20_000)
    const shaken = [...lost(0.1, { ...withoutWait, shakyRate: sure(50) }).doneMs].map((ms) => ms - 20_000)
    shaken.forEach((ms, i) => expect(ms / calmly[i]!).toBeCloseTo(1.5, 9))
    const milder = [...lost(0.1, { ...withoutWait, shakyRate: sure(0.0001) }).doneMs].map((ms) => ms - 20_000)
    expect(milder).toEqual(calmly)
    expect(usualMs).not.toEqual(calmly)
    const some = [...lost(0.1, { ...withoutWait, shakyRate: sure(0.2) }).doneMs].map((ms) => ms - 20_000)
    expect(some.some((ms, i) => ms > calmly[i]! && ms < calmly[i]! * 1.5)).toBe(true)
  })

  it('are those of the shaky rate if it has one', () => {
    expect(lost(0.1, { shakyRate: sure(0.3) }).interruptions).toBeGreaterThan(lost(0.1).interruptions * 3)
  })
})

describe('the points of a forecast', () => {
  it.each<Dimension>(['wait', 'duration', 'price', 'cut'])(
    'are evenly spread in the dimension %s',
    (dimension) => {
      const sorted = [...uniformOf(dimension)].sort((a, b) => a - b)
      expect(sorted).toEqual(Array.from({ length: 64 }, (_, k) => (k + 0.5) / 64))
      expect(column()).toEqual(new Float64Array(64))
    },
  )

  it('meet in other orders in each dimension, so that the causes are independent', () => {
    const dimensions: Dimension[] = [
      'wait',
      'boot',
      'duration',
      'speed',
      'price',
      'rate',
      'interruptions',
      'loss',
      'cut',
    ]
    for (const one of dimensions)
      for (const other of dimensions)
        if (one !== other) {
          const [a, b] = [uniformOf(one), uniformOf(other)]
          const covariance = a.reduce((sum, each, i) => sum + (each - 0.5) * (b[i]! - 0.5), 0) / POINTS
          // A twelfth is the variance of each.
          expect(Math.abs(covariance * 12)).toBeLessThan(0.35)
        }
  })
})
