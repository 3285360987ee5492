import type { MicroUsd } from './money'
import type { BackendName, CapacityType } from './offer'

/** Anything of ours that a provider bills. */
export type ResourceKind = 'machine' | 'volume' | 'address' | 'template' | 'spot-request' | 'upload'

/** Small JSON with which a backend finds one resource again after any restart; written on record as soon as it is known. */
export interface ResourceHandle {
  backend: BackendName
  kind: ResourceKind
  /** The provider's own id. */
  id: string
  /** Whatever else the backend needs to find it: region, members, ... */
  data?: Record<string, string>
}

/** What was really bought, which may differ from what was asked (invariant 8). */
export interface RealisedOffer {
  capacityType: CapacityType
  type: string
  place: string
  /** When it was ordered. */
  priceMicroUsdPerHour: MicroUsd
  /** The reservation that it is in. */
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

/** The tags on everything that we buy, under whatever names the provider allows. */
export interface OwnerTags {
  /** The deployment that bought it: nobody else's resources are ever touched. */
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
  /** What it costs a day, as long as it stays as it is: 0 for nothing; missing where nobody knows. */
  costMicroUsdPerDay?: MicroUsd
  /** Of what serves many jobs and belongs to none: whether it is still of use, and why. Then no owner is asked for. */
  use?: { isNeeded: boolean; reason: string }
}
