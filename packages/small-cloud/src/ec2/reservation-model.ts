/** Capacity that is kept for its owner: reserved on demand, or bought ahead as a Capacity Block. */
import type { ReservationPlan } from '../world/schema'
import type { MachineType } from '../world/types'
import type { Zone } from '../world/world'
import type { Instance, Tags } from './model'

export type ReservationState =
  'payment-pending' | 'payment-failed' | 'scheduled' | 'active' | 'expired' | 'cancelled'

/** An instance in one of its places. */
export interface Stay {
  instance: Instance
  fromMs: number
  /** When it ceased to be in the reservation, where that was before its end. */
  untilMs?: number
}

export interface CapacityReservation {
  id: string
  kind: ReservationPlan['kind']
  /** Of a Capacity Block. */
  blockId?: string
  clientToken: string
  /** The account that has it; another one's is shared with this one. */
  ownerId: string
  region: string
  zone: Zone
  type: MachineType
  platform: string
  matching: ReservationPlan['matching']
  createdAtMs: number
  startsAtMs: number
  /** Missing where it lasts until it is cancelled. */
  endsAtMs?: number
  /** What was paid for a block. */
  upfrontUsd: number
  tags: Tags
  /** Oldest first; never empty. */
  history: { atMs: number; state: ReservationState }[]
  /** How many places it has, since when; never empty. */
  totals: { atMs: number; count: number }[]
  stays: Stay[]
  /** What its owner would be told by an event bus, in its words. */
  notices: { atMs: number; what: string }[]
  /** The instances of a block are being ended: nothing can be launched any more. */
  isEnding: boolean
}

export function reservationState({ history }: CapacityReservation): ReservationState {
  return history.at(-1)!.state
}

export function placesIn({ totals }: CapacityReservation): number {
  return totals.at(-1)!.count
}

/** Places that are taken, those of ended instances that have not come back yet included. */
export function takenIn({ stays }: CapacityReservation, nowMs: number): number {
  return stays.filter(
    ({ instance: { heldUntilMs = Infinity }, untilMs = Infinity }) => Math.min(heldUntilMs, untilMs) > nowMs,
  ).length
}

/** Places into which something could be launched now. */
export function freeIn(reservation: CapacityReservation, nowMs: number): number {
  const isOpen = reservationState(reservation) === 'active' && !reservation.isEnding
  return isOpen ? Math.max(0, placesIn(reservation) - takenIn(reservation, nowMs)) : 0
}

export function isBlock({ kind }: Pick<CapacityReservation, 'kind'>): boolean {
  return kind === 'capacity-block'
}

/** The instance takes a place, and leaves the one that it may have had. */
export function enter(instance: Instance, reservation: CapacityReservation | undefined, nowMs: number): void {
  for (const stay of instance.place?.stays ?? [])
    if (stay.instance === instance && stay.untilMs === undefined) stay.untilMs = nowMs
  delete instance.place
  if (reservation === undefined) return
  instance.place = reservation
  reservation.stays.push({ instance, fromMs: nowMs })
}
