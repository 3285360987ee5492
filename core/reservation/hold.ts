/** For whom the places of a reservation are kept. */
import { formatUsd } from '../money/money'
import type { Offer } from '../offer'
import { formatInstant } from '../time/time'

/**
 * Jobs that may use idle places of a reservation, in addition to those of its owner that name it: none, the owner's other jobs, or those of
 * all owners.
 */
export const SHARES = ['none', 'owner', 'all'] as const
/** @experimental */
export type Share = (typeof SHARES)[number]
export const SHARE_DEFAULT: Share = 'owner'

/** Completes the sentence "Idle places are for ...". */
export function shareInWords(share: Share): string {
  return {
    none: 'jobs of its owner that name it',
    owner: 'all jobs of its owner',
    all: 'jobs of all owners',
  }[share]
}

/** A future job of the reservation. Until it begins, no other job gets a place that it would still use at that time. @experimental */
export interface AwaitedJob {
  jobId: string
  /** Planned start of the job; the beginning of the reservation counts if that is later. */
  fromMs: number
  /** Latest start of the job, after which its places are free for others. */
  untilMs: number
  /** The run of a schedule that starts the job. If that run is over, the job will never start. */
  schedule: string
  run: string
}

/** `reservations/<id>/holder.json`, put before a purchase: for whom the reservation holds its places. A person may change the share. */
export interface ReservationHolder {
  owner: string
  share: Share
  awaited?: AwaitedJob
}

/** The holder of an offer's places; without `owner` if the record does not name one. @experimental */
export interface ReservationHold extends Partial<ReservationHolder> {
  /** The reservation's id, as in `crucible reservations`. */
  reservation: string
}

/**
 * Facts about a reservation that a job names and that has no offer. `open`: searched for, bought or held. `unknown`: no reservation has
 * that name.
 */
export interface NamedReservation {
  state: 'open' | 'over' | 'unknown'
  /** Last report about it, in a sentence. */
  message?: string
}

/** Whether an offer belongs to the reservation with this name: its id in Crucible, or the provider's. */
export function isOfReservation(
  { reservationId, reservation }: Pick<Offer, 'reservationId' | 'reservation'>,
  name: string,
): boolean {
  if (reservationId === undefined) return false
  return reservationId === name || reservation?.hold?.reservation === name
}

/** `held by res-ranker of alice until 2027-01-08 11:30 UTC` */
export function holdInWords({ reservation }: Pick<Offer, 'reservation'>): string | undefined {
  if (reservation?.hold === undefined) return undefined
  const { hold, endsAtMs } = reservation
  const end = endsAtMs === undefined ? 'until it is released' : `until ${formatInstant(endsAtMs)}`
  const owner = hold.owner === undefined ? '' : ` of ${hold.owner}`
  return `held by ${hold.reservation}${owner} ${end}`
}

/** Cost of the free places while they are idle. */
export function idleInWords({ reservation }: Pick<Offer, 'reservation'>): string | undefined {
  if (reservation === undefined || reservation.free === 0) return undefined
  const { free, idleMicroUsdPerHour } = reservation
  if (idleMicroUsdPerHour === 0) return 'paid for, idle or not'
  return `costs ${formatUsd(free * idleMicroUsdPerHour)}/h while idle`
}
