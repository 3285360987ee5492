import { isCoded } from '../../core/errors'
import { jobWorkflowId } from '../../core/queues'
import type { Context } from '../context'
import { toCrucibleError } from '../errors'
import { findOpenJob } from './find-open'
import type { JobView } from './job-view'
import { uiUrlOf } from './read-view'
import { joinView } from './view'
import { statusInTemporal } from './workflow-state'

/**
 * The state of a job from Temporal alone, after the store failed with `error`, which is thrown again if it is another error, or if Temporal
 * does not know the job.
 */
export async function viewWithoutStore(context: Context, meant: string, error: unknown): Promise<JobView> {
  const { cause } = error as { cause?: unknown }
  if (!isCoded(error, 'store') && !isCoded(cause, 'store')) throw error
  const again = (): never => {
    throw error
  }
  const id = await findOpenJob(context, meant).catch(again)
  const status = (await statusInTemporal(context, id).catch(again)) ?? again()
  const view = joinView({
    status,
    spec: undefined,
    newest: undefined,
    endedAtMs: undefined,
    isLive: true,
    isCostUnknown: true,
    checkpoints: [],
    recoveries: [],
    uiUrl: uiUrlOf(context.config, jobWorkflowId(id), status.runId),
    nowMs: context.now(),
  })
  const { message } = toCrucibleError(error)
  const incomplete = `Temporal alone answers: cost, progress and checkpoints are unknown. ${message}`
  const cost = { ...view.cost, estimatedRemainingMicroUsd: null, remainingBasis: null }
  return { ...view, cost, incomplete }
}
