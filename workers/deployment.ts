import { randomInt } from 'node:crypto'
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
} from '@temporalio/client'
import type { Logger } from 'pino'
import { makeDeploymentId } from '../core/ids'
import type { GarbageCollectionInput } from '../core/messages'
import { stamped } from '../core/stamps'
import type { BackendName } from '../core/offer'
import {
  GARBAGE_COLLECTION_SCHEDULE_ID,
  ORCHESTRATOR_QUEUE,
  SEARCH_ATTRIBUTES,
  WORKFLOW_TYPES,
} from '../core/queues'
import { ensureDeployment } from '../storage/deployment'
import { SealError } from '../storage/payload-seal'
import { layout } from '../storage/layout'
import type { ObjectStore } from '../storage/store'

/** How long something must have been unowned before it is ended: longer than any list of a provider is stale. */
export const GARBAGE_GRACE_MS = 5 * 60_000
const SWEEP_EVERY = '10 minutes'

/** Whose store this is; the first process to ask makes it somebody's. */
export function deploymentOf(store: ObjectStore): Promise<string> {
  return ensureDeployment(store, () => makeDeploymentId(randomInt))
}

/** The search attributes, on servers that were not started with them. */
export async function ensureSearchAttributes(client: Client, namespace: string): Promise<void> {
  const { operatorService } = client.connection as unknown as { operatorService: OperatorService }
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace })
  const missing = Object.values(SEARCH_ATTRIBUTES).filter((name) => !(name in customAttributes))
  if (missing.length === 0) return
  await operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
  })
}

/** `temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD` */
const KEYWORD = 2

/** The two calls used, which every kind of connection has. */
interface OperatorService {
  listSearchAttributes(request: { namespace: string }): Promise<{ customAttributes: Record<string, unknown> }>
  addSearchAttributes(request: {
    namespace: string
    searchAttributes: Record<string, number>
  }): Promise<unknown>
}

/**
 * The schedule of garbage collection, which is also where Temporal keeps the deployment's id. It is made once, while the store is
 * still empty. Where the store already has jobs and Temporal does not know the deployment, a server was reset or the wrong one is
 * meant: then nothing is made, so that nothing is ever ended by mistake.
 */
export async function ensureGarbageCollection(
  client: Client,
  at: { store: ObjectStore; deployment: string; backends: BackendName[]; logger: Logger },
): Promise<void> {
  const { store, deployment, logger } = at
  const known = await scheduleOf(client)
  if (known?.deployment === deployment) {
    if (known.isSigned) return addBackends(client, at.backends)
    // Ours, but changed by somebody without the key. What is signed is made anew, from what this worker knows.
    logger.warn('the schedule of garbage collection was not signed by this deployment: making it anew')
    return adoptDeployment(client, at)
  }
  if (known !== undefined) {
    logger.error(
      { temporal: known.deployment, store: deployment },
      'Temporal and the object store belong to different deployments: garbage collection refuses to end anything',
    )
    return
  }
  if ((await store.listFolders(layout.jobs())).length > 0) {
    logger.warn(
      { deployment },
      'this Temporal server does not know the deployment, though it has jobs: garbage collection is off until `crucible gc --adopt`',
    )
    return
  }
  await createGarbageCollection(client, { deployment, backends: at.backends })
}

/**
 * From now on looks at these backends, too. One that is configured no longer stays on the list: something of it may be left, and
 * that nobody looks is told at every look.
 */
async function addBackends(client: Client, backends: BackendName[]): Promise<void> {
  const handle = client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID)
  const added = (known: readonly BackendName[]): BackendName[] =>
    backends.filter((name) => !known.includes(name))
  const [now] = ((await handle.describe()).action.args ?? []) as [GarbageCollectionInput?]
  if (now === undefined || added(now.backends).length === 0) return
  await handle.update(({ action, ...schedule }) => {
    const [input] = (action.args ?? []) as [GarbageCollectionInput]
    const changed = { ...input, backends: [...input.backends, ...added(input.backends)] }
    const args = stamped([changed], { kind: 'schedule', name: WORKFLOW_TYPES.garbageCollection })
    return { ...schedule, action: { ...action, args } }
  })
}

/** The deployment that Temporal holds; `undefined` when it holds none. */
export async function knownDeployment(client: Client): Promise<string | undefined> {
  return (await scheduleOf(client))?.deployment
}

/** What the schedule says, and whether this deployment has signed it. */
async function scheduleOf(client: Client): Promise<{ deployment?: string; isSigned: boolean } | undefined> {
  try {
    const { action } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
    const [input] = (action.args ?? []) as [Partial<GarbageCollectionInput>?]
    return { ...input, isSigned: true }
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    if (!(error instanceof SealError)) throw error
    return { ...(error.unverified as Partial<GarbageCollectionInput>), isSigned: false }
  }
}

export async function createGarbageCollection(
  client: Client,
  { deployment, backends }: { deployment: string; backends: BackendName[] },
): Promise<void> {
  const input: GarbageCollectionInput = { deployment, backends, graceMs: GARBAGE_GRACE_MS, isDryRun: false }
  try {
    await client.schedule.create({
      scheduleId: GARBAGE_COLLECTION_SCHEDULE_ID,
      spec: { intervals: [{ every: SWEEP_EVERY }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: SWEEP_EVERY },
      action: {
        type: 'startWorkflow',
        workflowType: WORKFLOW_TYPES.garbageCollection,
        workflowId: WORKFLOW_TYPES.garbageCollection,
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [input],
        staticSummary: 'ends what nobody owns',
      },
    })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
  }
}

/** Makes a deployment the server's own, whichever it held before. */
export async function adoptDeployment(
  client: Client,
  at: { deployment: string; backends: BackendName[] },
): Promise<void> {
  try {
    await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).delete()
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
  }
  await createGarbageCollection(client, at)
}
