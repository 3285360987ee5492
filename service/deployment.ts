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
import { CODES } from '../core/errors'
import { ensureDeployment, readDeployment } from '../storage/deployment'
import { isOwnKey } from '../storage/deployment-key'
import { ignoreBadDocument } from '../storage/json'
import { layout } from '../storage/layout'
import { unmarkedStore } from '../storage/mark'
import { SealError } from '../storage/payload-seal'
import { readRecord } from '../storage/record'
import { StoreError, type ObjectStore } from '../storage/store'
import { newestSubmissions } from '../storage/submissions'
import { claimedDeployment } from './claimed-deployment'

/** Time for which a resource must be unowned before it is ended, longer than any provider's list is stale. */
const GARBAGE_GRACE_MS = 5 * 60_000
const SWEEP_EVERY = '10 minutes'

/** The deployment of this store. One that has none gets one: only for a store that was just made, or is certainly a new one. */
export function deploymentOf(store: ObjectStore): Promise<string> {
  return ensureDeployment(store, () => makeDeploymentId(randomInt))
}

/** What `openOwnStore` needs for a store without a mark. */
export interface StoreClaim {
  /** The deployment that the Temporal server holds. */
  known: () => Promise<string | undefined>
  secretKeyFile: string
}

/**
 * The deployment of a worker's store. Only a store is new whose deployment neither its own mark nor the Temporal server knows: it is
 * made and marked. A store that has lost its mark, and has jobs and the record of this worker's key, gets the mark of its newest job
 * again. Any other place is an unmounted disk or an emptied store, and throws a `StoreError` that says which.
 */
export async function openOwnStore(
  store: ObjectStore,
  { known, secretKeyFile }: StoreClaim,
): Promise<string> {
  let reason = unmarkedStore(store.url)
  try {
    const standing = await readDeployment(store)
    if (standing !== undefined) return standing
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== CODES.noRoot) throw error
    reason = error
  }
  const held = await known()
  const isThere = reason.code !== CODES.noRoot
  const lost = isThere && (await isOwnKey(store, secretKeyFile)) ? await deploymentOfJobs(store) : undefined
  if (lost !== undefined && (held === undefined || held === lost)) return ensureDeployment(store, () => lost)
  if (held !== undefined) {
    // Another worker may have made the store since the first look.
    const made = await readDeployment(store).catch(() => undefined)
    if (made === undefined) throw reason
    return made
  }
  await store.make?.()
  if (lost === undefined && (await store.listFolders(layout.jobs())).length > 0) throw reason
  return deploymentOf(store)
}

/** The deployment of the newest job with a readable submission. */
async function deploymentOfJobs(store: ObjectStore): Promise<string | undefined> {
  let looks = 0
  for await (const jobId of newestSubmissions(store)) {
    const first = await readRecord(store, jobId, 0).catch(ignoreBadDocument)
    if (first?.kind === 'submitted') return first.data.deployment
    if (++looks === JOBS_LOOKED_AT) return undefined
  }
  return undefined
}

const JOBS_LOOKED_AT = 20

/** Adds the search attributes on servers that were started without them. */
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

/** The two calls used, which every kind of connection supports. */
interface OperatorService {
  listSearchAttributes(request: { namespace: string }): Promise<{ customAttributes: Record<string, unknown> }>
  addSearchAttributes(request: {
    namespace: string
    searchAttributes: Record<string, number>
  }): Promise<unknown>
}

/**
 * The schedule of garbage collection, which is also where Temporal stores the deployment's id. Created once, while the store is
 * still empty. If the store already has jobs but Temporal does not know the deployment, the server was reset or is the wrong one:
 * then nothing is created, so that nothing is ended by mistake.
 */
export async function ensureGarbageCollection(
  client: Client,
  at: { store: ObjectStore; deployment: string; backends: BackendName[]; logger: Logger },
): Promise<void> {
  const { store, deployment, logger } = at
  const known = await scheduleOf(client)
  if (known?.deployment === deployment) {
    if (known.isSigned) return addBackends(client, at.backends)
    // Ours, but changed without the key. It is rebuilt with signed content from this worker's settings.
    logger.warn('the schedule of garbage collection was not signed by this deployment: rebuilding it')
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
      'this Temporal server does not know this deployment, which already has jobs: garbage collection is off until `crucible gc --adopt`',
    )
    return
  }
  await createGarbageCollection(client, { deployment, backends: at.backends })
}

/**
 * Adds these backends to the schedule. A backend that is no longer configured stays on the list: resources may remain, and every
 * run reports that it is not scanned.
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

/** The deployment that Temporal holds; `undefined` without one. */
export async function knownDeployment(client: Client): Promise<string | undefined> {
  return (await scheduleOf(client))?.deployment
}

/** Content of the schedule, and whether this deployment signed it. */
async function scheduleOf(
  client: Client,
): Promise<{ deployment?: string | undefined; isSigned: boolean } | undefined> {
  try {
    const { action } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
    const [input] = (action.args ?? []) as [Partial<GarbageCollectionInput>?]
    return { ...input, isSigned: true }
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    if (!(error instanceof SealError)) throw error
    return { deployment: await claimedDeployment(client), isSigned: false }
  }
}

/** @internal A test collects for one backend of several. */
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
        staticSummary: 'removes orphaned resources',
      },
    })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
  }
}

/** Binds the server to a deployment, whichever it held before. */
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
