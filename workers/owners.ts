import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { OwnerLookup } from '../activities/garbage/garbage'
import { attemptWorkflowId, jobWorkflowId } from '../core/queues'

/** Looks up owners by workflow id: a list of open workflows may lag behind, a description never does. */
export function ownersThrough(client: Client): OwnerLookup {
  return async ({ jobId, attempt }) => {
    const workflowId = attempt === undefined ? jobWorkflowId(jobId) : attemptWorkflowId(jobId, attempt)
    try {
      const { status } = await client.workflow.getHandle(workflowId).describe()
      return status.name === 'RUNNING' || status.name === 'PAUSED' ? 'open' : 'closed'
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'absent'
      throw error
    }
  }
}
