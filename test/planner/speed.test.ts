import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../core/activities'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING, stoppingMs } from '../../core/time/timing'
import { makeOrder } from '../../planner/plan/order'
import type { PlanRequest } from '../../planner/plan/request'
import { workOn } from '../../planner/plan/work'
import { answer, NOW_MS, offer, plan, rejection, SPEC } from './wishes'

const gpu = (accelerator: string, dollars: number, changes: Partial<Offer> = {}): Offer =>
  offer({
    type: accelerator,
    shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator, gpuMemoryGiB: 15 },
    priceMicroUsdPerHour: microUsd(dollars),
    ...changes,
  })
const training = (changes: Partial<JobSpec> = {}): JobSpec => ({
  ...SPEC,
  resources: { gpus: { min: 1 } },
  durationMs: 10 * HOUR_MS,
  ...changes,
})
const types = (offers: Offer[], changes: Partial<PlanRequest> = {}): string[] =>
  plan(offers, { spec: training(), ...changes }).placements.map(({ offer: { type } }) => type)
const hoursOn = (accelerator: string, spec = training()): number =>
  workOn(gpu(accelerator, 1), { spec }).ms / HOUR_MS

describe('the time of a training', () => {
  it('is that of its accelerator, by what was measured on it', () => {
    expect(hoursOn('A100')).toBe(10)
    expect(hoursOn('H100')).toBeCloseTo(4.7, 1)
    expect(hoursOn('V100')).toBeCloseTo(23, 0)
    expect(hoursOn('T4')).toBeGreaterThan(30)
  })

  it('refers to the accelerator that the job states, else to the first that it names, else to an A100', () => {
    expect(hoursOn('H100', training({ durationOn: 'H100' }))).toBe(10)
    expect(hoursOn('A100', training({ durationOn: 'H100' }))).toBeCloseTo(21, 0)
    const named = training({ resources: { accelerators: ['V100', 'A100'] } })
    expect([hoursOn('V100', named), hoursOn('A100', named)]).toEqual([10, expect.closeTo(4.34, 1)])
    const assumed = (spec: JobSpec) => plan([gpu('V100', 1)], { spec }).assumedAccelerator
    expect([training(), named, training({ durationOn: 'T4' })].map(assumed)).toEqual([
      'A100',
      'V100',
      undefined,
    ])
  })

  it('is the stated one where no GPU trains, or one of unknown speed, which is a risk', () => {
    const { resources, ...rest } = training()
    expect(hoursOn('T4', { ...rest, resources: {} })).toBe(10)
    expect(plan([gpu('T4', 1)], { spec: { ...rest, resources: {} } }).assumedAccelerator).toBeUndefined()
    const [unknown] = plan([gpu('X900', 1)], { spec: { ...rest, resources } }).placements
    expect(unknown!.durationMs / HOUR_MS).toBeCloseTo(10, 0)
    // And its range says how little that means.
    expect(unknown!.forecast.finish.highMs).toBeGreaterThan(20 * HOUR_MS)
    expect(unknown!.risks).toContain(
      'the training speed of X900 is unknown; the speed of the A100 is assumed',
    )
  })

  it('comes with the speed, its range and the family of work, but for the type that it refers to', () => {
    const reasons = (accelerator: string, changes: Partial<JobSpec> = {}) =>
      plan([gpu(accelerator, 1)], { spec: training(changes) }).placements[0]!.reasons
    expect(reasons('H100')).toContainEqual(
      expect.stringMatching(
        /^about 2.1 times the speed of the A100 for work of any kind \([\d.]+ to [\d.]+, /,
      ),
    )
    expect(reasons('V100', { workFamily: 'fp32' })).toContainEqual(
      expect.stringMatching(/^about 0.33 times the speed of the A100 for training in fp32 \(/),
    )
    expect(reasons('A100').join()).not.toContain('speed')
  })

  it('depends on the family of work, with a narrower range where that is known', () => {
    const placed = (changes: Partial<JobSpec> = {}) =>
      plan([gpu('V100', 1)], { spec: training(changes), isFirst: true }).placements[0]!
    const [any, convolution, fp32] = [{}, { workFamily: 'convolution' }, { workFamily: 'fp32' }].map((one) =>
      placed(one as Partial<JobSpec>),
    )
    expect(convolution!.durationMs).toBeLessThan(any!.durationMs)
    expect(fp32!.durationMs).toBeGreaterThan(any!.durationMs)
    const width = ({ forecast: { finish } }: typeof any & object): number => finish.highMs / finish.lowMs
    expect(width(convolution!)).toBeLessThan(width(any!))
  })

  it('of the rest is that of what no checkpoint holds', () => {
    const [rest] = plan([gpu('H100', 1)], { spec: training(), leftShare: 0.25 }).placements
    expect(rest!.durationMs / HOUR_MS).toBeCloseTo(1.2, 1)
    expect(rest!.costMicroUsd).toBeLessThan(microUsd(1.35))
  })
})

describe('the ranking', () => {
  it('by cost puts a dear fast machine before a cheap slow one that costs more in all', () => {
    expect(types([gpu('T4', 0.5), gpu('H100', 3), gpu('V100', 3)])).toEqual(['H100', 'T4', 'V100'])
  })

  it('by time puts the fastest first', () => {
    const offers = ['T4', 'L4', 'V100', 'A10G', 'L40S', 'H100'].map((name) => gpu(name, 1))
    expect(types(offers, { spec: training({ optimize: 'time' }) })).toEqual([
      'H100',
      'L40S',
      'V100',
      'A10G',
      'L4',
      'T4',
    ])
  })

  it('never puts an offer that is likely to miss the deadline before one that keeps it', () => {
    const cheapSpot = gpu('A100', 0.1, { capacityType: 'spot', interruptionsPerHour: 0.2 })
    const spec = training({ isInterruptible: true })
    const deadlineAtMs = NOW_MS + 10 * HOUR_MS + 20 * MINUTE_MS
    const at = { spec, isFirst: true, deadlineAtMs }
    const { placements } = plan([cheapSpot, gpu('A100', 5)], at)
    expect(placements.map((one) => [one.offer.capacityType, one.isLate])).toEqual([
      ['on-demand', undefined],
      ['spot', true],
    ])
    expect(placements[1]!.risks[0]).toMatch(/^is likely to miss the deadline: about .* too long$/)
    expect(types([cheapSpot, gpu('A100', 5)], { spec, isFirst: true })).toEqual(['A100', 'A100'])
  })

  it('judges no deadline by a duration that the job does not state', () => {
    const { durationMs, ...spec } = training()
    const at = { isFirst: true, deadlineAtMs: NOW_MS + HOUR_MS }
    const [best] = plan([gpu('T4', 1)], { spec, ...at }).placements
    expect(best!.durationMs).toBeGreaterThan(HOUR_MS)
    expect(best?.isLate).toBeUndefined()
    // As slow as that, with a duration, it is late.
    const stated = plan([gpu('T4', 1)], { spec: { ...spec, durationMs: durationMs! / 25 }, ...at })
    expect(stated.placements[0]!.isLate).toBe(true)
  })

  it('of a later attempt counts what is done, and judges no deadline where that is unknown', () => {
    const at = { spec: training(), isFirst: false, deadlineAtMs: NOW_MS + 4 * HOUR_MS }
    const isLate = (leftShare?: number) => plan([gpu('A100', 1)], { ...at, leftShare }).placements[0]!.isLate
    expect([undefined, 0.3, 0.5].map(isLate)).toEqual([undefined, undefined, true])
  })
})

describe('a deadline', () => {
  it('refuses what misses it even at its highest speed, and nothing else', () => {
    const until = (hours: number) => ({
      spec: training(),
      isFirst: true,
      deadlineAtMs: NOW_MS + hours * HOUR_MS + stoppingMs(DEFAULT_TIMING),
    })
    // 10 hours of an A100 are about 23 hours of a V100, at best 12 or so.
    expect(rejection(gpu('V100', 1), until(9))?.reason).toMatch(
      /^it needs at least 1\dh .* there, plus .* but the deadline is in 9h/,
    )
    expect(rejection(gpu('V100', 1), until(16))).toBeUndefined()
    expect(rejection(gpu('A100', 1), until(9.9))?.reason).toMatch(/^it needs 10h, plus/)
    expect(rejection(gpu('A100', 1), until(10))).toBeUndefined()
  })

  it('keeps late offers out of an order that is in time', () => {
    const pool = (place: string, interruptionsPerHour: number) =>
      gpu('A100', 1, { capacityType: 'spot', place, interruptionsPerHour })
    const offers = [pool('calm', 0), pool('stormy', 1)]
    const placesOf = (deadlineAtMs?: number) => ordered(offers, deadlineAtMs).map(({ place }) => place)
    expect(placesOf()).toEqual(['calm', 'stormy'])
    expect(placesOf(NOW_MS + 11 * HOUR_MS)).toEqual(['calm'])
  })
})

describe('an order', () => {
  it('mixes no types of different speed, however alike their cost', () => {
    const offers = [gpu('V100', 1), gpu('A100', 2.6), gpu('A10G', 0.9)]
    expect(
      ordered(offers)
        .map(({ type }) => type)
        .sort(),
    ).toEqual(['A10G', 'V100'])
  })
})

function ordered(offers: Offer[], deadlineAtMs?: number): Offer[] {
  const spec = training({ isInterruptible: true })
  const isFirst = true
  const made = plan(offers, { spec, isFirst, deadlineAtMs })
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-0123456789',
    recordSeq: 2,
    attempt: 1,
    resolved: {
      spec,
      policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
      timing: DEFAULT_TIMING,
      runnerSha256: '0'.repeat(64),
      storeUrl: 's3://bucket/prefix',
    },
    bundle: null,
    ledger: EMPTY_LEDGER,
    avoid: [],
  }
  return makeOrder(made, input, [answer(offers)]).offers
}
