import { attemptBudget, budgetReserveMs, paidForMs } from '../../core/money/budget'
import type { Capabilities } from '../../core/capabilities'
import { billedMs } from '../../core/money/meter'
import { formatUsd } from '../../core/money/money'
import {
  dearestPriceOf,
  formatBackendChoice,
  isInRegion,
  isInterruptible,
  ISOLATIONS,
  offerKey,
  type BackendChoice,
  type Isolation,
  type Offer,
} from '../../core/offer'
import { ISOLATION_DEFAULT, type Acceptance, type JobSpec } from '../../core/job/job'
import type { Rejection, RejectionCode } from '../../core/job/plan'
import { formatRange, isWithin, wantsGpu, type Range, type ResourceRequest } from '../../core/resources'
import { isAcceptable } from '../../core/accelerators'
import { fitsGpuMemory, gpuMemoryInWords } from '../../core/gpu-memory'
import { CLOCK_SLACK_MS, formatDuration } from '../../core/time/time'
import { exceedsLimits, isDeadlineDue } from './admission'
import { stoppingMs } from '../../core/time/timing'
import { USEFUL_RUN_MS } from './assumptions'
import { whyAvoided } from './avoidance'
import type { Forecasted } from '../forecast/forecast'
import { notFor, notYetFor } from './held'
import type { PlanRequest } from './request'
import { tooLongToRun } from './run-limit'
import { whyUnmet } from './unmet-keys'

/** Why an offer cannot run the job, or `undefined` if it can. Permanent reasons come first. `forecast` is asked only if it matters. */
export function reject(
  offer: Offer,
  capabilities: Capabilities,
  { request, forecast }: { request: PlanRequest; forecast: () => Forecasted },
): Rejection | undefined {
  const key = offerKey(offer)
  const { spec } = request
  // Obstacles that no consent can change come before those that the job file may allow.
  const unusable =
    offer.availability === 'unusable'
      ? against('unusable', offer.note ?? 'the backend does not support it')
      : undefined
  const unfit =
    notWanted(offer, request) ??
    notFitting(offer, spec.resources) ??
    tooSmallAsMeasured(offer, request) ??
    notAccepted(offer, spec) ??
    unusable ??
    notAble(offer, capabilities, request)
  const dear = unfit === undefined ? notAffordable(offer, capabilities, { request, forecast }) : undefined
  const found = unfit ?? dear ?? notObtainable(offer, request, forecast)
  // The cost of the whole job is more useful than the share that the budget buys, and is reported once for all offers.
  const refusal = unfit === undefined ? exceedsLimits(offer, request, forecast) : undefined
  if (refusal !== undefined) return { offerKey: key, why: 'unfit', ...refusal }
  return found === undefined ? undefined : { offerKey: key, why: whyOf(found.code), ...found }
}

/** A reason against an offer. */
type Against = Pick<Rejection, 'code' | 'reason'>

function against(code: RejectionCode, reason: string | undefined): Against | undefined {
  return reason === undefined ? undefined : { code, reason }
}

/** Returns an obstacle that a person or time may change, but not the job. */
function notObtainable(offer: Offer, request: PlanRequest, forecast: () => Forecasted): Against | undefined {
  const { avoid } = request
  const { availability, note } = offer
  const noQuota = availability === 'no-quota' ? (note ?? 'the account has no quota for it') : undefined
  const noStock = availability === 'unavailable' ? (note ?? 'out of stock') : undefined
  return (
    against('quota', noQuota ?? whyAvoided(offer, avoid, 'quota')) ??
    against('stock', noStock ?? whyAvoided(offer, avoid, 'capacity')) ??
    notYetFor(offer, request, forecast)
  )
}

function whyOf(code: RejectionCode): Rejection['why'] {
  if (code === 'quota') return 'quota'
  return code === 'stock' || code === 'awaited' ? 'unavailable' : 'unfit'
}

/** Whether a choice such as `ec2:spot` covers an offer. */
export function covers(choice: BackendChoice, offer: Offer): boolean {
  return (
    choice.backend === offer.backend &&
    (choice.capacityType === undefined || choice.capacityType === offer.capacityType)
  )
}

/** Whether a job's `backends` include the offer; true without any. */
export function isBackendAllowed(offer: Offer, { backends }: Pick<JobSpec, 'backends'>): boolean {
  return backends.length === 0 || backends.some((choice) => covers(choice, offer))
}

function notWanted(offer: Offer, request: PlanRequest): Against | undefined {
  const { spec, target } = request
  if (target !== undefined && !covers(target, offer)) {
    return against('target', `the migration requested ${formatBackendChoice(target)}`)
  }
  if (!isBackendAllowed(offer, spec)) {
    return against('backend', `the job allows only ${spec.backends.map(formatBackendChoice).join(', ')}`)
  }
  const { regions, priceMaxMicroUsdPerHour: most } = spec
  if (regions !== undefined && !regions.some((name) => isInRegion(offer, name))) {
    return against('region', `the job allows only the Regions ${regions.join(', ')}`)
  }
  if (most !== undefined && dearestPriceOf(offer) > most) {
    return against('max-price', `it may cost more than \`max_price\` of ${formatUsd(most)} an hour`)
  }
  const { isolation = 'dedicated' } = offer
  if (ISOLATIONS.indexOf(isolation) > ISOLATIONS.indexOf(spec.isolation ?? ISOLATION_DEFAULT)) {
    return against(
      'isolation',
      `its hardware is ${ISOLATION_IN_WORDS[isolation]}; \`isolation: ${isolation}\` allows it`,
    )
  }
  if (isKeptForGpus(offer, spec)) {
    return against(
      'kept-for-gpus',
      `its GPUs are kept for GPU jobs; \`backends: [${offer.backend}:reserved]\` overrides this`,
    )
  }
  return notFor(offer, request)
}

function notAccepted(offer: Offer, spec: JobSpec): Against | undefined {
  if (!isInterruptible(offer) || spec.isInterruptible) return undefined
  if (offer.capacityType === 'spot')
    return against('interruptible', 'it is interruptible, but the job is not marked interruptible')
  return accepts(spec, 'preemptible-on-demand')
    ? undefined
    : against(
        'preemptible',
        'it can be interrupted although it is on demand; `interruptible: true` or `accept: preemptible-on-demand` allows it',
      )
}

function accepts({ accepts: accepted = [] }: JobSpec, risk: Acceptance): boolean {
  return accepted.includes(risk)
}

const ISOLATION_IN_WORDS: Record<Isolation, string> = {
  dedicated: 'dedicated',
  shared: 'shared with other customers',
  community: "a private owner's",
}

/**
 * Whether an offer's GPUs are kept for jobs that ask for GPUs. A reservation costs nothing extra, so it would always rank first, and a job
 * without GPUs would block its GPUs.
 */
function isKeptForGpus(
  { backend, capacityType, shape }: Offer,
  { resources, backends, reservation }: JobSpec,
): boolean {
  const isNamed =
    reservation !== undefined ||
    backends.some((one) => one.backend === backend && one.capacityType === 'reserved')
  return capacityType === 'reserved' && shape.gpus > 0 && !wantsGpu(resources) && !isNamed
}

function notFitting(offer: Offer, resources: ResourceRequest): Against | undefined {
  const { shape, type } = offer
  const { instanceTypes } = resources
  if (instanceTypes !== undefined && !instanceTypes.includes(type))
    return against('instance-type', `type: is ${type}, requested ${instanceTypes.join(' or ')}`)
  const measures: ['cpus' | 'memory' | 'gpus' | 'disk', number, Range | undefined, string][] = [
    ['cpus', shape.cpus, resources.cpus, ''],
    ['memory', shape.memoryGiB, resources.memoryGiB, ' GiB'],
    ['gpus', shape.gpus, resources.gpus ?? (wantsGpu(resources) ? { min: 1 } : undefined), ''],
    // A provider that states no disk size supplies the requested one.
    [
      'disk',
      shape.diskGiB ?? Infinity,
      resources.diskGiB === undefined ? undefined : atLeast(resources.diskGiB),
      ' GiB',
    ],
  ]
  for (const [code, has, wanted, unit] of measures) {
    if (isWithin(has, wanted)) continue
    const name = code === 'gpus' ? 'GPUs' : code
    return against(code, `${name}: has ${round1(has)}${unit}, requested ${formatRange(wanted!, unit)}`)
  }
  if (!fitsGpuMemory(shape, resources))
    return against('gpu-memory', `GPU memory: ${gpuMemoryInWords(shape, resources)}`)
  const wanted = resources.accelerators ?? []
  if (isAcceptable(shape.accelerator, wanted)) return undefined
  const requested =
    wanted.length === 0 ? 'which has no CUDA, so jobs must name it' : `requested ${wanted.join(' or ')}`
  return against('accelerator', `accelerator: has ${shape.accelerator ?? 'none'}, ${requested}`)
}

/** Counts for jobs that leave the memory and type of their GPUs open; with a different number of GPUs, each may need more or less. */
function tooSmallAsMeasured({ shape }: Offer, { spec, measuredMemory }: PlanRequest): Against | undefined {
  const { gpuMemoryGb, gpuMemoryGiB, accelerators } = spec.resources
  if (measuredMemory === undefined || (gpuMemoryGb ?? gpuMemoryGiB ?? accelerators) !== undefined)
    return undefined
  const { jobId, gpus, peakGiB } = measuredMemory
  const has = shape.gpuMemoryGiB ?? Infinity
  if (shape.gpus !== gpus || has >= peakGiB) return undefined
  return against(
    'gpu-memory',
    `GPU memory: has ${round1(has)} GiB, but job ${jobId} used ${round1(peakGiB)} GiB with the same code and command`,
  )
}

/** Disks are sold in fixed sizes; a larger one does not exclude an offer. */
function atLeast(range: Range): Range {
  return { min: range.min ?? 0 }
}

/** A limit of money that counts with the price of another place may be exceeded. A reservation is paid for anyway. */
function priceOfElsewhere(
  { capacityType, priceSource: { standIn } }: Offer,
  { remainingMicroUsd, spec }: PlanRequest,
): string | undefined {
  const hasLimit = remainingMicroUsd !== undefined || spec.priceMaxMicroUsdPerHour !== undefined
  return hasLimit && standIn !== undefined && capacityType !== 'reserved'
    ? `its price is not known, only that of ${standIn}, with which no limit of money would hold; let workers read the price list`
    : undefined
}

function notAble(offer: Offer, capabilities: Capabilities, request: PlanRequest): Against | undefined {
  if (request.spec.image !== undefined && capabilities.imageRunner === 'none') {
    return against('image', `${offer.backend} runs no container images`)
  }
  const unmet = against('unsupported', whyUnmet(request.spec, capabilities))
  if (unmet !== undefined) return unmet
  const { remainingMicroUsd, spec } = request
  const isBilledOn = capabilities.billsUntil === 'terminate' && remainingMicroUsd !== undefined
  if (isBilledOn && !accepts(spec, 'billed-until-terminated')) {
    return against(
      'billed-on',
      'it is billed until our call ends it, so the budget fails if we fail; `accept: billed-until-terminated` allows it',
    )
  }
  const due = isDeadlineDue(request) ? 'the deadline leaves no time to save and stop' : undefined
  return (
    against('unusable', priceOfElsewhere(offer, request)) ??
    against('run-limit', tooLongToRun(offer, request)) ??
    against('reservation-end', notUsableLongEnough(offer, request)) ??
    against('deadline', due)
  )
}

function notUsableLongEnough(
  { usableUntilMs }: Offer,
  { timing, nowMs, startsInMs = 0 }: PlanRequest,
): string | undefined {
  if (usableUntilMs === undefined) return undefined
  const leftMs = usableUntilMs - nowMs - startsInMs
  if (leftMs <= 0) return 'its reservation has ended'
  const parts: [number, string][] = [
    [USEFUL_RUN_MS, 'of work'],
    [stoppingMs(timing), 'to save and stop'],
    [CLOCK_SLACK_MS, 'of clock slack'],
  ]
  if (leftMs >= parts.reduce((sum, [ms]) => sum + ms, 0)) return undefined
  const words = parts.map(([ms, what]) => `${formatDuration(ms)} ${what}`).join(', ')
  return `its reservation ends in ${formatDuration(leftMs)}, but the job needs ${words}`
}

function notAffordable(
  offer: Offer,
  { billsUntil }: Capabilities,
  { request, forecast }: { request: PlanRequest; forecast: () => Forecasted },
): Against | undefined {
  const { remainingMicroUsd, timing } = request
  if (remainingMicroUsd === undefined) return undefined
  const { transfer } = forecast()
  const budget = attemptBudget(remainingMicroUsd, {
    priceMaxMicroUsdPerHour: dearestPriceOf(offer),
    transferMicroUsd: transfer?.costMicroUsd ?? 0,
    billedInStepsOfMs: offer.billedInStepsOfMs,
    isBilledOn: billsUntil === 'terminate',
  })
  const runMs = paidForMs(budget)
  const leastMs = billedMs(USEFUL_RUN_MS + budgetReserveMs(timing), offer)
  if (runMs >= leastMs) return undefined
  const moving =
    transfer === undefined ? '' : `, after ${formatUsd(transfer.costMicroUsd)} for moving its data,`
  return against(
    'budget',
    `the remaining budget of ${formatUsd(remainingMicroUsd)}${moving} only pays for ${formatDuration(runMs)}`,
  )
}

function round1(value: number): number {
  return Math.round(value * 10) / 10
}
