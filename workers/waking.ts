import type { Client } from '@temporalio/client'
import type { Wake } from '../activities/waking'
import { jobWorkflowId } from '../core/queues'

/** The activity in which a job waits (`core/activities.ts`). */
const WAITING = 'planWhenAvailable'
/** `temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED` */
const SCHEDULED = 1

/**
 * Ends the pause between two tries of the activity in which a job waits. Temporal does that outside the workflow: no event in its history,
 * no workflow task, and no input that a workflow would have to trust. On a server without this call, the job waits until its pause ends. So
 * does a job that asks at this moment, because Temporal drops the answer of a try that is reset while it runs.
 */
export function wakeThrough(client: Client): Wake {
  const { namespace, identity } = client.options
  return async (jobId) => {
    const execution = { workflowId: jobWorkflowId(jobId) }
    const { pendingActivities } = await client.workflowService.describeWorkflowExecution({
      namespace,
      execution,
    })
    // An activity without a time for its next try has already been woken. Each reset takes about a second, and another reset within that
    // second starts over.
    const pausing = pendingActivities?.find(
      ({ activityType, state, nextAttemptScheduleTime }) =>
        activityType?.name === WAITING && (state as number) === SCHEDULED && nextAttemptScheduleTime != null,
    )
    if (pausing === undefined) return
    await client.workflowService.resetActivity({ namespace, execution, identity, id: pausing.activityId! })
  }
}
