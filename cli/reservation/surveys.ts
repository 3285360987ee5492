import { surveyCapacity } from '../../client/reservation/capacity-survey'
import { toCrucibleError } from '../../client/errors'
import type { KnownReservation } from '../../client/reservation/views'
import type { CapacitySurvey } from '../../core/reservation/activities'
import type { Cli } from '../cli'

/** Surveys backends. Without a backend's worker, its account's capacity is omitted, with a note. */
export async function surveysOf(
  cli: Cli,
  backend: string,
): Promise<({ backend: string } & CapacitySurvey)[]> {
  try {
    return [{ backend, ...(await surveyCapacity(cli.context(), backend)) }]
  } catch (error) {
    const { message } = toCrucibleError(error)
    cli.out.note(`Other reservations of ${backend} are not shown: ${message}`)
    return []
  }
}

/** Reservations with the places that are free now: their workflows look every ten minutes at most. */
export function withFreshPlaces(
  statuses: readonly KnownReservation[],
  surveys: readonly CapacitySurvey[],
): KnownReservation[] {
  const seen = new Map(surveys.flatMap(({ owned }) => owned).map((one) => [one.id, one]))
  return statuses.map((status) => {
    const { reservation } = status
    const now = reservation && seen.get(reservation.id)
    if (now === undefined || reservation?.phase !== 'active' || now.phase !== 'active') return status
    return { ...status, reservation: { ...reservation, free: now.free, total: now.total } }
  })
}
