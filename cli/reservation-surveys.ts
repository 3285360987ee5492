import { surveyCapacity } from '../client/capacity-survey'
import { toCrucibleError } from '../client/errors'
import type { CapacitySurvey } from '../core/reserving-activities'
import type { Cli } from './cli'

/** Without its worker, what a backend's account owns is left out, with a note. */
export async function surveysOf(
  cli: Cli,
  backend: string,
): Promise<({ backend: string } & CapacitySurvey)[]> {
  try {
    return [{ backend, ...(await surveyCapacity(cli.context(), backend)) }]
  } catch (error) {
    const { message } = toCrucibleError(error)
    cli.out.note(`What the account of ${backend} owns besides is not shown: ${message}`)
    return []
  }
}
