import type { Expected, Forecast } from './forecast'
import type { MicroUsd } from './money'
import type { Capabilities } from './capabilities'
import type { BackendName, CapacityType, Offer } from './offer'
import type { RunnerOrder } from './documents'
import type { ResourceRequest } from './resources'

/** Why an offer was left out, kept for `plan` and for later questions. */
export interface Rejection {
  offerKey: string
  reason: string
  /** `unfit`: never, as the job is written. `quota`: not until a person raises it. `unavailable`: not now. */
  why: 'unfit' | 'quota' | 'unavailable'
  /** The job's expected cost there, if that is the reason. */
  costMicroUsd?: MicroUsd
}

const NAMES_SHOWN = 3

/** Some keys in a sentence, without the empty place of a provider that has no places: the first three, and how many more there are. */
export function nameSome(keys: readonly string[]): string {
  const shown = keys
    .slice(0, NAMES_SHOWN)
    .map((key) => key.replace(/\/$/, ''))
    .join(', ')
  return keys.length <= NAMES_SHOWN ? shown : `${shown} and ${keys.length - NAMES_SHOWN} more`
}

/**
 * Each reason once, with the offers that it applies to: `ec2/spot/p3.2xlarge/us-east-1a: out of stock`. For offers above the budget, each
 * at its own price, the cheapest stands for all.
 */
export function rejectionsInWords(rejections: readonly Rejection[]): string[] {
  const dear = rejections.flatMap(({ costMicroUsd, reason }) =>
    costMicroUsd === undefined ? [] : [{ costMicroUsd, reason }],
  )
  const [least] = dear.sort((a, b) => a.costMicroUsd - b.costMicroUsd)
  const keys = new Map<string, string[]>()
  for (const { offerKey, reason, costMicroUsd } of rejections) {
    const shown = costMicroUsd === undefined ? reason : least!.reason
    keys.set(shown, [...(keys.get(shown) ?? []), offerKey])
  }
  return [...keys].map(([reason, offers]) => `${nameSome(offers)}: ${reason}`)
}

/** An offer and its consequences for this job. @experimental */
export interface Placement {
  offer: Offer
  /** Cost of the job, or of the rest of it, by its median: as likely to be more as to be less. */
  costMicroUsd: MicroUsd
  /** The part of it that is not billed either way, for reserved capacity; the ranking uses it. Missing if that is all of it. */
  extraCostMicroUsd?: MicroUsd
  /** The part of it for moving data between machines and a store elsewhere; missing if that is free. */
  transferMicroUsd?: MicroUsd
  /** Time from the order until the job is done, by its median. */
  durationMs: number
  /** Ranges around both, and the chances to keep the limits. */
  forecast: Forecast
  /** Of a pool where the job recently lost a machine: its cost without that. */
  calmMicroUsd?: MicroUsd
  /** It is likely to end after the deadline. */
  isLate?: true
  /** Sentences for people: why it ranks where it does, best reason first. */
  reasons: string[]
  /** Sentences for people: what may go wrong. */
  risks: string[]
}

/** The ranked answer to "where should this job run now". Plain data; the workflow follows it without judging. @experimental */
export interface Plan {
  placements: Placement[]
  rejections: Rejection[]
  /** True if the job gave no duration and the figures rest on `ASSUMED_DURATION_MS`. */
  isDurationAssumed: boolean
  /** The accelerator that the duration is taken to refer to, if the job does not name it and a GPU trains. */
  assumedAccelerator?: string
  /** Share of the work that is left, from 0 to 1, if a checkpoint tells; cost and time are those of the rest. */
  leftShare?: number
  /** Digest of the offers it was made from; the offers themselves are in `market/`. */
  offersSha256: string
  /** Backends that did not answer, with the reason. */
  silentBackends: SilentBackend[]
}

export interface SilentBackend {
  backend: BackendName
  /** The one part of it that did not answer, if others did. */
  place?: string
  reason: string
}

/** `ec2`, or `ec2 in eu-west-1` if only a part of it did not answer. */
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

/** Where machines of an order can be. */
export function placesOf({ offers }: Pick<Order, 'offers'>): string[] {
  return [...new Set(offers.map(({ place }) => place))]
}

/** One placement made concrete; recorded whole before it is sent, and sent unchanged however often. */
export interface Order {
  attemptId: string
  jobId: string
  attempt: number
  deployment: string
  backend: BackendName
  capacityType: CapacityType
  /** Interchangeable offers of that one capacity type; the backend takes whichever it gets. */
  offers: Offer[]
  /** The job's request, for a backend that cuts machines to size (slots, GPUs, disk); missing means the minimum. */
  resources: ResourceRequest
  /** Number of machines in the gang. */
  nodes: 1
  /**
   * Idempotency token: the same token means the same order and one machine, however often it is sent. At most 64 characters of `[a-z0-9-]`.
   */
  token: string
  /** What its first offer was planned with; missing in orders of earlier versions. */
  expected?: Expected
  /** If the runner starts after the launch, a silent one is started again before its machine is given up. */
  runnerStart: Capabilities['runnerStart']
  /** Digest of the runner program: a job keeps the runner that it started with through upgrades. */
  runnerSha256: string
  /** The object store as the machine reaches it. */
  storeUrl: string
  /** The highest price that any of the offers can reach; the hard stop rests on it. */
  priceMaxMicroUsdPerHour: MicroUsd
  /** As of its offers; missing for steps of one second. */
  billedInStepsOfMs?: number
  /** Expected cost of moving data with the most expensive of its offers: the machine must not spend it. Missing if that is free. */
  transferMicroUsd?: MicroUsd
  /** Only our call ends the billing of its machine, which keeps some of the budget for the time until then. */
  isBilledOn?: true
  /** The container image that the provider itself runs (`imageRunner: 'provider'`); then `runner.image` is null. */
  image?: string
  /** Python packages that such a provider installs into the image, once for all attempts; `setup` finds them there. */
  requirements?: string[]
  /** Its account allows only so many launches per minute (`Pace.launchesPerMinute`): it waits in `launchQueue`. */
  isPaced?: true
  /** The content of `order.json`. */
  runner: RunnerOrder
}
