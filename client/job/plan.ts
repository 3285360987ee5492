import { randomUUID } from 'node:crypto'
import { failureFrom } from '../../core/failure'
import type { JobSpec } from '../../core/job/job'
import type { PlanReport } from '../../core/job/plan'
import type { SavedBefore } from '../../core/job/saving'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import type { Context } from '../context'
import { checkSameDeployment } from '../deployment'
import { CrucibleError, errorFromFailure, toCrucibleError } from '../errors'

/**
 * The places where a job could run now, ranked as for a real placement. Starts and records nothing. `before`: a checkpoint by
 * which to judge whether one can be saved within a notice. `explain`: an offer, as `PreviewInput` has it. Throws `unavailable` when there is no server, or no worker behind it
 * that answers within seconds, and `usage` when the server is another deployment's.
 */
export async function planThroughWorkers(
  context: Context,
  spec: JobSpec,
  { before, explain }: { before?: SavedBefore | undefined; explain?: string | undefined } = {},
): Promise<PlanReport> {
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  try {
    return await client.activity.execute<PlanReport>('previewPlan', {
      id: `plan/${randomUUID()}`,
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [{ spec, owner: context.config.owner, savedBefore: before, explain }],
      scheduleToStartTimeout: '3 seconds',
      // The backends have their own, shorter limits.
      startToCloseTimeout: '40 seconds',
      retry: { maximumAttempts: 1 },
    })
  } catch (error) {
    throw asCrucibleError(error)
  }
}

function asCrucibleError(error: unknown): CrucibleError {
  const failure = failureFrom(error)
  if (failure.class !== 'unclassified') return errorFromFailure(failure, error)
  if (!/timeout|timed out/i.test(failure.message)) return toCrucibleError(error)
  return new CrucibleError('unavailable', 'No worker answers plan requests.', {
    hint: 'Start one: `crucible worker`.',
    cause: error,
  })
}
