import { microUsd } from '../../core/money/money'
import { CAPACITY_TYPES, type Offer } from '../../core/offer'
import { reportOf, type PlanReport } from '../../core/job/plan'
import { relaxationsOf } from '../../planner/plan/relaxed'
import type { PlanRequest } from '../../planner/plan/request'
import { HOUR_MS } from '../../core/time/time'
import { makePlan } from '../../planner/plan/plan'
import { NOW_MS, offer, request, SPEC } from './wishes'

export const OFFERS = 3_000
const TYPES = ['L4', 'A10G', 'T4', 'V100', 'A100', 'H100']

/** As detailed as an offer of EC2: in several Regions, far from the store, with what its launch needs. */
export const detailed = (index: number): Offer =>
  offer({
    backend: 'ec2',
    capacityType: CAPACITY_TYPES[index % 2]!,
    type: `g${index % 40}.12xlarge`,
    region: `us-east-${index % 9}`,
    place: `us-east-${index % 9}${index}`,
    shape: {
      cpus: 48,
      memoryGiB: 192,
      gpus: 4,
      accelerator: TYPES[index % TYPES.length]!,
      gpuMemoryGiB: 24,
      diskGiB: 200,
    },
    priceMicroUsdPerHour: microUsd(1 + (index % 700) / 100),
    besideMicroUsdPerHour: 12_345,
    billedAtLeastMs: 60_000,
    stillBilled: 'its disk, $0.08 per GB and month',
    interruptionsPerHour: 0.1,
    transfer: {
      storeRegion: 'us-west-2',
      upMicroUsdPerGb: 20_000,
      downMicroUsdPerGb: 20_000,
      bytesPerSecond: 1e8,
      priceSource: { kind: 'live', observedAtMs: NOW_MS },
    },
    data: { image: 'ami-0123456789abcdef0', subnet: 'subnet-0123456789abcdef0', architecture: 'x86_64' },
    pins: { image: 'ami-0123456789abcdef0' },
  })

export const many = Array.from({ length: OFFERS }, (_, index) => detailed(index))
export const spec = { ...SPEC, durationMs: 36_000_000, resources: { gpus: { min: 4 } } }

export function reportFor(asked: PlanRequest): PlanReport {
  const plan = makePlan(asked)
  return reportOf(plan, { kind: 'place' }, relaxationsOf(plan, asked))
}

/** The plan as `crucible plan` gets it. */
export function planMany(): PlanReport {
  return reportFor(request(many, { spec }))
}

/** The same of jobs whose wishes leave half of the offers, and none: the others are considered again without each wish. */
const ON_DEMAND = { spec: { ...spec, isInterruptible: false } }
const IMPOSSIBLE: Partial<PlanRequest> = {
  isFirst: true,
  deadlineAtMs: NOW_MS + 12 * HOUR_MS,
  remainingMicroUsd: microUsd(30),
  spec: { ...ON_DEMAND.spec, regions: ['us-east-1'], priceMaxMicroUsdPerHour: microUsd(5) },
}

/**
 * For each of these plans the shortest of a few runs, in milliseconds of processor time: longer ones, and the clock, measure the load of
 * the machine.
 */
export function planTimesMs(): number[] {
  return [{ spec }, ON_DEMAND, IMPOSSIBLE].map((changes) => {
    const asked = request(many, changes)
    const tookMs = [1, 2, 3, 4].map(() => {
      const from = process.cpuUsage()
      JSON.stringify(reportFor(asked))
      const { user, system } = process.cpuUsage(from)
      return (user + system) / 1_000
    })
    return Math.min(...tookMs)
  })
}
