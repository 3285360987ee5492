import type { Backend } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { IssuedRunnerOrder } from '../../core/documents'
import type { OwnedResource } from '../../core/handle'
import type { GarbageVerdict } from '../../core/messages'
import { parseAttemptId } from '../../core/queues'
import { messageOf } from '../../core/errors'
import { formatDuration } from '../../core/time/time'
import { leaseOverAtMs } from '../../planner/policy/liveness'
import { isUnreadable } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { AttemptDocuments } from '../documents'
import { factsOf, placesAt, recordEnd } from './garbage'

export interface ExpiredDeps {
  backend: Backend
  store: ObjectStore
  /** The store's clock, which also dates its objects: the clock of this host may be wrong. */
  storeNow: () => number
}

/**
 * Ends the machines of a deployment whose lease has certainly expired, without a Temporal server: their workload has stopped, or nothing of
 * it can be saved. Other machines, and other resources, are kept. Throws if the store does not answer.
 */
export async function endExpired(
  deps: ExpiredDeps,
  { deployment, isDryRun }: { deployment: string; isDryRun: boolean },
  signal: AbortSignal,
): Promise<GarbageVerdict[]> {
  const { backend, store } = deps
  const places = await placesAt(store, backend)
  const verdicts: GarbageVerdict[] = []
  for (const resource of await backend.list(deployment, { signal, ...places.look })) {
    // The provider's filter is not trusted for terminations.
    if (resource.owner.deployment !== deployment) continue
    // Machines are judged one by one, so that the facts are only a moment old when a machine is ended.
    const verdict = await judge(deps, resource, { isDryRun, signal }).catch((error: unknown) => {
      // A damaged document concerns one machine, which is named and kept.
      if (!isUnreadable(error)) throw error
      return { action: 'kept' as const, reason: `the end of its lease is unknown: ${messageOf(error)}` }
    })
    verdicts.push({ ...factsOf(backend, resource), ...verdict })
  }
  return [...verdicts, ...places.hidden()]
}

type Verdict = Pick<GarbageVerdict, 'action' | 'reason'>

async function judge(
  deps: ExpiredDeps,
  resource: OwnedResource,
  { isDryRun, signal }: { isDryRun: boolean; signal: AbortSignal },
): Promise<Verdict> {
  if (resource.handle.kind !== 'machine')
    return { action: 'kept', reason: 'without a Temporal server, only machines are ended' }
  const overAtMs = await leaseEndOf(deps, resource)
  if (overAtMs === undefined)
    return { action: 'kept', reason: 'the store has no order for it, so the end of its lease is unknown' }
  const leftMs = overAtMs - deps.storeNow()
  if (leftMs >= 0)
    return { action: 'kept', reason: `its lease has certainly expired only in ${formatDuration(leftMs)}` }
  const reason = `its lease expired ${formatDuration(-leftMs)} ago`
  if (isDryRun) return { action: 'would-end', reason }
  try {
    await deps.backend.terminate(resource.handle, { signal })
    await recordBillEnd(deps, resource)
    return { action: 'ended', reason }
  } catch (error) {
    return { action: 'failed', reason: failureOf(error).message }
  }
}

/**
 * Records the end of a bill. Without it, the settlement counts the machine as billed until the control plane is back; a store that refuses
 * the document has no other effect.
 */
async function recordBillEnd(
  { backend, store, storeNow: now }: ExpiredDeps,
  resource: OwnedResource,
): Promise<void> {
  if (backend.capabilities.billsUntil === 'terminate') await recordEnd({ store, now }, resource)
}

/** Returns when everything on a machine has certainly stopped, by the store's clock; undefined for a machine without an order. */
async function leaseEndOf(
  { store }: ExpiredDeps,
  { owner, createdAtMs }: OwnedResource,
): Promise<number | undefined> {
  const at = parseAttemptId(owner.attemptId)
  if (at === undefined) return undefined
  const documents = new AttemptDocuments(store, at, Date.now)
  const [order, head, lease] = await Promise.all([
    documents.readOrder(),
    store.head(layout.order(at.jobId, at.attempt)),
    documents.readLease(),
  ])
  if (order === undefined || head === undefined) return undefined
  // The machine may still count an earlier and longer lease, if it could not read the newest one.
  const leaseMs = Math.max(order.leaseMs, lease?.lease?.ttlMs ?? 0, await plannedLeaseMs(store, order))
  return leaseOverAtMs({
    timing: { ...order, leaseMs },
    renewedAtMs: lease?.renewedAtMs ?? Math.max(head.modifiedAtMs, createdAtMs),
    isLeaseFirst: lease?.lease === undefined,
    queueMs: order.queueMs,
  })
}

/** The longest lease that the attempt can have been given: credentials of its machine may have shortened the first one. */
async function plannedLeaseMs(
  store: ObjectStore,
  { jobId, attempt }: Pick<IssuedRunnerOrder, 'jobId' | 'attempt'>,
): Promise<number> {
  for (const entry of await readRecords(store, jobId))
    if (entry.kind === 'launched' && entry.attempt === attempt) return entry.data.runner.leaseMs
  return 0
}
