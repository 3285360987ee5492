import type { Client } from '@temporalio/client'
import { RETRY_SIGNAL, type UpdateReceipt } from '../core/messages'
import { attemptWorkflowId, jobWorkflowId } from '../core/queues'
import type { Context } from './context'
import { CrucibleError, isTemporals } from './errors'
import { lookAt } from './look'
import { waitingForRetry } from './workflow-state'

/**
 * Cuts short whatever a job and its newest attempt wait for before they try again: the pause before the next attempt, and Temporal's pauses
 * between two tries of an activity. Throws `failed` when the job is over.
 */
export async function retryNow(context: Context, jobId: string): Promise<UpdateReceipt> {
  const { attemptsTotal } = await lookAt(context, jobId)
  const client = await context.temporal()
  const job = await tryAgain(client, jobWorkflowId(jobId))
  if (job === undefined) throw new CrucibleError('failed', `${jobId} is over: there is nothing to retry.`)
  const attempt = attemptsTotal === 0 ? [] : await tryAgain(client, attemptWorkflowId(jobId, attemptsTotal))
  const retried = [...job, ...(attempt ?? [])]
  return {
    message: retried.length === 0 ? 'Asked to go on at once.' : `Trying again now: ${retried.join(', ')}.`,
  }
}

/** The activities that are tried again at once; `undefined` where the workflow is closed. */
async function tryAgain(client: Client, workflowId: string): Promise<string[] | undefined> {
  const handle = client.workflow.getHandle(workflowId)
  try {
    await handle.signal(RETRY_SIGNAL)
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return undefined
    throw error
  }
  const pending = waitingForRetry(await handle.describe())
  for (const { activityId } of pending) {
    await client.workflowService.resetActivity({
      namespace: client.options.namespace,
      execution: { workflowId },
      id: activityId,
      identity: client.options.identity,
    })
  }
  return pending.map(({ name }) => name)
}
