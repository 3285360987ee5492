/** Reservations whose places are kept for an owner. */
import type { Offer } from '../../core/offer'
import type { Rejection } from '../../core/job/plan'
import { plural } from '../../core/plural'
import { holdInWords, isOfReservation, SHARE_DEFAULT } from '../../core/reservation/hold'
import { formatDuration, formatInstant, MINUTE_MS } from '../../core/time/time'
import type { Forecasted } from '../forecast/forecast'
import type { PlanRequest } from './request'

type Against = Pick<Rejection, 'code' | 'reason'>

/** A provider offers a place again only some minutes after its machine has ended. */
const CLEARED_MS = 10 * MINUTE_MS

/** Why an offer is not for this job: the job names another reservation, or the places are kept for others. */
export function notFor(
  offer: Offer,
  { spec, owner }: Pick<PlanRequest, 'spec' | 'owner'>,
): Against | undefined {
  const name = spec.reservation
  if (name !== undefined && !isOfReservation(offer, name))
    return { code: 'reservation', reason: `the job is for the reservation ${name}` }
  if (name === undefined && offer.reservation?.isForNaming === true)
    return {
      code: 'held',
      reason: `it was not reserved for this deployment's jobs; \`reservation: ${offer.reservationId}\` uses it`,
    }
  if (spec.usesReserved === false && offer.capacityType === 'reserved')
    return { code: 'reservation', reason: 'it is reserved capacity, which `reserved: false` excludes' }
  const hold = offer.reservation?.hold
  if (hold === undefined) return undefined
  const words = holdInWords(offer)!
  const share = hold.share ?? SHARE_DEFAULT
  const isOwners = hold.owner !== undefined && hold.owner === owner
  if (!isOwners && share !== 'all') {
    const whose = hold.owner === undefined ? 'its owner is unknown' : `only for jobs of ${hold.owner}`
    return { code: 'held', reason: `${words}, ${whose}; it was reserved with \`share: ${share}\`` }
  }
  if (name === undefined && share === 'none')
    return {
      code: 'held',
      reason: `${words}, only for jobs that name it; \`reservation: ${hold.reservation}\` does`,
    }
  return undefined
}

/** Why a job that does not name the reservation must leave its free places to others. */
export function notYetFor(
  offer: Offer,
  { spec, nowMs, startsInMs = 0 }: Pick<PlanRequest, 'spec' | 'nowMs' | 'startsInMs'>,
  forecast: () => Forecasted,
): Against | undefined {
  const { reservation } = offer
  if (reservation === undefined || spec.reservation !== undefined) return undefined
  const { free, namedByWaiting = 0, hold } = reservation
  if (namedByWaiting >= free && namedByWaiting > 0) {
    const jobs = namedByWaiting === 1 ? 'a waiting job names' : `${namedByWaiting} waiting jobs name`
    return { code: 'awaited', reason: `${jobs} this reservation, which has ${plural(free, 'free place')}` }
  }
  const awaited = hold?.awaited
  if (awaited === undefined || nowMs >= awaited.untilMs) return undefined
  const endsInMs = startsInMs + forecast().forecast.finish.highMs
  if (nowMs + endsInMs + CLEARED_MS <= awaited.fromMs) return undefined
  const from = formatInstant(awaited.fromMs)
  return {
    code: 'awaited',
    reason:
      nowMs >= awaited.fromMs
        ? `it is kept for ${awaited.jobId}, which is about to begin there`
        : `it is kept for ${awaited.jobId} from ${from}, and this job may need it for ${formatDuration(endsInMs)}`,
  }
}
