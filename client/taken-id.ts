import type { Client } from '@temporalio/client'
import { isOfOthers } from '../storage/workflow-origin'
import { CrucibleError } from './errors'

/**
 * Throws `failed` if the workflow that already has this id was not started with the deployment's key: such a workflow does nothing, and must not
 * pass for the one that was to start. `forget` first removes what was written for that one.
 */
export async function refuseTaken(
  client: Client,
  workflowId: string,
  forget: () => Promise<void>,
): Promise<void> {
  if (!(await isOfOthers(client, { workflowId }))) return
  await forget()
  throw new CrucibleError(
    'failed',
    `The id is taken: the workflow ${workflowId} was not started with this deployment's key. Nothing was started.`,
    {
      hint: `Choose another id, or delete it with \`temporal workflow delete -w ${workflowId}\` and try again.`,
    },
  )
}
