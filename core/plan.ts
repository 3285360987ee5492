import type { MicroUsd } from './money'
import type { Capabilities } from './capabilities'
import type { BackendName, CapacityType, Offer } from './offer'
import type { RunnerOrder } from './documents'
import type { ResourceRequest } from './resources'

/** Why an offer was left out, kept for `plan` and for later questions. */
export interface Rejection {
  offerKey: string
  reason: string
  /** `unfit`: never, as the job is written. `quota`: not until somebody raises it. `unavailable`: not now. */
  why: 'unfit' | 'quota' | 'unavailable'
  /** What the job is expected to cost there, where that is the reason. */
  costMicroUsd?: MicroUsd
}

const NAMES_SHOWN = 3

/** Some keys in a sentence: the first three, and how many more there are. */
export function nameSome(keys: readonly string[]): string {
  const shown = keys.slice(0, NAMES_SHOWN).join(', ')
  return keys.length <= NAMES_SHOWN ? shown : `${shown} and ${keys.length - NAMES_SHOWN} more`
}

/**
 * Each reason once, with the offers that it holds for: `ec2/spot/p3.2xlarge/us-east-1a: out of stock`. Of what costs more than there
 * is, each offer its own, the least is reason enough for all.
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

/** An offer with what it would mean for this job. @experimental */
export interface Placement {
  offer: Offer
  /** Expected money until the job is done, with expected interruptions. */
  costMicroUsd: MicroUsd
  /** What of that is not paid for either way, for capacity that is reserved; the ranking goes by it. Missing where it is all of it. */
  extraCostMicroUsd?: MicroUsd
  /** What of it is expected for moving data between machines and a store elsewhere; missing where that is free. */
  transferMicroUsd?: MicroUsd
  /** Expected time until the job is done. */
  durationMs: number
  /** Sentences for people: why it stands where it stands, best reason first. */
  reasons: string[]
  /** Sentences for people: what may go wrong. */
  risks: string[]
}

/** The ranked answer to "where should this job run now". Plain data; the workflow follows it without judging. @experimental */
export interface Plan {
  placements: Placement[]
  rejections: Rejection[]
  /** True when the job gave no duration and the figures rest on `ASSUMED_DURATION_MS`. */
  isDurationAssumed: boolean
  /** Digest of the offers it was made from; the offers themselves are in `market/`. */
  offersSha256: string
  /** Backends that did not answer, with the reason. */
  silentBackends: SilentBackend[]
}

export interface SilentBackend {
  backend: BackendName
  /** The one part of it that did not answer, while others did. */
  place?: string
  reason: string
}

/** `ec2`, or `ec2 in eu-west-1` where only a part of it did not answer. */
export function silentName({ backend, place }: Pick<SilentBackend, 'backend' | 'place'>): string {
  return place === undefined ? backend : `${backend} in ${place}`
}

/** What one backend said when it was asked for offers. */
export interface BackendAnswer {
  backend: BackendName
  capabilities: Capabilities
  offers: Offer[]
  /** Parts of the provider that did not answer, with the reason; missing where all did. */
  silentPlaces?: { place: string; reason: string }[]
}

/** Where machines of an order can be. */
export function placesOf({ offers }: Pick<Order, 'offers'>): string[] {
  return [...new Set(offers.map(({ place }) => place))]
}

/** One placement made concrete; recorded whole before it is sent and sent unchanged however often. */
export interface Order {
  attemptId: string
  jobId: string
  attempt: number
  deployment: string
  backend: BackendName
  capacityType: CapacityType
  /** Interchangeable offers of that one capacity type; the backend takes whichever it gets. */
  offers: Offer[]
  /** What the job asks for, for a backend that cuts machines to size (slots, GPUs, disk); missing means the least there is. */
  resources: ResourceRequest
  /** Number of machines in the gang. */
  nodes: 1
  /** Same token, same order, one machine, however often it is sent. At most 64 characters of `[a-z0-9-]`. */
  token: string
  /** Where the runner starts after the launch, a silent one is started again before its machine is given up. */
  runnerStart: Capabilities['runnerStart']
  /** The runner program's digest: a job keeps the runner it was started with, whatever is upgraded meanwhile. */
  runnerSha256: string
  /** The object store as the machine reaches it. */
  storeUrl: string
  /** The dearest that any of the offers can become, on which the hard stop rests. */
  priceMaxMicroUsdPerHour: MicroUsd
  /** As of its offers; missing for steps of one second. */
  billedInStepsOfMs?: number
  /** What moving its data is expected to cost with the dearest of its offers: the machine must not spend it. Missing where that is free. */
  transferMicroUsd?: MicroUsd
  /** The container image that the provider itself runs (`imageRunner: 'provider'`); then `runner.image` is null. */
  image?: string
  /** What `order.json` will say. */
  runner: RunnerOrder
}
