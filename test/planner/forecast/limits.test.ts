import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { medianOf, movingOf, reservedMsOf, timeLeftMs } from '../../../planner/forecast/forecast'
import type { PlanRequest } from '../../../planner/plan/request'
import { expected, NOW_MS, offer, request, SPEC } from '../wishes'

const TWO_HOURS = { ...SPEC, durationMs: 2 * HOUR_MS }
/** Saving and stopping take two minutes. */
const LEFT_MS = 5 * HOUR_MS - 2 * MINUTE_MS
const asked = (changes: Partial<PlanRequest>): PlanRequest =>
  request([], { spec: TWO_HOURS, isFirst: true, deadlineAtMs: NOW_MS + 5 * HOUR_MS, ...changes })

describe('the time that a job has', () => {
  it.each<[string, Partial<PlanRequest>, number | undefined]>([
    ['ends before the deadline, with time to save and stop', {}, LEFT_MS],
    ['begins with its order', { startsInMs: HOUR_MS }, LEFT_MS - HOUR_MS],
    ['is unlimited without a deadline', { deadlineAtMs: undefined }, undefined],
    ['is unknown without a duration', { spec: SPEC }, undefined],
    ['is unknown for a later attempt', { isFirst: false }, undefined],
    ['is unknown where the attempt is not counted', { isFirst: undefined }, undefined],
    ['is known for a later attempt whose share of work is known', { isFirst: false, leftShare: 0 }, LEFT_MS],
    ['is unknown of an unknown duration, whatever is left', { spec: SPEC, leftShare: 0.5 }, undefined],
  ] as [string, Partial<PlanRequest>, number | undefined][])('%s', (_, changes, ms) => {
    expect(timeLeftMs(asked(changes))).toBe(ms)
  })

  it.each<[string, Partial<Offer>, Partial<PlanRequest>, number | undefined]>([
    ['ends with its reservation', { usableUntilMs: NOW_MS + HOUR_MS }, {}, HOUR_MS],
    [
      'ends with it, from the order on',
      { usableUntilMs: NOW_MS + HOUR_MS },
      { startsInMs: MINUTE_MS },
      HOUR_MS - MINUTE_MS,
    ],
    ['has no end without one', {}, {}, undefined],
    [
      'has no end with a limit for each machine',
      { usableUntilMs: NOW_MS + HOUR_MS, runMsMax: HOUR_MS },
      {},
      undefined,
    ],
  ])('%s', (_, changes, more, ms) => {
    expect(reservedMsOf(offer(changes), asked(more))).toBe(ms)
  })
})

describe('a chance', () => {
  it('of a budget is that of the cost and of two minutes to save and stop', () => {
    // Everything is within the hundred hours that are billed at least.
    const chance = (remainingMicroUsd: number) =>
      expected(offer({ billedAtLeastMs: 100 * HOUR_MS }), { spec: TWO_HOURS, remainingMicroUsd }).forecast
        .chances
    const stopping = Math.ceil((microUsd(1) * 2) / 60)
    expect(chance(microUsd(100) + stopping)).toEqual({ budget: 1 })
    expect(chance(microUsd(100) + stopping - 1)).toEqual({ budget: 0 })
  })

  it('of any budget is certain where nothing is paid', () => {
    const free = expected(offer({ priceMicroUsdPerHour: 0 }), { remainingMicroUsd: 0 })
    expect(free.forecast.chances).toEqual({ budget: 1 })
  })
})

describe('the start of a forecast', () => {
  it('is the middle of all parts before the training, with resuming if there is a checkpoint', () => {
    const spec = {
      ...TWO_HOURS,
      image: 'pytorch',
      setup: 'pip install x',
      inputs: [{ source: 's3://a/b', path: 'b' }],
    }
    const savedBefore = { totalBytes: 100 * 2 ** 20 }
    const startMs = (changes: Partial<PlanRequest>) =>
      expected(offer(), { spec, ...changes }).forecast.startMs
    // A wait of 5 s, two minutes each of boot and pull, a minute each of set-up and download, and a second to restore.
    expect(startMs({})).toBe(365_000)
    expect(startMs({ savedBefore })).toBe(366_000)
    expect(startMs({ savedBefore, isFirst: true })).toBe(365_000)
  })
})

it('a median is between the two in the middle, rounded', () => {
  expect(medianOf(new Float64Array([9, 1, 4, 2]))).toBe(3)
  expect(medianOf(new Float64Array([1, 2]))).toBe(2)
})

it('moving data costs something once, and something for each further machine', () => {
  const transfer = {
    storeRegion: 'x',
    upMicroUsdPerGb: 10_000,
    downMicroUsdPerGb: 20_000,
    bytesPerSecond: 1e8,
  }
  const spec = { ...TWO_HOURS, checkpoint: { everyMs: HOUR_MS, sizeBytes: 2e9 } }
  // Two gigabytes three times to the store, a gigabyte of code to each machine, and two gigabytes to each but the first.
  expect(movingOf(offer({ transfer }), asked({ spec, bundleBytes: 1e9 }))).toEqual({
    onceMicroUsd: 6 * 10_000 + 20_000,
    perMachineMicroUsd: 3 * 20_000,
  })
  expect(movingOf(offer(), asked({ spec }))).toEqual({ onceMicroUsd: 0, perMachineMicroUsd: 0 })
})
