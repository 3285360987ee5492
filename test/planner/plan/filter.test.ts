import { describe, expect, it } from '@jest/globals'
import { budgetReserveMs } from '../../../core/money/budget'
import type { JobSpec } from '../../../core/job/job'
import { spendOver } from '../../../core/money/meter'
import { microUsd } from '../../../core/money/money'
import { offerKey, type Offer } from '../../../core/offer'
import type { RejectionCode } from '../../../core/job/plan'
import type { ResourceRequest } from '../../../core/resources'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING, stoppingMs } from '../../../core/time/timing'
import { makePlan } from '../../../planner/plan/plan'
import type { PlanRequest } from '../../../planner/plan/request'
import { answer, NOW_MS, offer, rejection, request, SPEC } from '../wishes'

const reasonFor = (one: Offer, changes: Partial<PlanRequest> = {}): string | undefined =>
  rejection(one, changes)?.reason
const wanting = (resources: ResourceRequest, changes: Partial<JobSpec> = {}): Partial<PlanRequest> => ({
  spec: { ...SPEC, resources, ...changes },
})

describe('a price of another place', () => {
  const priceSource = { kind: 'static', observedAtMs: NOW_MS, standIn: 'us-east-1' } as const

  it('is no price for a limit of money', () => {
    const limits: Partial<PlanRequest>[] = [
      { remainingMicroUsd: microUsd(100) },
      { spec: { ...SPEC, priceMaxMicroUsdPerHour: microUsd(100) } },
    ]
    for (const limit of limits) {
      expect(rejection(offer({ priceSource }), limit)).toMatchObject({
        code: 'unusable',
        reason: expect.stringContaining('its price is not known, only that of us-east-1'),
      })
      expect(
        rejection(offer({ priceSource: { kind: 'static', observedAtMs: NOW_MS } }), limit),
      ).toBeUndefined()
    }
    expect(rejection(offer({ priceSource }))).toBeUndefined()
  })
})

describe('the shape of a machine', () => {
  const sized = (changes: Partial<Offer['shape']>): Offer =>
    offer({ shape: { cpus: 8, memoryGiB: 31.87, gpus: 0, ...changes } })

  it('has at least the disk that is asked for; a larger one is no reason against it', () => {
    const disk = (diskGiB: number, wanted: ResourceRequest['diskGiB']): string | undefined =>
      reasonFor(sized({ diskGiB }), wanting(wanted === undefined ? {} : { diskGiB: wanted }))
    expect(disk(99, { min: 100 })).toBe('disk: has 99 GiB, requested 100 GiB+')
    expect(disk(100, { min: 100 })).toBeUndefined()
    expect(disk(1_000, { min: 100, max: 200 })).toBeUndefined()
    expect(disk(1_000, { max: 200 })).toBeUndefined()
    expect(disk(0, undefined)).toBeUndefined()
  })

  it('has any disk where its provider states none', () => {
    expect(reasonFor(sized({}), wanting({ diskGiB: { min: 100 } }))).toBeUndefined()
  })

  it('is shown with one decimal', () => {
    expect(reasonFor(sized({}), wanting({ memoryGiB: { min: 64 } }))).toBe(
      'memory: has 31.9 GiB, requested 64 GiB+',
    )
  })

  it('has one of the accelerators that are asked for, by any of their names', () => {
    const withGpu = (accelerator: string): Offer =>
      offer({ shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator } })
    const among = (...accelerators: string[]) => wanting({ accelerators })
    expect(reasonFor(withGpu('H100'), among('A100', 'H100'))).toBeUndefined()
    expect(reasonFor(withGpu('H100'), among())).toBeUndefined()
    // One that no table knows is the same only by its own name.
    expect(reasonFor(withGpu('NewChip'), among('NewChip'))).toBeUndefined()
    expect(reasonFor(withGpu('NewChip'), among('NewerChip'))).toBe(
      'accelerator: has NewChip, requested NewerChip',
    )
    expect(reasonFor(withGpu('NewChip'), among('H100'))).toBe('accelerator: has NewChip, requested H100')
    expect(reasonFor(withGpu('H100'), among('NewChip'))).toBe('accelerator: has H100, requested NewChip')
    const unnamed = offer({ shape: { cpus: 8, memoryGiB: 32, gpus: 1 } })
    expect(reasonFor(unnamed, among('H100'))).toBe('accelerator: has none, requested H100')
  })

  it.each(['Trainium', 'Trainium2', 'Inferentia2'])('has no %s unless the job names it', (accelerator) => {
    const chip = offer({ shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator } })
    for (const request of [{}, { gpus: { min: 1 } }, { gpuMemoryGb: { min: 16 } }])
      expect(reasonFor(chip, wanting(request))).toBe(
        `accelerator: has ${accelerator}, which has no CUDA, so jobs must name it`,
      )
    expect(reasonFor(chip, wanting({ accelerators: ['A100'] }))).toMatch(/requested A100$/)
    expect(reasonFor(chip, wanting({ accelerators: ['A100', accelerator] }))).toBeUndefined()
  })

  it('has the GPU memory that an earlier job used, unless the job asks for GPUs of its own choice', () => {
    const gpu = (gpuMemoryGiB: number, gpus = 1): Offer =>
      offer({ shape: { cpus: 8, memoryGiB: 32, gpus, accelerator: 'T4', gpuMemoryGiB } })
    const measuredMemory = { jobId: 'train-a', gpus: 1, peakGiB: 18.04 }
    const asking = (resources: ResourceRequest) => ({ ...wanting(resources), measuredMemory })
    expect(reasonFor(gpu(15), asking({ gpus: { min: 1 } }))).toBe(
      'GPU memory: has 15 GiB, but job train-a used 18 GiB with the same code and command',
    )
    expect(reasonFor(gpu(22), asking({ gpus: { min: 1 } }))).toBeUndefined()
    expect(reasonFor(gpu(15, 2), asking({ gpus: { min: 1 } }))).toBeUndefined()
    expect(reasonFor(gpu(15), asking({ accelerators: ['T4'] }))).toBeUndefined()
    expect(reasonFor(gpu(15), asking({ gpuMemoryGiB: { min: 8 } }))).toBeUndefined()
  })
})

describe('where a job may run', () => {
  it('is on any of the backends and capacity types that it names', () => {
    const named = (...backends: JobSpec['backends']) => wanting({}, { backends })
    const there = { backend: 'there' }
    expect(reasonFor(offer(), named(there, { backend: 'here' }))).toBeUndefined()
    expect(reasonFor(offer(), named(there, { backend: 'here', capacityType: 'on-demand' }))).toBeUndefined()
    expect(reasonFor(offer(), named(there, { backend: 'there', capacityType: 'on-demand' }))).toBe(
      'the job allows only there, there:on-demand',
    )
  })

  it('is in a Region or zone that it names', () => {
    const among = (...regions: string[]) => wanting({}, { regions })
    const at = (place: string, region?: string): Offer => offer({ place, region })
    expect(reasonFor(at('eu-west-1', 'west'), among('west'))).toBeUndefined()
    for (const place of ['us-east-1', 'us-east-1a', 'us-east-1-bos-1a'])
      expect(reasonFor(at(place), among('eu-west-1', 'us-east-1'))).toBeUndefined()
    expect(reasonFor(at('us-east-1b'), among('us-east-1a'))).toMatch(/allows only the Regions us-east-1a$/)
    for (const place of ['us-east-2', 'us-east-10', 'us-east-1ab', ''])
      expect(reasonFor(at(place), among('us-east-1'))).toBe('the job allows only the Regions us-east-1')
  })

  it('costs no more per hour than it says, at its highest price', () => {
    const within = (priceMaxMicroUsdPerHour: number) => wanting({}, { priceMaxMicroUsdPerHour })
    const spot = offer({ priceMicroUsdPerHour: microUsd(1), priceMaxMicroUsdPerHour: microUsd(3) })
    expect(reasonFor(spot, within(microUsd(3)))).toBeUndefined()
    expect(reasonFor(spot, within(microUsd(2.99)))).toBe('it may cost more than `max_price` of $2.99 an hour')
  })

  it('is where a migration goes, and nowhere else', () => {
    const to = (target: PlanRequest['target']) => reasonFor(offer(), { target: target! })
    expect(to({ backend: 'here' })).toBeUndefined()
    expect(to({ backend: 'here', capacityType: 'on-demand' })).toBeUndefined()
    expect(to({ backend: 'here', capacityType: 'spot' })).toBe('the migration requested here:spot')
  })

  it('is not on reserved GPUs without a wish for GPUs, unless it names that reservation', () => {
    const held = offer({ capacityType: 'reserved', reservationId: 'r-1' })
    const kept = 'its GPUs are kept for GPU jobs; `backends: [here:reserved]` overrides this'
    expect(reasonFor(held)).toBe(kept)
    expect(reasonFor(held, wanting({ gpus: { min: 1 } }))).toBeUndefined()
    const named = (...backends: JobSpec['backends']) => reasonFor(held, wanting({}, { backends }))
    expect(named({ backend: 'here', capacityType: 'reserved' })).toBeUndefined()
    expect(named({ backend: 'here' })).toBe(kept)
    expect(named({ backend: 'here' }, { backend: 'there', capacityType: 'reserved' })).toBe(kept)
    const bare = { ...held, shape: { cpus: 8, memoryGiB: 32, gpus: 0 } }
    expect(reasonFor(bare)).toBeUndefined()
  })
})

it.each([
  ['runner', 'pytorch', undefined],
  ['none', 'pytorch', 'here runs no container images'],
  ['none', undefined, undefined],
] as const)('image runner %s, image %s: the reason against the offer is %s', (by, image, reason) => {
  const spec = image === undefined ? SPEC : { ...SPEC, image }
  const asked = request([], { spec, answers: [answer([offer()], { imageRunner: by })] })
  expect(makePlan(asked).rejections[0]?.reason).toBe(reason)
})

describe('the first reason of several', () => {
  const away = { availability: 'unavailable' } as const

  it('is a permanent one, then quota, then stock', () => {
    const quota = { offerKey: offerKey(offer()), forMs: HOUR_MS, why: 'quota' } as const
    const capacity = { ...quota, why: 'capacity' } as const
    expect(rejection(offer(away), wanting({ gpus: { min: 2 } }))?.why).toBe('unfit')
    expect(rejection(offer(away), { avoid: [quota] })?.why).toBe('quota')
    expect(rejection(offer(away), { avoid: [capacity] })?.reason).toBe('out of stock')
    expect(rejection(offer({ availability: 'no-quota' }), { avoid: [capacity] })?.why).toBe('quota')
  })

  it('is what a job cannot do within its limits, even without stock', () => {
    const first = { isFirst: true, remainingMicroUsd: microUsd(5) }
    const long = { ...wanting({}, { durationMs: 8 * HOUR_MS }), ...first }
    expect(rejection(offer(away), long)).toMatchObject({ why: 'unfit', costMicroUsd: expect.any(Number) })
    // The shape comes before the money.
    const large = { ...wanting({ gpus: { min: 2 } }, { durationMs: 8 * HOUR_MS }), ...first }
    expect(rejection(offer(), large)?.reason).toBe('GPUs: has 1, requested 2+')
  })

  it.each([
    ['unusable', 'unfit', 'the backend does not support it'],
    ['no-quota', 'quota', 'the account has no quota for it'],
    ['unavailable', 'unavailable', 'out of stock'],
  ] as const)('is in our words where the backend has none: %s', (availability, why, reason) => {
    expect(rejection(offer({ availability }))).toMatchObject({ why, reason })
    expect(rejection(offer({ availability, note: 'Its own words.' }))).toMatchObject({
      why,
      reason: 'Its own words.',
    })
  })
})

describe('a limit', () => {
  const stopMs = stoppingMs(DEFAULT_TIMING)

  it('in time is kept to the millisecond', () => {
    const deadline = (leftMs: number) => reasonFor(offer(), { deadlineAtMs: NOW_MS + leftMs })
    expect(deadline(stopMs)).toBeUndefined()
    expect(deadline(stopMs - 1)).toBe('the deadline leaves no time to save and stop')
    const leastMs = MINUTE_MS + stopMs + CLOCK_SLACK_MS
    const ending = (leftMs: number, startsInMs = 0) =>
      reasonFor(offer({ usableUntilMs: NOW_MS + leftMs }), { startsInMs })
    expect(ending(leastMs)).toBeUndefined()
    expect(ending(leastMs - 1)).toMatch(/^its reservation ends in /)
    expect(ending(leastMs + 5_000, 5_000)).toBeUndefined()
    expect(ending(leastMs + 5_000, 5_001)).toMatch(/^its reservation ends in /)
  })

  it('in money is kept to the second that is billed: a minute of work and the reserve', () => {
    const leastMs = MINUTE_MS + budgetReserveMs(DEFAULT_TIMING)
    const paying = (ms: number, one = offer()) =>
      reasonFor(one, { remainingMicroUsd: spendOver(ms, microUsd(1)) })
    expect(paying(leastMs)).toBeUndefined()
    expect(paying(leastMs - 1_000)).toMatch(/^the remaining budget of \$0\.0\d only pays for /)
    const hourly = offer({ billedAtLeastMs: HOUR_MS })
    expect(paying(HOUR_MS, hourly)).toBeUndefined()
    expect(paying(HOUR_MS - 1_000, hourly)).toContain('only pays for 59m 59s')
    // The highest price counts.
    const rising = offer({ priceMaxMicroUsdPerHour: microUsd(2) })
    expect(paying(2 * leastMs, rising)).toBeUndefined()
    expect(paying(2 * leastMs - 2_000, rising)).toMatch(/only pays for /)
  })
})

it.each<[code: RejectionCode, Partial<Offer>, Partial<JobSpec>]>([
  ['backend', {}, { backends: [{ backend: 'there' }] }],
  ['region', {}, { regions: ['eu-west-1'] }],
  ['max-price', {}, { priceMaxMicroUsdPerHour: microUsd(0.5) }],
  ['isolation', { isolation: 'community' }, {}],
  ['kept-for-gpus', { capacityType: 'reserved' }, {}],
  ['cpus', {}, { resources: { cpus: { min: 99 } } }],
  ['memory', {}, { resources: { memoryGiB: { min: 99 } } }],
  ['gpus', {}, { resources: { gpus: { min: 99 } } }],
  ['gpu-memory', {}, { resources: { gpuMemoryGb: { min: 99 } } }],
  ['accelerator', {}, { resources: { accelerators: ['H100'] } }],
  ['instance-type', {}, { resources: { instanceTypes: ['p5.48xlarge', 'p5en.48xlarge'] } }],
  ['interruptible', { capacityType: 'spot' }, { isInterruptible: false }],
  ['preemptible', { isPreemptible: true }, { isInterruptible: false }],
  ['unusable', { availability: 'unusable' }, {}],
  ['run-limit', { runMsMax: MINUTE_MS }, {}],
  ['reservation-end', { usableUntilMs: NOW_MS + MINUTE_MS }, {}],
  ['quota', { availability: 'no-quota' }, {}],
  ['stock', { availability: 'unavailable' }, {}],
])('a rejection for %s says so in its code', (code, offered, spec) => {
  expect(rejection(offer(offered), { spec: { ...SPEC, ...spec } })?.code).toBe(code)
})

it('a rejection for a limit of the job says so in its code', () => {
  const spec = { ...SPEC, durationMs: 10 * HOUR_MS }
  expect(rejection(offer(), { spec, isFirst: true, remainingMicroUsd: microUsd(5) })?.code).toBe('budget')
  expect(rejection(offer(), { spec, isFirst: true, deadlineAtMs: NOW_MS + HOUR_MS })?.code).toBe('deadline')
  expect(rejection(offer(), { target: { backend: 'there' } })?.code).toBe('target')
})
