import { ownedFault } from '../../core/figures'
import {
  isHeld,
  isTaggedFor,
  type CapacityQuote,
  type CapacityRequest,
  type OwnedReservation,
} from '../../core/reservation/reservation'
import { CLOCK_SLACK_MS, MINUTE_MS } from '../../core/time/time'
import { unlike } from './fit'

export interface AdoptionFacts {
  wish: CapacityRequest
  reservationId: string
  deployment: string
  owned: readonly OwnedReservation[]
  /** Requests that owned reservations already serve. */
  claims: ReadonlyMap<string, string>
  /** Other requests that may have bought these reservations: they were sent, and their result does not show yet. */
  undecided: ReadonlyMap<string, string>
  nowMs: number
}

/** Owned capacity for a request. `young`: it fits, but the tags of its purchase may not show yet. */
export type Adoption =
  | { kind: 'adopt'; reservation: OwnedReservation }
  | { kind: 'young'; reservation: OwnedReservation; inMs: number }

/** Lists may show a reservation this long without the tags of its purchase. */
const TAGS_LATE_MS = 15 * MINUTE_MS + CLOCK_SLACK_MS

/**
 * Returns owned capacity that fits the request: first the capacity bought for this request, whatever else is true; otherwise idle prepaid
 * capacity that no other request or deployment claims.
 */
export function adoptable(facts: AdoptionFacts): Adoption | undefined {
  const { wish, reservationId, deployment, owned, nowMs } = facts
  if (wish.extends !== undefined) return undefined
  const own = owned.find(
    (one) =>
      isHeld(one.phase) &&
      isTaggedFor(one, { intent: reservationId, deployment, kind: wish.kind }) &&
      wish.types.includes(one.type),
  )
  if (own !== undefined) return { kind: 'adopt', reservation: own }
  const free = owned
    .filter((one) => isFree(one, facts))
    .map((reservation) => ({ reservation, inMs: youngForMs(reservation, nowMs) }))
    .sort((a, b) => a.inMs - b.inMs || (a.reservation.startsAtMs ?? 0) - (b.reservation.startsAtMs ?? 0))
  const [best] = free
  if (best === undefined) return undefined
  return best.inMs > 0 ? { kind: 'young', ...best } : { kind: 'adopt', reservation: best.reservation }
}

function isFree(
  one: OwnedReservation,
  { wish, reservationId, deployment, claims, undecided, nowMs }: AdoptionFacts,
): boolean {
  return (
    one.kind === 'prepaid' &&
    wish.kind === 'prepaid' &&
    ['scheduled', 'active'].includes(one.phase) &&
    !one.isShared &&
    one.unfit === undefined &&
    ownedFault(one) === undefined &&
    one.intent === undefined &&
    (one.deployment ?? deployment) === deployment &&
    [undefined, reservationId].includes(claims.get(one.id)) &&
    [undefined, reservationId].includes(undecided.get(one.id)) &&
    (one.phase !== 'active' || one.free === one.total) &&
    unlike(wish, asQuote(one, wish.count, nowMs)) === undefined
  )
}

/** Returns how long its tags may still be missing. */
function youngForMs({ createdAtMs = -Infinity, deployment }: OwnedReservation, nowMs: number): number {
  return deployment === undefined ? Math.max(0, createdAtMs + TAGS_LATE_MS - nowMs) : 0
}

/** A larger one serves, too. */
function asQuote(owned: OwnedReservation, wanted: number, nowMs: number): CapacityQuote {
  const { id, kind, type, total, region, zone, startsAtMs = nowMs, endsAtMs, usableUntilMs } = owned
  return {
    id,
    kind,
    type,
    count: Math.min(total, wanted),
    region,
    zone,
    upfrontMicro: 0,
    perHourMicro: 0,
    currency: 'USD',
    readAtMs: nowMs,
    // A reservation that has begun serves a request for as soon as possible.
    startsAtMs: Math.max(startsAtMs, nowMs),
    endsAtMs,
    usableUntilMs,
  }
}
