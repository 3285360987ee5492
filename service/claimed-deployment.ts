import type { Client } from '@temporalio/client'
import { deploymentOf } from '../core/stamps'
import { GARBAGE_COLLECTION_SCHEDULE_ID } from '../core/queues'

/**
 * The deployment that the schedule of garbage collection names, without a check of its signature: for a client whose key has not signed it.
 * `undefined` if it names none.
 */
export async function claimedDeployment(client: Client): Promise<string | undefined> {
  const { namespace } = client.options
  const { schedule } = await client.workflowService.describeSchedule({
    namespace,
    scheduleId: GARBAGE_COLLECTION_SCHEDULE_ID,
  })
  const [input] = schedule?.action?.startWorkflow?.input?.payloads ?? []
  try {
    return deploymentOf(JSON.parse(Buffer.from(input?.data ?? []).toString('utf8')) as unknown)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
