/** Reserved capacity: on demand, or bought in advance as a Capacity Block. */
import type { OfferingPlan, ReservationPlan } from '../world/capacity-schema'
import type { MachineType } from '../world/types'
import type { Zone } from '../world/world'
import type { Instance, Tags } from './model'

export type ReservationState =
  | 'payment-pending'
  | 'payment-failed'
  | 'pending'
  | 'failed'
  | 'assessing'
  | 'unsupported'
  | 'scheduled'
  | 'delayed'
  | 'active'
  | 'expired'
  | 'cancelling'
  | 'cancelled'
  | 'unavailable'

/** An instance in one of its places. */
interface Stay {
  instance: Instance
  fromMs: number
  /** When the instance left the reservation, if that was before the instance's end. */
  untilMs?: number
}

export interface BlockExtension {
  offeringId: string
  /** Offering plan of a block. */
  plan: OfferingPlan
  hours: number
  boughtAtMs: number
  startsAtMs: number
  endsAtMs: number
  usd: number
  status: 'payment-pending' | 'payment-succeeded' | 'payment-failed'
}

export interface Commitment {
  durationMs: number
  count: number
}

export interface CapacityReservation {
  id: string
  kind: ReservationPlan['kind']
  /** The id of a Capacity Block. */
  blockId?: string
  clientToken: string
  /** The owning account; a reservation of another account is shared with this one. */
  ownerId: string
  region: string
  zone: Zone
  type: MachineType
  platform: string
  matching: ReservationPlan['matching']
  createdAtMs: number
  startsAtMs: number
  /** End; missing for a reservation that lasts until it is cancelled. */
  endsAtMs?: number
  /** The price paid for a block. */
  upfrontUsd: number
  /** Offering plan of a bought block, which uses its stock. */
  soldFrom?: OfferingPlan
  /** The type of UltraServer of a block that is one. */
  ultraserver?: string
  /** Part of the price that AWS has paid back. */
  refundedUsd: number
  /** Extensions of a block, oldest first. */
  extensions: BlockExtension[]
  /** How long a future-dated reservation must stay active. */
  commitment?: Commitment
  /** The end of the charges for a cancelled future-dated reservation. */
  chargedUntilMs?: number
  /** Whether its owner may take it back: no launch here gets it. */
  isInterruptible: boolean
  tags: Tags
  /** Oldest first; never empty. */
  history: { atMs: number; state: ReservationState }[]
  /** The number of places with its start time; never empty. */
  totals: { atMs: number; count: number }[]
  stays: Stay[]
  /** The events for its owner, in the words of EC2's event bus. */
  notices: { atMs: number; what: string; instance?: string }[]
  /** The instances of a block are being ended: no more launches. */
  isEnding: boolean
}

export function reservationState({ history }: CapacityReservation): ReservationState {
  return history.at(-1)!.state
}

const LIVE: readonly ReservationState[] = [
  'payment-pending',
  'pending',
  'assessing',
  'scheduled',
  'delayed',
  'active',
]

/** Whether it holds capacity now or in future. */
export function isLive(reservation: CapacityReservation): boolean {
  return LIVE.includes(reservationState(reservation))
}

export function placesIn({ totals }: CapacityReservation): number {
  return totals.at(-1)!.count
}

/** Returns when its commitment ends: it counts from the delivery. */
export function commitmentEndMs({
  commitment,
  history,
  startsAtMs,
}: CapacityReservation): number | undefined {
  if (commitment === undefined) return undefined
  const deliveredAtMs = history.find(({ state }) => state === 'active')?.atMs
  return (deliveredAtMs ?? startsAtMs) + commitment.durationMs
}

/** Whether it is committed, or will be before its delivery. */
export function isCommitted(reservation: CapacityReservation, nowMs: number): boolean {
  return nowMs < (commitmentEndMs(reservation) ?? -Infinity)
}

/** Whether its cancellation costs money: before its delivery, unless that is late, and during the commitment. */
export function needsQuote(reservation: CapacityReservation, nowMs: number): boolean {
  const state = reservationState(reservation)
  return (
    isFutureDated(reservation) &&
    (state === 'scheduled' || (state === 'active' && isCommitted(reservation, nowMs)))
  )
}

/** Returns the number of taken places, including those of ended instances that are not yet free. */
export function takenIn({ stays }: CapacityReservation, nowMs: number): number {
  return stays.filter(
    ({ instance: { heldUntilMs = Infinity }, untilMs = Infinity }) => Math.min(heldUntilMs, untilMs) > nowMs,
  ).length
}

/** Returns the number of places free for a launch now. */
export function freeIn(reservation: CapacityReservation, nowMs: number): number {
  const isOpen = reservationState(reservation) === 'active' && !reservation.isEnding
  return isOpen ? Math.max(0, placesIn(reservation) - takenIn(reservation, nowMs)) : 0
}

export function isBlock({ kind }: Pick<CapacityReservation, 'kind'>): boolean {
  return kind === 'capacity-block'
}

/** Whether it was requested for a future date, with a commitment. */
export function isFutureDated({ commitment }: CapacityReservation): boolean {
  return commitment !== undefined
}

/** Moves the instance into the reservation, and out of its previous one. */
export function enter(instance: Instance, reservation: CapacityReservation | undefined, nowMs: number): void {
  for (const stay of instance.place?.stays ?? [])
    if (stay.instance === instance && stay.untilMs === undefined) stay.untilMs = nowMs
  delete instance.place
  if (reservation === undefined) return
  instance.place = reservation
  reservation.stays.push({ instance, fromMs: nowMs })
}
