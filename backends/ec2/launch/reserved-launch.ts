import type { Failure } from '../../../core/failure'
import type { Order } from '../../../core/job/plan'
import { formatInstant, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { Reservation } from '../sdk/api'
import type { Host } from '../host'
import { isLive } from '../market/reservations'
import { PENDING_ACTIVATION } from '../meanings'

/** The capacity of a block may appear a little after its start: until then a refusal is retried ("transient failures", EC2 user guide). */
const SETTLES_MS = 10 * MINUTE_MS
const AGAIN_MS = 15 * SECOND_MS
/** Codes that are the same for a full reservation, one that has not begun, and one that is over. */
const AMBIGUOUS = [
  'ReservationCapacityExceeded',
  'InvalidCapacityReservationState',
  PENDING_ACTIVATION,
] as const

/**
 * Returns the real cause of a failed launch into a reservation. EC2 answers the same for one that is full, has not begun, or has ended; the
 * reservation itself shows which. Other failures, and those of other orders, pass unchanged.
 */
export async function reservedFailure(
  host: Host,
  { capacityType, offers: [offer] }: Order,
  { failure, signal }: { failure: Failure; signal: AbortSignal },
): Promise<Failure> {
  const id = offer?.reservationId
  const isAmbiguous = AMBIGUOUS.some((code) => code === failure.code)
  if (capacityType !== 'reserved' || id === undefined || !isAmbiguous) return failure
  let reservation: Reservation | undefined
  try {
    reservation = await host.reservations.anew(id, signal)
  } catch {
    // The cause is unknown, but no place was available either way.
    return failure
  }
  const isEarly = failure.code === PENDING_ACTIVATION
  return { ...failure, ...verdictOn(reservation, { id, isEarly, nowMs: host.deps.clock() }) }
}

function verdictOn(
  reservation: Reservation | undefined,
  { id, isEarly, nowMs }: { id: string; isEarly: boolean; nowMs: number },
): Pick<Failure, 'class' | 'message'> & Partial<Failure> {
  if (reservation === undefined || !isLive(reservation)) {
    const state = reservation === undefined ? 'gone' : reservation.state
    return { class: 'expired', message: `The reservation ${id} is ${state}.` }
  }
  const { state, free, total, startsAtMs = 0 } = reservation
  if (state !== 'active') {
    const when = startsAtMs === 0 ? '' : ` It begins ${formatInstant(startsAtMs)}.`
    return { class: 'capacity', message: `The reservation ${id} is ${state}: it cannot be used yet.${when}` }
  }
  // The reservation's state is ahead of the launches: no other machine can have a place yet.
  if (isEarly)
    return {
      class: 'transient',
      message: `The reservation ${id} has just begun, and launches do not recognise it yet.`,
      retryAfterMs: AGAIN_MS,
    }
  if (free <= 0)
    return { class: 'capacity', message: `All ${total} places of the reservation ${id} are in use.` }
  const isYoung = reservation.isBlock && nowMs - startsAtMs < SETTLES_MS
  const words = `The reservation ${id} gave none of its ${free} free places`
  return isYoung
    ? { class: 'transient', message: `${words}; it has just begun.`, retryAfterMs: AGAIN_MS }
    : { class: 'capacity', message: `${words}.` }
}
