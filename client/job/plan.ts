import { randomUUID } from 'node:crypto'
import { failureFrom } from '../../core/failure'
import type { JobSpec } from '../../core/job/job'
import type { PlanReport } from '../../core/job/plan'
import type { SavedBefore } from '../../core/job/saving'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import type { Context } from '../context'
import { checkSameDeployment } from '../deployment'
import type * as service from '../../service/plan'
import type { CrucibleError } from '../errors'
import { errorFromFailure, toCrucibleError } from '../errors'
import { untaken } from '../workers'
import { savedBefore } from './saved'

export interface PlanAnswer {
  plan: PlanReport
  /** `here`: in this process, because no worker answered. */
  plannedBy: 'worker' | 'here'
  /** Why no worker planned. */
  whyHere?: string
}

/**
 * The places where a job could run now, by a worker, or by the same code in this process when none answers. `from`: the job to continue;
 * `explain`: an offer, as `PreviewInput` has it.
 */
export async function findPlan(
  context: Context,
  { spec, from }: { spec: JobSpec; from?: string | undefined },
  explain?: string,
): Promise<PlanAnswer> {
  const before = await savedBefore(context, spec, from)
  try {
    return { plan: await planThroughWorkers(context, spec, { before, explain }), plannedBy: 'worker' }
  } catch (error) {
    const known = toCrucibleError(error)
    if (known.kind !== 'unavailable') throw known
    const { planHere } = require('../../service/plan') as typeof service
    const { environment, owner } = context.config
    return {
      plan: await planHere(environment, spec, { owner, before, explain }),
      plannedBy: 'here',
      whyHere: known.message,
    }
  }
}

/**
 * Returns the places where a job could run now, ranked as for a real placement. Starts and records nothing. `before` is a checkpoint for
 * judging whether one can be saved within a notice; `explain` is an offer, as in `PreviewInput`. Throws `unavailable` without a server, or
 * without a worker that answers within seconds, and `usage` for the server of another deployment.
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
    throw await asCrucibleError(context, error)
  }
}

async function asCrucibleError(context: Context, error: unknown): Promise<CrucibleError> {
  const failure = failureFrom(error)
  if (failure.class !== 'unclassified') return errorFromFailure(failure, error)
  if (!/timeout|timed out/i.test(failure.message)) return toCrucibleError(error)
  const absent = 'No worker answers plan requests.'
  return untaken(context, ORCHESTRATOR_QUEUE, { absent, command: 'crucible worker', cause: error })
}
