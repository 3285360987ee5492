import type { Client } from '@temporalio/client'
import { isCoded } from '../core/errors'
import { CrucibleError } from './errors'

/**
 * Throws `failed` if the workflow that already has this id was not started with the deployment's key: anybody who reaches the server can take
 * an id first. Such a workflow does nothing, and must not pass for the one that was to start.
 */
export async function refuseTaken(client: Client, workflowId: string): Promise<void> {
  const { namespace, loadedDataConverter } = client.options
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace,
    execution: { workflowId },
    maximumPageSize: 1,
  })
  const { input } = history?.events?.[0]?.workflowExecutionStartedEventAttributes ?? {}
  const payloads = input?.payloads ?? []
  try {
    for (const codec of loadedDataConverter.payloadCodecs)
      await codec.decode(payloads, { type: 'workflow', namespace, workflowId })
    if (payloads.length > 0) return
  } catch (error) {
    if (!isCoded(error, 'seal')) throw error
  }
  throw new CrucibleError(
    'failed',
    `The id is taken: the workflow ${workflowId} was not started with this deployment's key. Nothing was started.`,
    {
      hint: `Choose another id, or delete it with \`temporal workflow delete -w ${workflowId}\` and try again.`,
    },
  )
}
