import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { OwnerLookup } from '../activities/garbage/garbage'
import { attemptWorkflowId, jobWorkflowId, reservationWorkflowId } from '../core/queues'
import { isOpenStatus } from '../core/workflow-status'

/** Looks up owners by workflow id: a list of open workflows may lag behind, a description never does. */
export function ownersThrough(client: Client): OwnerLookup {
  return async (owner) => {
    const workflowId = workflowIdOf(owner)
    try {
      const { status } = await client.workflow.getHandle(workflowId).describe()
      return isOpenStatus(status.name) ? 'open' : 'closed'
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'absent'
      throw error
    }
  }
}

function workflowIdOf({ jobId, attempt, isReservation }: Parameters<OwnerLookup>[0]): string {
  if (isReservation === true) return reservationWorkflowId(jobId)
  return attempt === undefined ? jobWorkflowId(jobId) : attemptWorkflowId(jobId, attempt)
}
