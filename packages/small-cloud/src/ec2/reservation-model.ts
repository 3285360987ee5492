/** Reserved capacity: on demand, or bought in advance as a Capacity Block. */
import type { OfferingPlan, ReservationPlan } from '../world/capacity-schema'
import type { MachineType } from '../world/types'
import type { Zone } from '../world/world'
import type { Instance, Tags } from './model'

export type ReservationState =
  'payment-pending' | 'payment-failed' | 'scheduled' | 'active' | 'expired' | 'cancelled'

/** An instance in one of its places. */
export interface Stay {
  instance: Instance
  fromMs: number
  /** When the instance left the reservation, if that was before the instance's end. */
  untilMs?: number
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
  /** Missing for a reservation that lasts until it is cancelled. */
  endsAtMs?: number
  /** The price paid for a block. */
  upfrontUsd: number
  /** What a bought block was sold from; it holds stock of it. */
  soldFrom?: OfferingPlan
  tags: Tags
  /** Oldest first; never empty. */
  history: { atMs: number; state: ReservationState }[]
  /** The number of places with its start time; never empty. */
  totals: { atMs: number; count: number }[]
  stays: Stay[]
  /** The events for its owner, in the words of EC2's event bus. */
  notices: { atMs: number; what: string }[]
  /** The instances of a block are being ended: no more launches. */
  isEnding: boolean
}

export function reservationState({ history }: CapacityReservation): ReservationState {
  return history.at(-1)!.state
}

/** Whether it holds capacity now or in future. */
export function isLive(reservation: CapacityReservation): boolean {
  return ['payment-pending', 'scheduled', 'active'].includes(reservationState(reservation))
}

export function placesIn({ totals }: CapacityReservation): number {
  return totals.at(-1)!.count
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

/** Moves the instance into the reservation, and out of its previous one. */
export function enter(instance: Instance, reservation: CapacityReservation | undefined, nowMs: number): void {
  for (const stay of instance.place?.stays ?? [])
    if (stay.instance === instance && stay.untilMs === undefined) stay.untilMs = nowMs
  delete instance.place
  if (reservation === undefined) return
  instance.place = reservation
  reservation.stays.push({ instance, fromMs: nowMs })
}
