/** For whom the places of a reservation are kept. */
import { formatUsd } from '../money/money'
import type { Offer } from '../offer'
import { formatInstant } from '../time/time'

/**
 * The jobs that may use idle places of what a wish holds, besides those of its owner that name it: none, the owner's other jobs, or those of
 * all owners.
 */
export const SHARES = ['none', 'owner', 'all'] as const
/** @experimental */
export type Share = (typeof SHARES)[number]
export const SHARE_DEFAULT: Share = 'owner'

/** For whom idle places are: completes "Idle places are for ...". */
export function shareInWords(share: Share): string {
  return {
    none: 'jobs of its owner that name it',
    owner: 'all jobs of its owner',
    all: 'jobs of all owners',
  }[share]
}

/** A job that will begin in the reservation: before that, no other job gets a place that it would still use then. @experimental */
export interface AwaitedJob {
  jobId: string
  /** Its start is planned for this instant, or for the beginning of the reservation if that is later. */
  fromMs: number
  /** It does not start later than this; then its places are free for others. */
  untilMs: number
  /** The run of a schedule that starts it: once that is over, it never comes. */
  schedule: string
  run: string
}

/** `reservations/<id>/holder.json`, put before anything is bought: whom the wish holds its places for. A person may change the share. */
export interface ReservationHolder {
  owner: string
  share: Share
  awaited?: AwaitedJob
}

/** The wish that holds the places of an offer. Without `owner`, that is not on record. @experimental */
export interface ReservationHold extends Partial<ReservationHolder> {
  /** The reservation's id, as in `crucible reservations`. */
  reservation: string
}

/**
 * What is known of a reservation that a job names, without an offer of it. `open`: it is searched for, bought or held. `unknown`: no wish has
 * that name.
 */
export interface NamedReservation {
  state: 'open' | 'over' | 'unknown'
  /** Its last news, in a sentence. */
  message?: string
}

/** Whether an offer is of the reservation with this name: its id in Crucible, or the provider's. */
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

/** What the free places cost while nothing runs in them. */
export function idleInWords({ reservation }: Pick<Offer, 'reservation'>): string | undefined {
  if (reservation === undefined || reservation.free === 0) return undefined
  const { free, idleMicroUsdPerHour } = reservation
  if (idleMicroUsdPerHour === 0) return 'paid for, idle or not'
  return `costs ${formatUsd(free * idleMicroUsdPerHour)}/h while idle`
}
