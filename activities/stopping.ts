import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { OrchestratorActivities } from '../core/activities'
import { DRAIN_SIGNAL, type DrainRequest } from '../core/messages'
import { attemptWorkflowId } from '../core/queues'

/** A job signals its attempt through the client: that costs its history one event, while a workflow signal costs five. */
export function createStoppingActivities({
  client,
}: {
  client: Client
}): Pick<OrchestratorActivities, 'stopAttempt'> {
  return {
    stopAttempt: async ({ jobId, attempt, request }) => {
      const handle = client.workflow.getHandle(attemptWorkflowId(jobId, attempt))
      await handle.signal<[DrainRequest]>(DRAIN_SIGNAL, request).catch((error: unknown) => {
        // Its result, or its loss, is on the way to the job.
        if (!(error instanceof WorkflowNotFoundError)) throw error
      })
    },
  }
}
