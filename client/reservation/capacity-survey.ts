import { randomUUID } from 'node:crypto'
import { failureFrom } from '../../core/failure'
import { backendQueue } from '../../core/queues'
import type { CapacityRequest } from '../../core/reservation/reservation'
import type { PurchaseRule } from '../../core/reservation/reserving'
import type { CapacitySurvey } from '../../core/reservation/activities'
import type { Context } from '../context'
import { checkSameDeployment } from '../deployment'
import { CrucibleError, errorFromFailure, toCrucibleError } from '../errors'
import { untaken } from '../workers'

/**
 * Returns the capacity that the account of a backend holds, and the capacity for sale. Throws `unavailable` if no worker of the backend
 * answers.
 */
export async function surveyCapacity(
  context: Context,
  backend: string,
  question: { wish?: CapacityRequest; rule?: PurchaseRule } = {},
): Promise<CapacitySurvey> {
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  try {
    return await client.activity.execute<CapacitySurvey>('surveyCapacity', {
      id: `survey/${backend}/${randomUUID()}`,
      taskQueue: backendQueue(backend),
      args: [question],
      scheduleToStartTimeout: '5 seconds',
      startToCloseTimeout: '1 minute',
      retry: { maximumAttempts: 1 },
    })
  } catch (error) {
    const failure = failureFrom(error)
    if (failure.class !== 'unclassified') throw errorFromFailure(failure, error)
    if (!/timeout|timed out/i.test(failure.message)) throw toCrucibleError(error)
    const absent = `No worker of ${backend} answers.`
    throw await untaken(context, backendQueue(backend), {
      absent,
      command: `crucible worker ${backend}`,
      details: { unservedBackend: backend },
      cause: error,
    })
  }
}

/** Whether an error says that no worker of a backend answers, while the server does. */
export function isUnserved(error: unknown): boolean {
  return error instanceof CrucibleError && error.details['unservedBackend'] !== undefined
}
