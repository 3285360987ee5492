import { ActivityNotFoundError, type Client } from '@temporalio/client'
import { handedOver } from '../activities/heartbeat'
import { SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../core/queues'
import { eachOf } from '../storage/parallel'
import { isDeadHere } from '../service/worker-identity'
import type { Role } from './run'

/** The activity that follows one machine (`core/activities.ts`). */
const WATCHING = 'watch'
/** `temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED` */
const STARTED = 2
const PAGE_SIZE = 1_000

interface Lost {
  workflowId: string
  runId: string
  activityId: string
}

/**
 * Ends the watches of a backend's machines whose worker was a process of this host that has ended, so that Temporal starts them again now and
 * not when their heartbeat timeouts have passed. Returns their number. One that has ended meanwhile is skipped. Other activities wait: a
 * request that the dead process has sent may still be on its way.
 */
export async function takeOver(client: Client, backend: Role): Promise<number> {
  const query = `WorkflowType = '${WORKFLOW_TYPES.attempt}' AND ExecutionStatus = 'Running' AND ${SEARCH_ATTRIBUTES.backend} STARTS_WITH '${backend}:'`
  const attempts: { workflowId: string; runId: string }[] = []
  for await (const { workflowId, runId } of client.workflow.list({ query, pageSize: PAGE_SIZE }))
    attempts.push({ workflowId, runId })
  const lost = (await eachOf(attempts, async (execution) => lostOf(client, execution))).flat()
  const ended = await eachOf(lost, async (one) => endTry(client, one))
  return ended.filter(Boolean).length
}

async function lostOf(client: Client, execution: { workflowId: string; runId: string }): Promise<Lost[]> {
  const { namespace } = client.options
  const { pendingActivities } = await client.workflowService.describeWorkflowExecution({
    namespace,
    execution,
  })
  return (pendingActivities ?? [])
    .filter(
      ({ activityType, state, lastWorkerIdentity }) =>
        activityType?.name === WATCHING &&
        (state as number) === STARTED &&
        isDeadHere(lastWorkerIdentity ?? ''),
    )
    .map(({ activityId }) => ({ ...execution, activityId: activityId! }))
}

async function endTry(client: Client, lost: Lost): Promise<boolean> {
  try {
    await client.activity.fail(lost, handedOver())
    return true
  } catch (error) {
    if (error instanceof ActivityNotFoundError) return false
    throw error
  }
}
