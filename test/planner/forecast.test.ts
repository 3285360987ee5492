import { describe, expect, it } from '@jest/globals'
import type { BootTime } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { spendOver } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING, stoppingMs } from '../../core/time/timing'
import { normalQuantile } from '../../planner/forecast/points'
import type { PlanRequest } from '../../planner/plan/request'
import { expected, NOW_MS, offer, plan, SPEC } from './wishes'

const job = (changes: Partial<JobSpec>): JobSpec => ({ ...SPEC, ...changes })
const spot = (interruptionsPerHour?: number, changes: Partial<Offer> = {}): Offer =>
  offer({
    capacityType: 'spot',
    interruptionsPerHour,
    ...changes,
  })
const tenHours = job({ durationMs: 10 * HOUR_MS })
const ON_A100 = { shape: { cpus: 8, memoryGiB: 60, gpus: 1, accelerator: 'A100', gpuMemoryGiB: 40 } }
const training = job({ resources: { gpus: { min: 1 } }, durationMs: 10 * HOUR_MS, durationOn: 'A100' })

const hours = (ms: number): number => ms / HOUR_MS

describe('the time of a job', () => {
  it('has the work in its middle, with boot and stop, and less than a third on each side', () => {
    const { durationMs, forecast } = expected(offer(), { spec: tenHours })
    expect(hours(durationMs)).toBeCloseTo(10.1, 0)
    expect(durationMs).toBeGreaterThan(10 * HOUR_MS)
    const { lowMs, highMs } = forecast.finish
    expect([hours(lowMs), hours(highMs)]).toEqual([expect.closeTo(8.1, 0), expect.closeTo(12.6, 0)])
  })

  it('of a script of unknown length spans a factor of three, and that is its main driver', () => {
    const { forecast } = expected(offer(), { spec: SPEC })
    const { lowMs, highMs } = forecast.finish
    expect(highMs / lowMs).toBeGreaterThan(2.5)
    expect(highMs / lowMs).toBeLessThan(3.2)
    expect(forecast.drivers.finish[0]).toBe('duration')
  })

  it('is as uncertain as the speed of its accelerator', () => {
    const width = (accelerator: string): number => {
      const shape = { ...ON_A100.shape, accelerator }
      const { forecast } = expected(offer({ shape }), { spec: training })
      return forecast.finish.highMs / forecast.finish.lowMs
    }
    expect(width('A100')).toBeLessThan(width('H100'))
    expect(width('H100')).toBeLessThan(width('X900'))
    const t4 = { ...ON_A100.shape, accelerator: 'T4' }
    expect(expected(offer({ shape: t4 }), { spec: training }).forecast.drivers.cost[0]).toBe('speed')
  })

  it('counts what is done already', () => {
    const whole = expected(offer(), { spec: tenHours })
    const rest = expected(offer(), { spec: tenHours, leftShare: 0.25 })
    expect(hours(rest.durationMs)).toBeCloseTo(2.6, 0)
    expect(rest.costMicroUsd).toBeLessThan(whole.costMicroUsd * 0.27)
  })

  it.each<[string, Partial<JobSpec>]>([
    ['image', { image: 'pytorch/pytorch' }],
    ['setup', { setup: 'pip install torch' }],
    ['fetch', { inputs: [{ source: 's3://data/set', path: 'data' }] }],
  ])('includes the %s of each machine, which is billed', (part, changes) => {
    const short = job({ durationMs: 10 * MINUTE_MS })
    const [bare, more] = [short, { ...short, ...changes }].map((spec) => expected(offer(), { spec }))
    expect(more!.durationMs - bare!.durationMs).toBeGreaterThan(40_000)
    expect(more!.costMicroUsd).toBeGreaterThan(bare!.costMicroUsd)
    expect(more!.forecast.startMs).toBeGreaterThan(bare!.forecast.startMs)
    expect(more!.forecast.drivers.cost).toContain(part)
  })

  it('has the boot of its backend, and a queue that costs nothing', () => {
    const boot = (minutes: number): BootTime => {
      const middleMs = minutes * MINUTE_MS
      return { lowMs: middleMs * 0.9, middleMs, highMs: middleMs * 1.1, source: 'a test' }
    }
    const [fast, slow] = [1, 11].map((minutes) =>
      expected(offer(), { spec: tenHours }, { boot: boot(minutes) }),
    )
    const addedMs = slow!.durationMs - fast!.durationMs
    expect(Math.abs(addedMs - 10 * MINUTE_MS)).toBeLessThan(MINUTE_MS)
    expect(slow!.costMicroUsd - fast!.costMicroUsd).toBeCloseTo(spendOver(addedMs, microUsd(1)), -4)
    const queued = expected(offer(), { spec: job({ durationMs: MINUTE_MS }) }, { queues: true })
    const direct = expected(offer(), { spec: job({ durationMs: MINUTE_MS }) })
    expect(queued.forecast.finish.highMs).toBeGreaterThan(direct.forecast.finish.highMs + 5 * MINUTE_MS)
    expect(queued.forecast.cost).toEqual(direct.forecast.cost)
    expect(queued.forecast.drivers.finish[0]).toBe('wait')
  })

  it('is longer where machines are lost, by new starts and repeated work', () => {
    const rarely = expected(spot(0.01), { spec: tenHours })
    const often = expected(spot(1), { spec: tenHours })
    expect(expected(offer({ interruptionsPerHour: 3 }), { spec: tenHours }).interruptions).toBe(0)
    expect(often.interruptions).toBeGreaterThan(10)
    expect(often.durationMs).toBeGreaterThan(rarely.durationMs * 1.2)
    const savedOften = job({ durationMs: 10 * HOUR_MS, checkpoint: { everyMs: MINUTE_MS } })
    expect(expected(spot(1), { spec: savedOften }).durationMs).toBeLessThan(often.durationMs)
    expect(often.forecast.drivers.cost).toContain('interruptions')
  })

  it('includes writing checkpoints as long as it takes, as far as that is measured', () => {
    const spec = job({ durationMs: 10 * HOUR_MS, checkpoint: { everyMs: 10 * MINUTE_MS, sizeBytes: 1e9 } })
    const at = (saveMs: number) =>
      expected(offer(), { spec, isFirst: true, savedBefore: { totalBytes: 1e9, uploadMs: 1_000, saveMs } })
    // Sixty times half a minute.
    expect((at(30_000).durationMs - at(1).durationMs) / MINUTE_MS).toBeCloseTo(30, -1)
  })

  it('has one start more when a reservation ends before the job', () => {
    const held = (hoursLeft: number): number =>
      expected(offer({ usableUntilMs: NOW_MS + hoursLeft * HOUR_MS }), { spec: tenHours }).durationMs
    expect((held(5) - held(50)) / MINUTE_MS).toBeGreaterThan(2)
  })
})

describe('the cost of a job', () => {
  it('is no less than what the provider bills at least, and grows by whole steps', () => {
    const short = job({ durationMs: 6 * MINUTE_MS })
    const costOf = (changes: Partial<Offer>) => expected(offer(changes), { spec: short })
    const atLeast = costOf({ billedAtLeastMs: HOUR_MS })
    expect(atLeast.costMicroUsd).toBe(microUsd(1))
    expect(atLeast.forecast.cost).toEqual({ lowMicroUsd: microUsd(1), highMicroUsd: microUsd(1) })
    expect(costOf({ billedInStepsOfMs: HOUR_MS }).costMicroUsd).toBe(microUsd(1))
    expect(costOf({}).costMicroUsd).toBeLessThan(microUsd(0.3))
  })

  it('is billed for each machine on its own', () => {
    const perHour = { billedInStepsOfMs: HOUR_MS }
    const costOf = (changes: Partial<Offer>) => expected(spot(1, changes), { spec: tenHours })
    const extra = costOf(perHour).costMicroUsd - costOf({}).costMicroUsd
    // About half an hour for each of some fifteen machines.
    expect(extra).toBeGreaterThan(microUsd(4))
    expect(costOf(perHour).forecast.drivers.cost).not.toEqual([])
  })

  it('of a reservation is extra only as far as it exceeds what is billed while idle', () => {
    const held = (idle: number) =>
      expected(
        offer({
          capacityType: 'reserved',
          reservationId: 'r-1',
          priceMicroUsdPerHour: microUsd(5),
          reservation: { free: 1, total: 1, idleMicroUsdPerHour: microUsd(idle) },
        }),
        { spec: tenHours },
      )
    const { costMicroUsd } = held(0)
    expect(held(0).extraCostMicroUsd).toBe(costMicroUsd)
    expect(held(4).extraCostMicroUsd! / costMicroUsd).toBeCloseTo(0.2, 3)
    expect([5, 6].map((idle) => held(idle).extraCostMicroUsd)).toEqual([0, 0])
    expect(expected(offer()).extraCostMicroUsd).toBeUndefined()
  })

  it('is less certain with a price table that is old, and not at all where nothing is paid', () => {
    const day = 24 * HOUR_MS
    const widthOf = (ageMs: number): number => {
      const priceSource = { kind: 'static', observedAtMs: NOW_MS - ageMs } as const
      const { cost } = expected(offer({ priceSource }), { spec: tenHours }).forecast
      return cost.highMicroUsd / cost.lowMicroUsd
    }
    expect(widthOf(60 * day)).toBeGreaterThan(widthOf(day) * 1.1)
    const free = expected(offer({ priceMicroUsdPerHour: 0 })).forecast
    expect(free.cost).toEqual({ lowMicroUsd: 0, highMicroUsd: 0 })
    expect(free.drivers.cost).toEqual([])
  })
})

describe('the chances of a job', () => {
  const chancesAt = (changes: Partial<PlanRequest>) =>
    expected(offer(), { spec: tenHours, isFirst: true, ...changes }).forecast.chances

  it('are those of the deadline and the budget, where such a limit is set', () => {
    expect(chancesAt({})).toEqual({})
    const until = (limit: number) =>
      chancesAt({ deadlineAtMs: NOW_MS + limit * HOUR_MS + stoppingMs(DEFAULT_TIMING) }).deadline!
    expect([5, 10.1, 20].map(until)).toEqual([0, expect.closeTo(0.5, 1), 1])
    const paying = (usd: number) => chancesAt({ remainingMicroUsd: microUsd(usd) }).budget!
    expect([5, 10.15, 20].map(paying)).toEqual([0, expect.closeTo(0.5, 1), 1])
  })

  it('agree with what is called late', () => {
    for (const minutes of [602, 604, 606, 610, 620, 700]) {
      const deadlineAtMs = NOW_MS + minutes * MINUTE_MS
      const [one] = plan([offer(), spot(0.3)], { spec: tenHours, isFirst: true, deadlineAtMs }).placements
      const { deadline } = one!.forecast.chances
      if (one!.isLate === true) expect(deadline).toBeLessThanOrEqual(0.5)
      else expect(deadline).toBeGreaterThanOrEqual(0.5)
    }
  })

  it('are not told of a deadline where the amount of work is unknown', () => {
    const deadlineAtMs = NOW_MS + HOUR_MS
    expect(chancesAt({ spec: SPEC, deadlineAtMs })).toEqual({})
    expect(chancesAt({ isFirst: false, deadlineAtMs })).toEqual({})
    expect(chancesAt({ isFirst: false, leftShare: 0.01, deadlineAtMs }).deadline).toBe(1)
  })

  it('are in the reasons', () => {
    const limits = { deadlineAtMs: NOW_MS + 11 * HOUR_MS, remainingMicroUsd: microUsd(50) }
    const [one] = plan([offer()], { spec: tenHours, isFirst: true, ...limits }).placements
    expect(one!.reasons.join('; ')).toMatch(
      /\d+ % chance to keep the deadline; > 99 % chance to keep the budget/,
    )
  })
})

describe('a forecast', () => {
  it('is the same for the same facts', () => {
    const again = () => expected(spot(0.3), { spec: training })
    expect(again()).toEqual(again())
  })
})

it('the quantiles of the normal distribution are those of its table', () => {
  const table: [number, number][] = [
    [0.5, 0],
    [0.841345, 1],
    [0.95, 1.644854],
    [0.999, 3.090232],
    [0.01, -2.326348],
  ]
  for (const [p, z] of table) expect(normalQuantile(p)).toBeCloseTo(z, 5)
})

it('a forecast has the wait for a launch and the mean number of interruptions', () => {
  const spot = offer({ capacityType: 'spot', interruptionsPerHour: 0.5 })
  const { forecast, interruptions } = expected(spot, { spec: { ...SPEC, durationMs: 10 * HOUR_MS } })
  expect(forecast.waitMs).toBe(5_000)
  expect(forecast.waitMs).toBeLessThan(forecast.startMs)
  expect(forecast.interruptions).toBeGreaterThan(4)
  expect(forecast.interruptions).toBeCloseTo(interruptions, 2)
})
