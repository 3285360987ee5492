import type { Client } from '@temporalio/client'
import { GRPC } from '../core/grpc'
import { GARBAGE_COLLECTION_SCHEDULE_ID } from '../core/queues'
import { deploymentOf } from '../core/stamps'
import type { Context } from './context'
import { CrucibleError, grpcCodeOf, SAME_DEPLOYMENT_HINT } from './errors'

/**
 * Throws `usage` if the server says that it belongs to another deployment than `own`, for a caller that found none of its jobs there. The
 * schedule of garbage collection names the deployment; it is read without the part of the client for schedules, which takes longer to load
 * than a list may.
 */
export async function refuseForeign(
  { store, config }: Context,
  { client, own }: { client: Client; own: string },
): Promise<void> {
  const theirs = await deploymentOfServer(client, config)
  if (theirs === undefined || theirs === own) return
  const { address = 'localhost:7233' } = config.temporal.connection
  throw new CrucibleError(
    'usage',
    `The Temporal server at ${address} belongs to another deployment: the store ${store.url} has none of its jobs.`,
    { hint: SAME_DEPLOYMENT_HINT },
  )
}

/** The deployment to which a server says that it belongs; `undefined` if no worker has ever connected to it. */
async function deploymentOfServer(
  client: Client,
  { temporal: { namespace } }: Context['config'],
): Promise<string | undefined> {
  try {
    const request = { namespace, scheduleId: GARBAGE_COLLECTION_SCHEDULE_ID }
    const { schedule } = await client.workflowService.describeSchedule(request)
    const [payload] = schedule?.action?.startWorkflow?.input?.payloads ?? []
    return deploymentOf(JSON.parse(Buffer.from(payload?.data ?? []).toString('utf8')))
  } catch (error) {
    if (error instanceof SyntaxError || grpcCodeOf(error) === GRPC.notFound) return undefined
    throw error
  }
}
