import { picked } from '../defined'
import type { Expected, Forecast } from './forecast'
import type { JobReason } from './job'
import type { MicroUsd } from '../money/money'
import type { Capabilities } from '../capabilities'
import type { InputSize } from './input-size'
import type { BackendName, CapacityType, Offer } from '../offer'
import type { RunnerOrder } from '../documents'
import type { Relaxation } from './relaxation'
import type { MeasuredMemory } from './own-memory'
import type { NamedReservation } from '../reservation/hold'
import type { ResourceRequest } from '../resources'
import type { SavedBefore } from './saving'
import type { OwnRatio } from '../speed'
import type { StorePrice } from '../money/store-price'
import type { OwnTags } from '../own-tags'
import type { OfferExplained } from '../arithmetic'

/**
 * Reasons for excluding an offer, one for each requirement of a job and each obstacle; programs may rely on them. `deadline` to `billed-on`
 * are requirements as in the job file.
 * @internal Tests go over all of them.
 */
export const REJECTION_CODES = [
  'deadline',
  'budget',
  'max-price',
  'backend',
  'region',
  'isolation',
  /** Spot, for a job that must not be interrupted; and on-demand capacity that can be interrupted. */
  'interruptible',
  'preemptible',
  'billed-on',
  'cpus',
  'memory',
  'gpus',
  'disk',
  'gpu-memory',
  'accelerator',
  'instance-type',
  'image',
  /** A key of the job that the backend cannot follow (`Capabilities.ignores`). */
  'unsupported',
  /** The target of a migration. */
  'target',
  /**
   * The offer is not in the reservation that the job names; has GPUs that the job does not need; is kept for others; or others get it
   * first.
   */
  'reservation',
  'kept-for-gpus',
  'held',
  'awaited',
  /** The backend would not buy it for any job. */
  'unusable',
  /** The provider ends its machines too early, or its reservation ends; or it cannot be had. */
  'run-limit',
  'reservation-end',
  'quota',
  'stock',
] as const
/** @experimental */
export type RejectionCode = (typeof REJECTION_CODES)[number]

/** Why an offer was left out, kept for `plan` and for later questions. */
export interface Rejection {
  offerKey: string
  code: RejectionCode
  /** Reason for people. */
  reason: string
  /** `unfit`: never, as the job is written. `quota`: not until a person raises it. `unavailable`: not now. */
  why: 'unfit' | 'quota' | 'unavailable'
  /** Expected cost of the job there, if that is the reason. */
  costMicroUsd?: MicroUsd
}

const NAMES_SHOWN = 3

/** Lists the first three keys in a sentence and counts the others, without the empty place of a provider that has no places. */
export function nameSome(keys: readonly string[], total = keys.length): string {
  const shown = keys
    .slice(0, NAMES_SHOWN)
    .map((key) => key.replace(/\/$/, ''))
    .join(', ')
  return total <= NAMES_SHOWN ? shown : `${shown} and ${total - NAMES_SHOWN} more`
}

/**
 * All offers excluded for one reason. `offerKeys` has the first three of `count` in the record, and all of them in a report, unless there
 * are thousands. @experimental
 */
export interface RejectionGroup extends Omit<Rejection, 'offerKey'> {
  offerKeys: string[]
  /** Expected cost of the job at each of `offerKeys`, for offers above the budget. */
  costsMicroUsd?: MicroUsd[]
  count: number
}

/**
 * Groups offers by reason and keeps three of each, or `keysMax` in all. For offers above the budget, which have individual prices, the
 * cheapest represents all.
 */
export function groupRejections(
  rejections: readonly Rejection[],
  { keysMax }: { keysMax?: number } = {},
): RejectionGroup[] {
  let least: Rejection | undefined
  for (const one of rejections)
    if (one.costMicroUsd !== undefined && one.costMicroUsd < (least?.costMicroUsd ?? Infinity)) least = one
  const groups = new Map<string, RejectionGroup>()
  let keys = 0
  for (const one of rejections) {
    const { why, code, reason, costMicroUsd } = one.costMicroUsd === undefined ? one : least!
    const key = `${why} ${reason}`
    const group = groups.get(key) ?? {
      why,
      code,
      reason,
      costMicroUsd,
      offerKeys: [],
      count: 0,
    }
    groups.set(key, group)
    group.count += 1
    if (keysMax === undefined ? group.offerKeys.length >= NAMES_SHOWN : keys >= keysMax) continue
    keys += 1
    group.offerKeys.push(one.offerKey)
    if (keysMax !== undefined && one.costMicroUsd !== undefined)
      (group.costsMicroUsd ??= []).push(one.costMicroUsd)
  }
  return [...groups.values()]
}

/** `ec2/spot/p3.2xlarge/us-east-1a: out of stock` */
export function rejectionsInWords(groups: readonly RejectionGroup[]): string[] {
  return groups.map(({ offerKeys, count, reason }) => `${nameSome(offerKeys, count)}: ${reason}`)
}

/** An offer and its consequences for this job. @experimental */
export interface Placement {
  offer: Offer
  /** Median cost of the job, or of the rest of it. */
  costMicroUsd: MicroUsd
  /**
   * Part of the cost that the job adds, for reserved capacity, which is paid anyway; the ranking uses it. Missing if it is the whole cost.
   */
  extraCostMicroUsd?: MicroUsd
  /** Part of the cost for moving data between machines and a store elsewhere; missing if that is free. */
  transferMicroUsd?: MicroUsd
  /** Time from the order until the job is done, by its median. */
  durationMs: number
  /** Ranges around both, and the chances to keep the limits. */
  forecast: Forecast
  /** Cost without the expected interruptions of a pool where the job recently lost a machine. */
  calmMicroUsd?: MicroUsd
  /** Whether the job is likely to end after the deadline. */
  isLate?: true
  /** Reasons for its rank as sentences for people, best first. */
  reasons: string[]
  /** Risks as sentences for people. */
  risks: string[]
}

/** The ranked answer to "where should this job run now". Plain data; the workflow follows it without judging. */
export interface Plan {
  placements: Placement[]
  rejections: Rejection[]
  /** True if the job gave no duration and the figures rest on `ASSUMED_DURATION_MS`. */
  isDurationAssumed: boolean
  /** The accelerator that the duration is taken to refer to, if the job does not name it and a GPU trains. */
  assumedAccelerator?: string
  /** Remaining share of the work, from 0 to 1, if a checkpoint shows it. Cost and time are those of the remaining work. */
  leftShare?: number
  /** Backends that did not answer, with the reason. */
  silentBackends: SilentBackend[]
}

/** Number of best placements that are recorded and sent in full. */
const PLACEMENTS_IN_FULL = 20

/** A plan as it is recorded: its best placements, with counts of the others. The recorded inputs and offers reproduce all of it. */
export interface PlanExcerpt extends Omit<Plan, 'rejections'> {
  /** Number of further placements. */
  othersTotal: number
  rejections: RejectionGroup[]
}

export function excerptOf(plan: Plan): PlanExcerpt {
  const { placements, rejections } = plan
  return {
    ...plan,
    placements: placements.slice(0, PLACEMENTS_IN_FULL),
    othersTotal: Math.max(0, placements.length - PLACEMENTS_IN_FULL),
    rejections: groupRejections(rejections),
  }
}

/**
 * A job's next step by a plan: it starts, waits for capacity or an answer, or ends because nothing can change in its favour.
 * @experimental
 */
export type Prospect =
  | { kind: 'place' }
  | { kind: 'wait'; reason: string }
  | { kind: 'never'; reason: JobReason; message: string; hint?: string }

/** A plan as it is sent: small enough for Temporal with thousands of offers. @experimental */
export interface PlanReport extends PlanExcerpt, Pick<PlanFacts, 'named'> {
  /** The job's next step by this plan. */
  prospect: Prospect
  /** Backends that the job names and this deployment does not have; missing without any. */
  absentBackends?: BackendName[]
  /** The offer that the request asks to explain, null if no offer has that name; missing if it asks for none. */
  explained?: OfferExplained | null
  /** The placements after the best ones, in order; the last of very many are only counted. */
  others: PlacementInShort[]
  /** Effects of relaxing one requirement, best first; at most three. */
  relaxations: Relaxation[]
}

/** A placement as a table shows it: without explanations and without what only its backend needs. @experimental */
export interface PlacementInShort extends Pick<Placement, (typeof SHOWN_OF_PLACEMENT)[number]> {
  offer: Pick<Offer, (typeof SHOWN_OF_OFFER)[number]>
  forecast: Pick<Forecast, 'cost' | 'finish' | 'chances' | 'interruptions'>
}

const SHOWN_OF_PLACEMENT = [
  'costMicroUsd',
  'extraCostMicroUsd',
  'calmMicroUsd',
  'durationMs',
  'isLate',
  'transferMicroUsd',
] as const
const SHOWN_OF_OFFER = [
  'backend',
  'capacityType',
  'type',
  'place',
  'shape',
  'reservationId',
  'reservation',
  'priceMicroUsdPerHour',
  'besideMicroUsdPerHour',
  'priceSource',
  'availability',
] as const
/** About 1.4 MB; Temporal takes 2 MiB. */
const OTHERS_SENT_MAX = 3_500
/** Names of offers that were left out; about 0.4 MB. */
const REJECTED_SENT_MAX = 6_000

export function reportOf(plan: Plan, prospect: Prospect, relaxations: Relaxation[]): PlanReport {
  const others = plan.placements.slice(PLACEMENTS_IN_FULL, PLACEMENTS_IN_FULL + OTHERS_SENT_MAX)
  const rejections = groupRejections(plan.rejections, { keysMax: REJECTED_SENT_MAX })
  return { ...excerptOf(plan), prospect, rejections, others: others.map(inShort), relaxations }
}

/** Leaves the words of a placement alone: they are made when they are read. */
function inShort(placement: Placement): PlacementInShort {
  const { cost, finish, chances, interruptions } = placement.forecast
  return {
    ...picked(placement, SHOWN_OF_PLACEMENT),
    forecast: { cost, finish, chances, interruptions },
    offer: picked(placement.offer, SHOWN_OF_OFFER),
  }
}

/** Facts that a worker collects for a plan. Together with the job's input, they determine the plan. */
export interface PlanFacts {
  nowMs: number
  answers: BackendAnswer[]
  silentBackends: SilentBackend[]
  /** Known sizes of the job's inputs, where they matter; unlisted inputs have an unknown size. */
  inputSizes: InputSize[]
  /** The prices of the deployment's store; missing if it is free. */
  storePrice?: StorePrice | 'unknown'
  /** The newest checkpoint of the job, or of one of its name. */
  savedBefore?: SavedBefore
  /** Share of the work that no checkpoint contains yet, from 0 to 1; missing if unknown, as before the first attempt. */
  leftShare?: number
  /** Facts about the reservation that the job names, if no offer belongs to it. */
  named?: NamedReservation
  /**
   * Speed ratios that the deployment's own jobs measured for work of this family, or of any if it is unknown; missing without such jobs.
   */
  ownRatios?: OwnRatio[]
  /** GPU memory that an earlier attempt of the same code and command used; missing without one. */
  measuredMemory?: MeasuredMemory
}

export interface SilentBackend {
  backend: BackendName
  /** The part of the backend that did not answer, if others did. */
  place?: string
  reason: string
}

/** Names a silent backend: `ec2`, or `ec2 in eu-west-1` if only a part of it did not answer. */
export function silentName({ backend, place }: Pick<SilentBackend, 'backend' | 'place'>): string {
  return place === undefined ? backend : `${backend} in ${place}`
}

/** One backend's answer to a request for offers. */
export interface BackendAnswer {
  backend: BackendName
  capabilities: Capabilities
  offers: Offer[]
  /** Parts of the provider that did not answer, with the reason; missing if all did. */
  silentPlaces?: { place: string; reason: string }[]
}

/** Returns the possible places of an order's machine. */
export function placesOf({ offers }: Pick<Order, 'offers'>): string[] {
  return [...new Set(offers.map(({ place }) => place))]
}

/** One placement made concrete. It is recorded whole before it is sent, and every retry sends it unchanged. */
export interface Order {
  attemptId: string
  jobId: string
  attempt: number
  deployment: string
  backend: BackendName
  capacityType: CapacityType
  /** Interchangeable offers of that one capacity type; the backend may buy any of them. */
  offers: Offer[]
  /** The job's request, for a backend that cuts machines to size (slots, GPUs, disk); missing means the minimum. */
  resources: ResourceRequest
  /** Number of machines in the gang. */
  nodes: 1
  /**
   * Idempotency token: the same token means the same order and one machine, however often it is sent. At most 64 characters of `[a-z0-9-]`.
   */
  token: string
  /** Inputs of the plan for its first offer; missing for an order that no plan made. */
  expected?: Expected
  /** When the runner starts. If it starts after the launch, a silent one is started again before its machine is given up. */
  runnerStart: Capabilities['runnerStart']
  /** The `contentSha256` of its bundle; missing without one. */
  codeSha256?: string
  /** The job's own tags, for what the provider lets it tag; missing without any. */
  tags?: OwnTags
  /** Digest of the runner program: a job keeps the runner that it started with through upgrades. */
  runnerSha256: string
  /** The object store as the machine reaches it. */
  storeUrl: string
  /** The highest price that any of the offers can reach; the hard stop rests on it. */
  priceMaxMicroUsdPerHour: MicroUsd
  /** Billing steps as in its offers; missing for steps of one second. */
  billedInStepsOfMs?: number
  /** Expected cost of moving data with the most expensive of its offers: the machine must not spend it. Missing if that is free. */
  transferMicroUsd?: MicroUsd
  /** Whether only our call ends the machine's billing. The budget then keeps a reserve for the time until that call. */
  isBilledOn?: true
  /** The container image that the provider itself runs (`imageRunner: 'provider'`); then `runner.image` is null. */
  image?: string
  /** Python packages that the provider installs into the image once for all attempts, so that `setup` finds them installed. */
  requirements?: string[]
  /** Whether its account limits launches per minute (`Pace.launchesPerMinute`), so that the order waits in `launchQueue`. */
  isPaced?: true
  /** The content of `order.json`. */
  runner: RunnerOrder
}
