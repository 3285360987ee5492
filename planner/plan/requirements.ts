import { defined } from '../../core/defined'
import { formatCardMemory } from '../../core/gpu-memory'
import { formatUsd, MICRO_USD_PER_USD, type MicroUsd } from '../../core/money/money'
import { regionOf, type Offer } from '../../core/offer'
import type { Placement, RejectionCode } from '../../core/job/plan'
import { wantsGpu, type ResourceRequest } from '../../core/resources'
import { DAY_MS, formatDuration, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { PlanRequest } from './request'
import { durationOn } from './work'

/** A requirement of a job that its owner could drop or change. */
export interface Requirement {
  /** Returns the request without this requirement, or with the widest possible one. */
  without(request: PlanRequest): PlanRequest
  /** The change that is enough for this offer, as in the job file. */
  change(offer: Offer): string
  /** For a limit: the values to choose from, in order, and the request with one of them. */
  limit?: Limit
  /** Whether a machine with less than requested would be slower than the forecast, which does not model this. */
  isSlower?(offer: Offer, request: PlanRequest): boolean
}

export interface Limit {
  values: readonly number[]
  with(request: PlanRequest, value: number): PlanRequest
  change(value: number): string
  /** Whether the value is enough for the forecast of a placement that it allows; always, if missing. */
  covers?(value: number, placement: Placement): boolean
}

/** Times that a person would choose: steps of a quarter of an hour up to 4 hours, then wider ones, up to a year. */
const DEADLINES_MS: readonly number[] = [
  ...steps(15 * MINUTE_MS, { upTo: 4 * HOUR_MS }),
  ...steps(30 * MINUTE_MS, { from: 4 * HOUR_MS, upTo: 12 * HOUR_MS }),
  ...steps(HOUR_MS, { from: 12 * HOUR_MS, upTo: 2 * DAY_MS }),
  ...steps(6 * HOUR_MS, { from: 2 * DAY_MS, upTo: 7 * DAY_MS }),
  ...steps(DAY_MS, { from: 7 * DAY_MS, upTo: 366 * DAY_MS }),
]

/** Amounts of two digits, from ten cents to ten million dollars. */
const AMOUNTS: readonly MicroUsd[] = Array.from({ length: 8 }, (_, power) =>
  Array.from({ length: 90 }, (_each, digits) => (10 + digits) * 10 ** (power - 2) * MICRO_USD_PER_USD),
)
  .flat()
  .map(Math.round)

function steps(step: number, { from = 0, upTo }: { from?: number; upTo: number }): number[] {
  return Array.from({ length: (upTo - from) / step }, (_, index) => from + (index + 1) * step)
}

/** `$4.10`, `$12`, `$1200` */
function amountInWords(amount: MicroUsd): string {
  return formatUsd(amount).replace(/\.00$/, '')
}

const DEADLINE: Limit = {
  values: DEADLINES_MS,
  with: (request, ms) => ({ ...request, deadlineAtMs: request.nowMs + ms }),
  change: (ms) => `deadline: ${formatDuration(ms).replace(' ', '')}`,
}

const BUDGET: Limit = {
  values: AMOUNTS,
  with: (request, remainingMicroUsd) => ({ ...request, remainingMicroUsd }),
  change: (amount) => `budget: ${amountInWords(amount)}`,
  // A job of unknown duration may begin with less, and would be stopped.
  covers: (amount, { costMicroUsd }) => costMicroUsd <= amount,
}

const MAX_PRICE: Limit = {
  values: AMOUNTS,
  with: (request, amount) => withSpec(request, { priceMaxMicroUsdPerHour: amount }),
  change: (amount) => `max_price: ${amountInWords(amount)}`,
}

/** Requirements that can be relaxed, by the rejection code of each. */
export const REQUIREMENTS: Readonly<Partial<Record<RejectionCode, Requirement>>> = {
  deadline: limited(DEADLINE),
  budget: limited(BUDGET),
  'max-price': limited(MAX_PRICE),
  backend: {
    without: (request) => withSpec(request, { backends: [] }),
    change: ({ backend, capacityType }) => `backends: [${backend}:${capacityType}]`,
  },
  region: {
    without: (request) => ({ ...request, spec: omit(request.spec, 'regions') }),
    change: (offer) => `regions: [${regionOf(offer)}]`,
  },
  isolation: {
    without: (request) => withSpec(request, { isolation: 'community' }),
    change: ({ isolation = 'dedicated' }) => `isolation: ${isolation}`,
  },
  interruptible: {
    without: (request) => withSpec(request, { isInterruptible: true }),
    change: () => 'interruptible: true',
  },
  preemptible: accepting('preemptible-on-demand'),
  'billed-on': accepting('billed-until-terminated'),
  cpus: {
    ...resource('cpus', ({ shape }) => `cpus: ${shape.cpus}`),
    isSlower: ({ shape }, { spec }) => shape.cpus < (spec.resources.cpus?.min ?? 0),
  },
  memory: resource('memoryGiB', ({ shape }) => `memory: ${Math.floor(shape.memoryGiB)}GiB`),
  disk: resource('diskGiB', ({ shape }) => `disk: ${Math.floor(shape.diskGiB ?? 0)}GiB`),
  gpus: {
    ...resource('gpus', ({ shape }) => `gpus: ${shape.gpus}`),
    isSlower: ({ shape }, { spec }) => shape.gpus < (spec.resources.gpus?.min ?? 1),
  },
  'gpu-memory': {
    without: (request) => withoutResource(withoutResource(request, 'gpuMemoryGb'), 'gpuMemoryGiB'),
    change: ({ shape }) => `gpu_memory: ${formatCardMemory(shape)}`,
  },
  'instance-type': resource('instanceTypes', ({ type }) => `instance_type: ${type}`),
  accelerator: resource('accelerators', ({ shape }) => `accelerators: [${shape.accelerator ?? 'any'}]`),
}

function limited(limit: Limit): Requirement {
  return {
    without: (request) => limit.with(request, limit.values.at(-1)!),
    change: () => '',
    limit,
  }
}

function accepting(risk: NonNullable<PlanRequest['spec']['accepts']>[number]): Requirement {
  return {
    without: (request) => withSpec(request, { accepts: [...(request.spec.accepts ?? []), risk] }),
    change: () => `accept: ${risk}`,
  }
}

function resource(key: keyof ResourceRequest, change: Requirement['change']): Requirement {
  return { without: (request) => withoutResource(request, key), change }
}

function withSpec(request: PlanRequest, changes: Partial<PlanRequest['spec']>): PlanRequest {
  return { ...request, spec: { ...request.spec, ...defined(changes) } }
}

/** Drops a resource. The job still needs a GPU, and its duration still refers to the same type. */
function withoutResource(request: PlanRequest, key: keyof ResourceRequest): PlanRequest {
  const { spec } = request
  const resources = omit(spec.resources, key)
  const isGpuLost = wantsGpu(spec.resources) && !wantsGpu(resources)
  return withSpec(request, {
    resources: isGpuLost ? { ...resources, gpus: { min: 1 } } : resources,
    durationOn: wantsGpu(spec.resources) ? durationOn(spec) : undefined,
  })
}

function omit<T extends object, Key extends keyof T & string>(values: T, key: Key): Omit<T, Key> {
  const kept = Object.entries(values).filter(([name]) => name !== key)
  return Object.fromEntries(kept) as Omit<T, Key>
}
