import type { MicroUsd } from './money/money'
import type { BackendName, CapacityType } from './offer'

/** Anything we bought that a provider bills. */
export type ResourceKind = 'machine' | 'volume' | 'address' | 'template' | 'spot-request' | 'upload'

/** Small JSON with which a backend finds one resource again after a restart; recorded as soon as it is known. */
export interface ResourceHandle {
  backend: BackendName
  kind: ResourceKind
  /** The provider's own id. */
  id: string
  /** Other data that the backend needs to find it: region, members, ... */
  data?: Record<string, string>
}

/** What was really bought, which may differ from the request (invariant 8). */
export interface RealisedOffer {
  capacityType: CapacityType
  type: string
  place: string
  /** When it was ordered. */
  priceMicroUsdPerHour: MicroUsd
  /** Its reservation, if any. */
  reservationId?: string
  /** As of its offer. */
  billedAtLeastMs?: number
  billedInStepsOfMs?: number
}

export interface MachineHandle extends ResourceHandle {
  kind: 'machine'
  attemptId: string
  /** The name of the send that made it (`SendContext.send`), as its tag or hostname shows. */
  send?: string
  realised: RealisedOffer
  /** When it was launched, by the provider's clock if known, otherwise by ours before the call. Billing begins then, unless it is queued. */
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
  /** For people: `running since ...`, `detached volume`. */
  description: string
  /** Region, zone, folder: where a person would look for it. */
  place?: string
  /** Cost per day while it stays as it is: 0 if free; missing if unknown. */
  costMicroUsdPerDay?: MicroUsd
  /** For shared resources that belong to no job: whether it is still needed, and why. Then no owner is asked. */
  use?: { isNeeded: boolean; reason: string }
}
