import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../core/activities'
import type { Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { BackendAnswer, Plan } from '../../core/job/plan'
import { HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { summaryOf } from '../../planner/plan/explain'
import { makeOrder } from '../../planner/plan/order'
import { makePlan } from '../../planner/plan/plan'
import type { PlanRequest } from '../../planner/plan/request'
import { SPEC } from '../workflows/harness'

const NOW_MS = Date.UTC(2026, 10, 21)
const CAPABILITIES: Capabilities = {
  capacityTypes: ['spot', 'on-demand', 'reserved'],
  imageRunner: 'runner',
  runnerStart: 'with-launch',
  idempotency: 'token',
  billsUntil: 'exit',
  price: 'live',
}

const offer = (changes: Partial<Offer>): Offer => ({
  backend: 'here',
  capacityType: 'reserved',
  type: 'small',
  place: 'a',
  priceMicroUsdPerHour: microUsd(5),
  shape: { cpus: 8, memoryGiB: 32, gpus: 0 },
  priceSource: { kind: 'live', observedAtMs: NOW_MS },
  availability: 'unknown',
  ...changes,
})
const RESERVATION = { free: 2, total: 4, idleMicroUsdPerHour: microUsd(5) }
const HELD = offer({ type: 'held', reservationId: 'r-1', reservation: RESERVATION })
const BLOCK = offer({
  type: 'block',
  reservationId: 'r-2',
  priceMicroUsdPerHour: 0,
  reservation: { ...RESERVATION, idleMicroUsdPerHour: 0 },
  usableUntilMs: NOW_MS + 10 * HOUR_MS,
})
const CHEAP = offer({ type: 'cheap', capacityType: 'on-demand', priceMicroUsdPerHour: microUsd(1) })

const answersOf = (offers: Offer[]): BackendAnswer[] => [
  { backend: 'here', capabilities: CAPABILITIES, offers },
]
const plan = (offers: Offer[], changes: Partial<PlanRequest> = {}): Plan =>
  makePlan({
    spec: SPEC,
    timing: DEFAULT_TIMING,
    answers: answersOf(offers),
    silentBackends: [],
    avoid: [],
    nowMs: NOW_MS,
    ...changes,
  })

describe('what is reserved', () => {
  it.each(['cost', 'time', 'reliability'] as const)(
    'comes before what would be paid for in addition (optimize: %s)',
    (optimize) => {
      const { placements } = plan([CHEAP, HELD], { spec: { ...SPEC, optimize } })
      expect(placements.map((one) => one.offer.type)).toEqual(['held', 'cheap'])
      expect(placements[0]!.extraCostMicroUsd).toBe(0)
      expect(placements[0]!.costMicroUsd).toBeGreaterThan(microUsd(5))
    },
  )

  it('keeps GPUs for jobs that ask for some, or name what is reserved', () => {
    const withGpus = { ...BLOCK, shape: { ...BLOCK.shape, gpus: 8, accelerator: 'H100', gpuMemoryGiB: 80 } }
    const chosen = (spec: Partial<JobSpec>): string | undefined =>
      plan([withGpus, CHEAP], { spec: { ...SPEC, ...spec } }).placements[0]?.offer.type
    expect(chosen({})).toBe('cheap')
    expect(chosen({ resources: { gpus: { min: 1 } } })).toBe('block')
    expect(chosen({ backends: [{ backend: 'here', capacityType: 'reserved' }] })).toBe('block')
    expect(plan([withGpus]).rejections[0]?.reason).toContain('`backends: [here:reserved]` overrides this')
  })

  it('is not for a job that excludes it', () => {
    const { placements, rejections } = plan([HELD, CHEAP], { spec: { ...SPEC, usesReserved: false } })
    expect(placements.map(({ offer }) => offer.type)).toEqual(['cheap'])
    expect(rejections[0]?.reason).toBe('it is reserved capacity, which `reserved: false` excludes')
  })

  it('says that it is paid for either way, and how much of it is free', () => {
    const [first] = plan([HELD]).placements
    expect(first!.reasons.join('; ')).toMatch(
      /^\$5\.00\/h, about \$5\.45 in 1h 5m, billed even when idle: \$5\.00\/h; .*already reserved, 2 of 4 free/,
    )
    expect(first!.risks).toEqual([])
  })

  it('says of a block that it was paid for, and the end of its use', () => {
    const [first] = plan([BLOCK]).placements
    expect(first!.reasons[0]).toBe('paid up front: no further cost')
    expect(summaryOf(first!)).toBe('here reserved, block in a, paid')
    expect(first!.risks).toEqual([
      'its reservation ends at 2026-11-21T10:00:00Z, in 10h; unfinished work then resumes elsewhere from its checkpoint',
    ])
  })

  it('says that disk and address of a block are still paid for', () => {
    const beside = { priceMicroUsdPerHour: microUsd(0.02), besideMicroUsdPerHour: microUsd(0.02) }
    const [first] = plan([{ ...BLOCK, ...beside }, CHEAP]).placements
    expect(first!.offer.type).toBe('block')
    expect(first!.costMicroUsd).toBeGreaterThan(20_000)
    expect(first!.extraCostMicroUsd).toBe(first!.costMicroUsd)
    expect(first!.reasons[0]).toBe('paid up front, except $0.02/h for disk and address, about $0.02 in 1h 5m')
    expect(summaryOf(first!)).toBe('here reserved, block in a, paid, $0.02/h')
  })

  it('counts against a budget what is billed', () => {
    const request = { remainingMicroUsd: microUsd(0.05) }
    expect(plan([HELD], request).rejections[0]!.reason).toContain('only pays for 36s')
    expect(plan([BLOCK], request).placements).toHaveLength(1)
  })

  it('may be had by a job that must not be interrupted', () => {
    const spec = { ...SPEC, isInterruptible: false }
    expect(plan([HELD, BLOCK], { spec }).placements).toHaveLength(2)
  })

  it('is ordered one by one, and the runner learns the end of its use', () => {
    const input: PlanInput = {
      jobId: 'job-1',
      deployment: 'dep-1',
      recordSeq: 2,
      attempt: 1,
      bundle: null,
      avoid: [],
      resolved: {
        spec: SPEC,
        timing: DEFAULT_TIMING,
        runnerSha256: '',
        storeUrl: '',
        policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
      },
      ledger: EMPTY_LEDGER,
    }
    const ordered = (offers: Offer[]) => makeOrder(plan(offers), input, answersOf(offers))
    const order = ordered([BLOCK, { ...BLOCK, reservationId: 'r-3' }])
    expect(order.offers.map(({ reservationId }) => reservationId)).toEqual(['r-2'])
    expect(order.runner.usableUntilMs).toBe(BLOCK.usableUntilMs)
    expect(ordered([HELD]).runner.usableUntilMs).toBeUndefined()
    // Its provider takes it back as it takes back spot machines; what is paid on demand it leaves alone.
    const notice = { kind: 'instance-metadata' } as const
    const noticed = (one: Offer) =>
      makeOrder(plan([one]), input, [{ ...answersOf([one])[0]!, capabilities: { ...CAPABILITIES, notice } }])
        .runner.notice
    expect([HELD, BLOCK, offer({ capacityType: 'spot' })].map(noticed)).toEqual([notice, notice, notice])
    expect(noticed(CHEAP)).toEqual({ kind: 'none' })
    expect(order.runner.notice).toEqual({ kind: 'none' })
  })
})
