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
import type { BackendName } from '../core/offer'
import {
  GARBAGE_COLLECTION_SCHEDULE_ID,
  ORCHESTRATOR_QUEUE,
  SEARCH_ATTRIBUTES,
  WORKFLOW_TYPES,
} from '../core/queues'
import { ensureDeployment } from '../storage/deployment'
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
  const known = await knownDeployment(client)
  if (known === deployment) return addBackends(client, at.backends)
  if (known !== undefined) {
    logger.error(
      { temporal: known, store: deployment },
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
    const args = [{ ...input, backends: [...input.backends, ...added(input.backends)] }]
    return { ...schedule, action: { ...action, args } }
  })
}

/** The deployment that Temporal holds; `undefined` when it holds none. */
export async function knownDeployment(client: Client): Promise<string | undefined> {
  try {
    const { action } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
    const [input] = (action.args ?? []) as [GarbageCollectionInput?]
    return input?.deployment
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    throw error
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
