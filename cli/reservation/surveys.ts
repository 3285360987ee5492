import { isUnserved, surveyCapacity } from '../../client/reservation/capacity-survey'
import { toCrucibleError } from '../../client/errors'
import type { KnownReservation } from '../../client/reservation/views'
import type { CapacitySurvey } from '../../core/reservation/activities'
import type { Cli } from '../cli'

/** Capacity that the account of a backend holds. */
export interface Survey extends Pick<CapacitySurvey, 'owned' | 'unseen'> {
  backend: string
}

/**
 * Surveys backends. Capacity that nothing reports is unknown: `unseen` says so for a backend without a worker, as a deployment may not
 * have it, and the exit code too for a server or a store that does not answer.
 */
export async function surveysOf(cli: Cli, backend: string): Promise<Survey[]> {
  try {
    return [{ backend, ...(await surveyCapacity(cli.context(), backend)) }]
  } catch (error) {
    const { message } = toCrucibleError(error)
    if (isUnserved(error))
      return [
        { backend, owned: [], unseen: [`reservations of ${backend} that were bought elsewhere: ${message}`] },
      ]
    cli.context().gaps.push(`Other reservations of ${backend} are not shown: ${message}`)
    return []
  }
}

/** Tells a person which reservations an answer lacks. */
export function tellUnseen({ out }: Cli, surveys: readonly Pick<Survey, 'unseen'>[]): void {
  for (const text of surveys.flatMap(({ unseen }) => unseen))
    out.note(out.paintNote.yellow(`Not seen: ${text}`))
}

/** Reservations with the places that are free now: their workflows look every ten minutes at most. */
export function withFreshPlaces(
  statuses: readonly KnownReservation[],
  surveys: readonly Pick<CapacitySurvey, 'owned'>[],
): KnownReservation[] {
  const seen = new Map(surveys.flatMap(({ owned }) => owned).map((one) => [one.id, one]))
  return statuses.map((status) => {
    const { reservation } = status
    const now = reservation && seen.get(reservation.id)
    if (now === undefined || reservation?.phase !== 'active' || now.phase !== 'active') return status
    return { ...status, reservation: { ...reservation, free: now.free, total: now.total } }
  })
}
