import type { ReservingBackend } from '../../backends/backend'
import type { Offer } from '../../core/offer'
import type { CapacityRequest, ReservationKind } from '../../core/reservation/reservation'

/** A purchase that the provider really made, as its bill shows it. */
export interface TruePurchase {
  reservation: string
  intent: string | undefined
  deployment: string | undefined
}

/** A provider that sells capacity in two parts (Regions), a backend over it, and ways to look and to meddle behind its back. */
export interface ReservingHarness {
  readonly reserving: ReservingBackend
  readonly regions: readonly [string, string]
  /** The same provider, as another process would have it. */
  reopen(): ReservingBackend
  /** What jobs of a deployment are offered of a reservation. */
  offered(id: string, deployment: string): Promise<Offer | undefined>
  nowMs(): number
  /** A wish that can be bought in the first part, and for `hourly` in both. */
  wish(kind: ReservationKind): CapacityRequest
  /** A start in the future that is sold with a commitment. */
  committedWish(): CapacityRequest
  /** A wish that the provider never sells. */
  neverSold(): CapacityRequest
  /** Other customers buy everything. */
  sellOut(): Promise<void>
  /** Every price is higher from now on. */
  raisePrices(): Promise<void>
  /** Requests for purchases that reached the provider; what only asks for permission does not count. */
  sent(): number
  purchases(): TruePurchase[]
  /** The next purchase is made, and its answer is lost. */
  loseNextAnswer(): void
  /** The next purchase is answered by an error of the provider that does not say whether it was made; it was not. */
  failNextPurchase(): void
  /** The next purchase is refused: the account may not. */
  refuseNextPurchase(): void
  /** A part does not answer from now on. */
  silence(region: string): void
  /** Someone else buys a reservation without tags in this account. */
  buyByHand(): string
  /** The payments of what is bought from now on will fail. */
  failPayments(): void
  /** Lets the payment of a reservation, or of its last extension, be decided. */
  settlePayment(id: string): Promise<void>
  /** Lets time pass at the provider. */
  pass(durationMs: number): Promise<void>
  /** A machine uses a place of a prepaid reservation. */
  use(id: string): Promise<void>
  dispose(): Promise<void>
}
