import { describe, expect, it } from '@jest/globals'
import type { Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { BackendAnswer, Placement } from '../../core/job/plan'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { makePlan } from '../../planner/plan/plan'
import { catalogAnswers, EC2_CAPABILITIES, ec2Catalog } from './catalogs'
import { CAPABILITIES, SPEC } from './wishes'

/**
 * A common rule of thumb: quick jobs belong to providers that bill by the second, long ones on spot capacity, scheduled ones in Capacity
 * Blocks, continuous ones in reservations. Nothing in the planner says so. These tests show where the prices of `catalogs.ts` lead there,
 * and where they do not ("contradicted").
 */

const NOW_MS = Date.UTC(2026, 10, 25)

interface Job {
  hours: number
  on: string
  gpus?: number
  spec?: Partial<JobSpec>
  more?: BackendAnswer[]
  deadlineHours?: number
}

async function ranked({
  hours,
  on,
  gpus = 1,
  spec: changes = {},
  more = [],
  deadlineHours,
}: Job): Promise<Placement[]> {
  const resources = { gpus: { min: gpus, max: gpus }, accelerators: [on] }
  const spec: JobSpec = {
    ...SPEC,
    resources,
    durationMs: hours * HOUR_MS,
    durationOn: on,
    isInterruptible: false,
    // Modal may take back what has a GPU.
    accepts: ['preemptible-on-demand'],
    checkpoint: { directory: 'checkpoints', everyMs: 10 * MINUTE_MS },
    ...changes,
  }
  const deadlineAtMs = deadlineHours === undefined ? {} : { deadlineAtMs: NOW_MS + deadlineHours * HOUR_MS }
  const answers = [...(await catalogAnswers(resources)), ...more]
  return makePlan({
    spec,
    answers,
    timing: DEFAULT_TIMING,
    silentBackends: [],
    avoid: [],
    nowMs: NOW_MS,
    isFirst: true,
    ...deadlineAtMs,
  }).placements
}

const nameOf = ({ offer }: Placement): string => `${offer.backend}:${offer.capacityType}`
/** The best place of each backend and capacity type, in the order of the ranking. */
const order = async (job: Job): Promise<string[]> => [...new Set((await ranked(job)).map(nameOf))]
const costOf = async (name: string, job: Job): Promise<number> =>
  (await ranked(job)).find((one) => nameOf(one) === name)!.costMicroUsd
const INTERRUPTIBLE: Job['spec'] = { isInterruptible: true }
const SOON: Job['spec'] = { optimize: 'time' }

describe('quick jobs on providers that bill by the second', () => {
  const minutes = 5 / 60

  it.each([
    ['H100', 1],
    ['A100', 8],
    ['H100', 8],
  ])('hold for five minutes on %s (%i of them)', async (on, gpus) => {
    expect((await order({ hours: minutes, on, gpus }))[0]).toBe('modal:on-demand')
  })

  it.each(['T4', 'L4', 'A10G', 'H100'])('hold on %s for `optimize: time`', async (on) => {
    expect((await order({ hours: minutes, on, spec: SOON }))[0]).toBe('modal:on-demand')
  })

  it.each(['T4', 'L4', 'A10G'])('are contradicted on %s: EC2 bills seconds, too', async (on) => {
    // Modal adds the CPU cores and the memory of a Sandbox, which cost as much as a small GPU.
    const job = { hours: minutes, on }
    expect(await order(job)).toEqual(['ec2:on-demand', 'modal:on-demand'])
    expect(await costOf('modal:on-demand', job)).toBeGreaterThan(1.3 * (await costOf('ec2:on-demand', job)))
  })

  it('are over within some hours: then the machine with the lowest hourly price wins', async () => {
    expect((await order({ hours: 1, on: 'H100' }))[0]).toBe('lambda:on-demand')
    // A machine with 1 TiB boots for six minutes.
    expect((await order({ hours: 1, on: 'A100', gpus: 8 }))[0]).toBe('modal:on-demand')
    expect((await order({ hours: 10, on: 'A100', gpus: 8 }))[0]).toBe('ec2:on-demand')
  })

  it('do not belong to a provider that bills whole hours', async () => {
    // Paperspace, H100, read on 2026-09-20 from a public transcription of its price page; its documentation says hourly billing.
    const hourly = outside('paperspace', { on: 'H100', usd: 3.09, billedInStepsOfMs: HOUR_MS })
    expect((await order({ hours: minutes, on: 'H100', more: [hourly] })).at(-1)).toBe('paperspace:on-demand')
    expect((await order({ hours: 10, on: 'H100', more: [hourly] }))[0]).toBe('paperspace:on-demand')
  })
})

describe('long jobs on spot capacity', () => {
  it.each([
    ['T4', 1, 10],
    ['A10G', 1, 48],
    ['A100', 8, 48],
    ['H100', 8, 168],
  ])(
    'hold on %s (%i of them) for %i hours, interruptions and repeated work included',
    async (on, gpus, hours) => {
      const job = { hours, on, gpus, spec: INTERRUPTIBLE }
      const [first, second] = await order(job)
      expect(first).toBe('ec2:spot')
      expect(await costOf(first!, job)).toBeLessThan(0.75 * (await costOf(second!, job)))
    },
  )

  it('hold for short ones as well: what decides is whether the job may be interrupted', async () => {
    expect((await order({ hours: 0.5, on: 'A100', gpus: 8, spec: INTERRUPTIBLE }))[0]).toBe('ec2:spot')
  })

  it('are contradicted by a deadline that leaves no time for interruptions', async () => {
    const job = { hours: 48, on: 'A100', gpus: 8, spec: INTERRUPTIBLE }
    expect((await order({ ...job, deadlineHours: 60 }))[0]).toBe('ec2:spot')
    expect((await order({ ...job, deadlineHours: 49 }))[0]).toBe('ec2:on-demand')
  })

  it('are contradicted where spot costs as much as on demand', async () => {
    // p5.48xlarge in two zones of us-east-1 (use1-az1 and use1-az4), SkyPilot catalog, commit 00148f2a.
    const full = ec2Catalog()
      .filter(({ type, capacityType }) => type === 'p5.48xlarge' && capacityType === 'on-demand')
      .map((offer): Offer => ({ ...offer, backend: 'zone', capacityType: 'spot' }))
    const more = [{ backend: 'zone', capabilities: EC2_CAPABILITIES, offers: full }]
    const names = await order({ hours: 48, on: 'H100', gpus: 8, spec: INTERRUPTIBLE, more })
    expect(names.indexOf('ec2:on-demand')).toBeLessThan(names.indexOf('zone:spot'))
  })

  it('are contradicted for jobs that must not be interrupted: EC2 on demand is the dearest H100', async () => {
    expect(await order({ hours: 48, on: 'H100' })).toEqual([
      'lambda:on-demand',
      'modal:on-demand',
      'ec2:on-demand',
    ])
  })
})

describe('scheduled jobs in Capacity Blocks', () => {
  const week = { hours: 7 * 24 - 2, on: 'H100', gpus: 8 }
  const ec2Only = { backends: [{ backend: 'ec2' }, { backend: 'block' }] }

  it('hold against EC2 on demand, for a job that fills its block', async () => {
    const job = { ...week, more: [block(8)], spec: ec2Only }
    expect(await order(job)).toEqual(['block:reserved', 'ec2:on-demand'])
  })

  it('are contradicted if the block is much longer than the job', async () => {
    const job = { ...week, hours: 4 * 24, more: [block(8)], spec: ec2Only }
    expect(await order(job)).toEqual(['ec2:on-demand', 'block:reserved'])
  })

  it('are contradicted by spot capacity for interruptible jobs, and by Lambda while it has machines', async () => {
    const names = await order({ ...week, more: [block(8)], spec: INTERRUPTIBLE })
    expect(names.slice(0, 3)).toEqual(['ec2:spot', 'lambda:on-demand', 'modal:on-demand'])
  })

  it('hold wherever capacity that is certain comes first', async () => {
    const names = await order({ ...week, more: [block(8)], spec: { optimize: 'reliability' } })
    expect(names[0]).toBe('block:reserved')
  })
})

describe('continuous use in reservations', () => {
  const on = 'H100'

  it('holds for a reservation that is paid for already', async () => {
    const names = await order({ hours: 48, on, gpus: 8, more: [reservation({ isHeld: true })] })
    expect(names[0]).toBe('reserved:reserved')
  })

  it('is contradicted by cost: a new reservation costs the on-demand rate, used or not', async () => {
    const more = [reservation({ isHeld: false })]
    const whole = { hours: 23.5, on, gpus: 8, more }
    expect(await costOf('reserved:reserved', whole)).toBeGreaterThanOrEqual(
      await costOf('ec2:on-demand', whole),
    )
    const half = { hours: 12, on, gpus: 8, more }
    expect(await costOf('reserved:reserved', half)).toBeGreaterThan(
      1.8 * (await costOf('ec2:on-demand', half)),
    )
  })

  it('holds wherever capacity that is certain comes first', async () => {
    const more = [reservation({ isHeld: false })]
    const names = await order({ hours: 23, on, gpus: 8, more, spec: { optimize: 'reliability' } })
    expect(names[0]).toBe('reserved:reserved')
  })
})

/** A provider that has no backend yet. */
function outside(
  backend: string,
  { on, usd, ...changes }: { on: string; usd: number } & Partial<Offer>,
): BackendAnswer {
  const offer: Offer = {
    backend,
    capacityType: 'on-demand',
    type: on,
    place: 'ny2',
    availability: 'unknown',
    shape: { cpus: 20, memoryGiB: 250, gpus: 1, accelerator: on, gpuMemoryGiB: 80 },
    priceMicroUsdPerHour: microUsd(usd),
    priceSource: { kind: 'static', observedAtMs: Date.UTC(2026, 8, 20) },
    ...changes,
  }
  return { backend, capabilities: { ...CAPABILITIES, billsUntil: 'terminate' }, offers: [offer] }
}

function p5(changes: Partial<Offer>): Offer {
  const onDemand = ec2Catalog().find(({ type }) => type === 'p5.48xlarge')!
  return { ...onDemand, capacityType: 'reserved', ...changes }
}

const RESERVING: Capabilities = { ...EC2_CAPABILITIES, capacityTypes: ['reserved'] }

/**
 * A Capacity Block of p5.48xlarge before it is bought: whole days, paid up front. $39.33 an hour in us-east-1 by AWS's page, in a table that
 * was valid until 2025-01-01, before the price of on-demand capacity fell by 44 %; offerings are priced one by one since.
 */
function block(days: number): BackendAnswer {
  const offer = p5({
    backend: 'block',
    priceMicroUsdPerHour: microUsd(39.33),
    besideMicroUsdPerHour: 0,
    billedAtLeastMs: days * DAY_MS,
    usableUntilMs: NOW_MS + days * DAY_MS,
  })
  return { backend: 'block', capabilities: RESERVING, offers: [offer] }
}

/** An On-Demand Capacity Reservation: held and billed already, or made for this job by the day. */
function reservation({ isHeld }: { isHeld: boolean }): BackendAnswer {
  const { priceMicroUsdPerHour: price, besideMicroUsdPerHour: beside = 0 } = p5({})
  const offer = p5({
    backend: 'reserved',
    reservationId: 'cr-1',
    ...(isHeld
      ? { reservation: { free: 1, total: 1, idleMicroUsdPerHour: price - beside } }
      : { billedAtLeastMs: DAY_MS }),
  })
  return { backend: 'reserved', capabilities: RESERVING, offers: [offer] }
}
