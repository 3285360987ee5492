import { randomInt } from 'node:crypto'
import type { Client } from '@temporalio/client'
import { makeDeploymentId } from '../core/ids'
import type { GarbageCollectionInput } from '../core/messages'
import { GARBAGE_COLLECTION_SCHEDULE_ID } from '../core/queues'
import { claimedDeployment } from '../service/claimed-deployment'
import { ensureDeployment, readDeployment } from '../storage/deployment'
import { layout } from '../storage/layout'
import { unmarkedStore } from '../storage/mark'
import { SealError } from '../storage/payload-seal'
import type { ObjectStore } from '../storage/store'
import type { Context } from './context'
import { CrucibleError, isTemporals, SAME_DEPLOYMENT_HINT } from './errors'

/**
 * Arguments of the garbage collection schedule: the deployment that Temporal holds, and its backends. Throws a `SealError` if
 * this deployment has not signed it.
 */
export async function scheduledCollection(client: Client): Promise<GarbageCollectionInput | undefined> {
  try {
    const { action } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
    const [input] = (action.args ?? []) as [GarbageCollectionInput?]
    return input
  } catch (error) {
    if (isTemporals(error, 'ScheduleNotFoundError')) return undefined
    throw error
  }
}

/**
 * A job with its documents in one deployment's store and its workflow on another's server would be run by workers that cannot
 * find it. Throws `usage` if Temporal is known to belong to another deployment.
 */
export async function checkSameDeployment({ store, config }: Context, client: Client): Promise<void> {
  const [stored, scheduled] = await Promise.all([
    readDeployment(store),
    scheduledCollection(client).catch(async (error: unknown) => {
      const claimed = error instanceof SealError ? await claimedDeployment(client) : undefined
      if (claimed === undefined) throw error
      return { deployment: claimed, refusal: error }
    }),
  ])
  if (scheduled !== undefined && 'refusal' in scheduled && scheduled.deployment === stored)
    throw scheduled.refusal
  if (scheduled === undefined || scheduled.deployment === stored) return
  if (stored === undefined) throw unmarkedStore(store.url)
  const { address = 'localhost:7233' } = config.temporal.connection
  throw new CrucibleError(
    'usage',
    `The Temporal server at ${address} belongs to another deployment (${scheduled.deployment}) than the store ${store.url} (${stored}).`,
    { hint: SAME_DEPLOYMENT_HINT },
  )
}

/**
 * The deployment of the store, for a command that writes. An unused store gets one, after `checkSameDeployment` has shown that the server
 * knows none either. Throws a `StoreError` if the store has jobs and no mark.
 */
export async function deploymentForWriting(store: ObjectStore): Promise<string> {
  const standing = await readDeployment(store)
  if (standing !== undefined) return standing
  if ((await store.listFolders(layout.jobs())).length > 0) throw unmarkedStore(store.url)
  return ensureDeployment(store, () => makeDeploymentId(randomInt))
}
