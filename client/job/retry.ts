import type { Client } from '@temporalio/client'
import { RETRY_SIGNAL, type UpdateReceipt } from '../../core/messages'
import type { JobState } from '../../core/job/job'
import { jobWorkflowId } from '../../core/queues'
import { eachOf } from '../../storage/parallel'
import { stateInTemporal } from '../attributes'
import type { Context } from '../context'
import { isTemporals } from '../errors'
import { whyUnknown } from '../updates'
import { waitingForRetry } from './workflow-state'

/**
 * Skips the current pauses of a job and its attempt: the pause before the next attempt, and Temporal's pauses between two tries of an
 * activity. Asks Temporal alone, since a store that is away is what most retries wait for. Throws `failed` if the job is over.
 */
export async function retryNow(context: Context, jobId: string): Promise<UpdateReceipt> {
  const client = await context.temporal()
  const job = await tryAgain(client, jobWorkflowId(jobId))
  if (job === undefined) throw await whyUnknown(context, jobId)
  const attempts = await eachOf(job.childIds, (workflowId) => tryAgain(client, workflowId))
  const retried = [job, ...attempts].flatMap((one) => one?.names ?? [])
  if (retried.length > 0) return { message: `Retrying now: ${retried.join(', ')}.` }
  const isAtWork = job.state === 'running'
  return {
    message: isAtWork ? 'Nothing waits for a retry: the job is running.' : 'Asked to continue immediately.',
  }
}

/** The names of the activities that are retried immediately, with facts of the workflow; `undefined` if it is closed. */
async function tryAgain(
  client: Client,
  workflowId: string,
): Promise<{ names: string[]; childIds: string[]; state: JobState | undefined } | undefined> {
  const handle = client.workflow.getHandle(workflowId)
  try {
    await handle.signal(RETRY_SIGNAL)
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return undefined
    throw error
  }
  const described = await handle.describe()
  const pending = waitingForRetry(described)
  for (const { activityId } of pending) {
    await client.workflowService.resetActivity({
      namespace: client.options.namespace,
      execution: { workflowId },
      id: activityId,
      identity: client.options.identity,
    })
  }
  const childIds = (described.raw.pendingChildren ?? []).flatMap(({ workflowId: id }) => id ?? [])
  return { names: pending.map(({ name }) => name), childIds, state: stateInTemporal(described)?.state }
}
