import type { MicroUsd } from './money/money'
import type { BackendName, CapacityType } from './offer'

/** Anything we bought that a provider bills. */
type ResourceKind = 'machine' | 'volume' | 'address' | 'template' | 'spot-request' | 'upload'

/** Small JSON with which a backend finds one resource again after a restart. It is recorded as soon as it is known. */
export interface ResourceHandle {
  backend: BackendName
  kind: ResourceKind
  /** The provider's id. */
  id: string
  /** Other data that the backend needs to find the resource: region, members, ... */
  data?: Record<string, string>
}

/** The offer that was really bought, which may differ from the request (invariant 8). */
export interface RealisedOffer {
  capacityType: CapacityType
  type: string
  place: string
  /** Price at the time of the order. */
  priceMicroUsdPerHour: MicroUsd
  /** Id of its reservation, if any. */
  reservationId?: string
  /** Minimum billed time, as in its offer. */
  billedAtLeastMs?: number
  billedInStepsOfMs?: number
}

export interface MachineHandle extends ResourceHandle {
  kind: 'machine'
  attemptId: string
  /** The name of the send that made it (`SendContext.send`), as its tag or hostname shows. */
  send?: string
  realised: RealisedOffer
  /** Launch time by the provider's clock if known, otherwise by ours before the call. Billing begins then, unless the machine is queued. */
  launchedAtMs: number
}

export function isMachine(handle: ResourceHandle): handle is MachineHandle {
  return handle.kind === 'machine' && 'realised' in handle
}

/** The tags on everything that we buy, under the names that the provider allows. */
export interface OwnerTags {
  /** The deployment that bought it: other deployments' resources are never touched. */
  deployment: string
  jobId: string
  attemptId: string
}

/** A resource found at a provider. */
export interface OwnedResource {
  handle: ResourceHandle
  owner: OwnerTags
  createdAtMs: number
  /** Description for people: `running since ...`, `detached volume`. */
  description: string
  /** Region, zone, folder: where a person would look for it. */
  place?: string
  /** Cost per day in the present state: 0 if free, missing if unknown. */
  costMicroUsdPerDay?: MicroUsd
  /** Whether a shared resource that belongs to no job is still needed, and why. Such a resource has no owner to ask. */
  use?: { isNeeded: boolean; reason: string }
}
