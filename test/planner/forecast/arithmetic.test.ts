import { describe, expect, it } from '@jest/globals'
import type { ArithmeticLine, ArithmeticPart } from '../../../core/arithmetic'
import type { JobSpec } from '../../../core/job/job'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { arithmeticOf } from '../../../planner/forecast/arithmetic'
import type { PlanRequest } from '../../../planner/plan/request'
import { CAPABILITIES, NOW_MS, offer, request, SPEC } from '../wishes'

interface Given extends Omit<Partial<PlanRequest>, 'spec'> {
  spec?: Partial<JobSpec>
  offer?: Partial<Offer>
}

const tenHours: Partial<JobSpec> = { durationMs: 10 * HOUR_MS }

function linesOf({ spec = {}, offer: changes = {}, ...asked }: Given): ArithmeticLine[] {
  const one = offer(changes)
  const all = request([one], { ...asked, spec: { ...SPEC, ...tenHours, ...spec } })
  return arithmeticOf(one, CAPABILITIES, { request: all, isShaky: false })
}

function lineOf(part: ArithmeticPart, given: Given): ArithmeticLine {
  return linesOf(given).find((line) => line.part === part)!
}

const perHour = (ms: number): number => Math.ceil((microUsd(1) * ms) / HOUR_MS)
const gpu = { resources: { gpus: { min: 1 } }, durationOn: 'A100' }
const on = (accelerator: string): Partial<Offer> => ({
  shape: { cpus: 8, memoryGiB: 60, gpus: 1, accelerator, gpuMemoryGiB: 16 },
})

describe('the arithmetic of a placement', () => {
  it.each<[ArithmeticPart, Given, number, number, number]>([
    ['wait', {}, 5_000, 2_000, 60_000],
    ['boot', {}, 120_000, 60_000, 720_000],
    ['image', { spec: { image: 'pytorch' } }, 120_000, 20_000, 480_000],
    ['setup', { spec: { setup: 'pip install x' } }, 60_000, 5_000, 480_000],
    ['fetch', { spec: { inputs: [{ source: 's3://a/b', path: 'b' }] } }, 60_000, 5_000, 1_200_000],
    ['restore', { savedBefore: { totalBytes: 100 * 2 ** 20 } }, 1_000, 400, 2_500],
    // Ten hours have thirty intervals of twenty minutes; each checkpoint takes two seconds.
    ['saving', { isFirst: true, savedBefore: { totalBytes: 2e9 } }, 60_000, 500, 10_000],
    ['stop', {}, 10_000, 2_000, 90_000],
  ])('adds the middle of the part %s, with its range', (part, given, addedMs, lowMs, highMs) => {
    const line = lineOf(part, given)
    expect(line).toMatchObject({ addedMs, lowMs, highMs })
    // A wait costs nothing; a second is the smallest step of a bill.
    expect(line.addedMicroUsd).toBeCloseTo(part === 'wait' ? 0 : perHour(addedMs), -1)
  })

  it('has one line for each part that adds something, in the order of a life', () => {
    expect(linesOf({}).map(({ part }) => part)).toEqual(['duration', 'wait', 'boot', 'stop', 'ranges'])
    expect(linesOf({ storePrice: 'unknown' }).map(({ part }) => part)).toEqual([
      'duration',
      'wait',
      'boot',
      'stop',
      'store',
      'ranges',
    ])
    expect(linesOf({ leftShare: 0 })[0]).toMatchObject({ part: 'duration', addedMs: 0, addedMicroUsd: 0 })
  })

  it('keeps a line of something that costs no time, and of something that costs no money', () => {
    expect(lineOf('boot', { offer: { priceMicroUsdPerHour: 0 } })).toMatchObject({
      addedMs: 120_000,
      addedMicroUsd: 0,
    })
    const steps = lineOf('billing', { offer: { billedInStepsOfMs: 24 * HOUR_MS } })
    expect(steps.addedMs).toBe(0)
    // Ten hours, two minutes and ten seconds are paid as a day.
    expect(steps.addedMicroUsd).toBe(microUsd(24) - perHour(10 * HOUR_MS + 130_000))
  })

  it('adds interruptions, with their new starts, and says how many', () => {
    const line = lineOf('interruptions', { offer: { capacityType: 'spot', interruptionsPerHour: 0.128 } })
    // 1.2 in the mean, each with two minutes of boot and up to twenty of repeated work.
    expect(line.addedMs).toBeGreaterThan(5 * MINUTE_MS)
    expect(line.addedMs).toBeLessThan(30 * MINUTE_MS)
    expect(line).toMatchObject({ lowMs: null, highMs: null })
    expect(line.source).toMatch(
      /^0\.13 in an hour \(0\.064 to 0\.26\), each with a new start and repeated work; the backend's figure/,
    )
  })

  it('adds moves to other machines: a relaunch, a boot, a restore and a stop for each', () => {
    const eachMs = 60_000 + 120_000 + 10_000 + 10_000
    const limited = lineOf('moves', { offer: { runMsMax: 6 * HOUR_MS } })
    expect(limited).toMatchObject({ addedMs: eachMs, words: 'planned changes of machines' })
    expect(limited.source).toBe('its provider ends a machine after 6h')
    const held = lineOf('moves', { offer: { usableUntilMs: NOW_MS + 6 * HOUR_MS } })
    expect(held).toMatchObject({ addedMs: eachMs, source: 'its reservation ends before the job does' })
    expect(
      linesOf({ offer: { usableUntilMs: NOW_MS + 11 * HOUR_MS } }).map(({ part }) => part),
    ).not.toContain('moves')
  })

  it('counts the time to the end of a reservation from the order on', () => {
    const ending = { usableUntilMs: NOW_MS + 11 * HOUR_MS }
    const parts = (startsInMs: number) => linesOf({ offer: ending, startsInMs }).map(({ part }) => part)
    expect(parts(HOUR_MS / 2)).not.toContain('moves')
    expect(parts(HOUR_MS)).toContain('moves')
  })

  it('adds the transfer of its data, at its price', () => {
    const transfer = {
      storeRegion: 'x',
      upMicroUsdPerGb: 20_000,
      downMicroUsdPerGb: 20_000,
      bytesPerSecond: 1e9,
    }
    const given: Given = {
      offer: { transfer },
      spec: { checkpoint: { directory: 'c', everyMs: HOUR_MS, sizeBytes: 1e9 } },
    }
    // A gigabyte ten times in ten hours, and once at the end.
    expect(lineOf('transfer', given)).toMatchObject({
      addedMs: 0,
      addedMicroUsd: 11 * 20_000,
      words: 'moving its data',
      source: 'between its machines and a store in another Region',
    })
  })

  it.each<[string, Given]>([
    ['the stated duration, taken as right within a quarter', {}],
    ['the stated duration, taken as right within a quarter', { leftShare: 1 }],
    ['the stated duration, taken as right within a quarter; 40 % of it is left', { leftShare: 0.4 }],
    [
      'the stated duration, taken as right within a quarter; the training speed of X900 is unknown; the speed of the A100 is assumed',
      { spec: gpu, offer: on('X900') },
    ],
    ['the stated duration, taken as right within a quarter', { spec: gpu, offer: on('A100') }],
  ])('tells the source of its training time: %s', (source, given) => {
    expect(lineOf('duration', given).source).toBe(source)
  })

  it('tells the speed of another type, with the share that is left', () => {
    expect(lineOf('duration', { spec: gpu, offer: on('T4'), leftShare: 0.5 }).source).toMatch(
      /^the stated [^;]+; 50 % of it is left; about 0\.\d+ times the speed of the A100 for work of any kind/,
    )
  })

  it.each<[Partial<Offer>, string]>([
    [{ billedInStepsOfMs: 24 * HOUR_MS }, 'it is billed in steps of 1d'],
    [{ billedAtLeastMs: 24 * HOUR_MS }, 'it is billed at least 1d'],
    [
      { billedInStepsOfMs: 24 * HOUR_MS, billedAtLeastMs: 48 * HOUR_MS },
      'it is billed in steps of 1d, at least 2d',
    ],
  ])('tells how %j is billed', (changes, source) => {
    expect(lineOf('billing', { offer: changes })).toMatchObject({ source, words: 'steps of billing' })
  })
})
