import { isCoded } from '../core/errors'
import { GRPC } from '../core/grpc'
import type { SealContext, SealedPayload } from './payload-seal'

/** The parts of a Temporal client that show who started a workflow; the SDK's client has the same shape. */
interface HistoryReader {
  options: {
    namespace: string
    loadedDataConverter: {
      payloadCodecs: readonly {
        decode(payloads: never[], context: SealContext): Promise<unknown>
      }[]
    }
  }
  workflowService: {
    getWorkflowExecutionHistory(request: {
      namespace: string
      execution: { workflowId: string; runId?: string }
      maximumPageSize: number
    }): Promise<{
      history?: {
        events?:
          | {
              workflowExecutionStartedEventAttributes?: {
                input?: { payloads?: SealedPayload[] | null } | null
              } | null
            }[]
          | null
      } | null
    }>
  }
}

/**
 * Whether a workflow, in this or else its newest run, was started without the deployment's key: anybody who reaches the server can take an id
 * first. False for an id that the server does not know.
 */
export async function isOfOthers(
  { options, workflowService }: HistoryReader,
  { workflowId, runId = '' }: { workflowId: string; runId?: string },
): Promise<boolean> {
  const { namespace, loadedDataConverter } = options
  try {
    const { history } = await workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    })
    const { input } = history?.events?.[0]?.workflowExecutionStartedEventAttributes ?? {}
    const payloads = input?.payloads ?? []
    for (const codec of loadedDataConverter.payloadCodecs)
      await codec.decode(payloads as never[], { type: 'workflow', namespace, workflowId })
    return payloads.length === 0
  } catch (error) {
    if (isCoded(error, 'seal')) return true
    if ((error as { code?: unknown }).code === GRPC.notFound) return false
    throw error
  }
}
