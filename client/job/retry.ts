import type { Client } from '@temporalio/client'
import { RETRY_SIGNAL, type UpdateReceipt } from '../../core/messages'
import { attemptWorkflowId, jobWorkflowId } from '../../core/queues'
import type { Context } from '../context'
import { CrucibleError, isTemporals } from '../errors'
import { readView } from './read-view'
import { waitingForRetry } from './workflow-state'

/**
 * Skips the current pauses of a job and its newest attempt: the pause before the next attempt, and Temporal's pauses between two
 * tries of an activity. Throws `failed` if the job is over.
 */
export async function retryNow(context: Context, jobId: string): Promise<UpdateReceipt> {
  const { attemptsTotal, state } = await readView(context, jobId)
  const client = await context.temporal()
  const job = await tryAgain(client, jobWorkflowId(jobId))
  if (job === undefined) throw new CrucibleError('failed', `${jobId} is over: nothing to retry.`)
  const attempt = attemptsTotal === 0 ? [] : await tryAgain(client, attemptWorkflowId(jobId, attemptsTotal))
  const retried = [...job, ...(attempt ?? [])]
  if (retried.length > 0) return { message: `Retrying now: ${retried.join(', ')}.` }
  const isAtWork = state === 'running'
  return {
    message: isAtWork ? 'Nothing waits for a retry: the job is running.' : 'Asked to continue immediately.',
  }
}

/** The activities that are retried immediately; `undefined` if the workflow is closed. */
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
