import type { CollectStoreGarbageInput, OrchestratorActivities } from '../../core/activities'
import type { GarbageVerdict } from '../../core/messages'
import { attemptIdOf } from '../../core/queues'
import { formatBytes } from '../../core/resources'
import { DAY_MS, formatDuration } from '../../core/time/time'
import { listHandOvers } from '../../storage/hand-overs'
import { StoreError } from '../../storage/store'
import { ownerOfKey, type UnfinishedUpload } from '../../storage/unfinished'
import { checkDeployment, judgeAll, STORE, unseen, type GarbageCandidate, type Registry } from './garbage'
import { beating } from '../heartbeat'
import { collectMarket } from './market'
import { collectReservedBudgets, type ReservedBudgets } from './reserved-budgets'

/**
 * Minimum age of a removed resource. A bundle is uploaded before its job is known, and a machine cut off from us may still write its last
 * checkpoint.
 */
const YOUNG_MS = DAY_MS
/** Parts of an active upload never come this late. */
const NOBODYS_AFTER_MS = 3 * DAY_MS

interface Deps extends Registry {
  /** Money of reservations; missing if no budget limits the month. */
  treasury?: ReservedBudgets | undefined
}

export function createStoreActivities(deps: Deps): Pick<OrchestratorActivities, 'collectStoreGarbage'> {
  return { collectStoreGarbage: (input) => beating((signal) => collectStoreGarbage(deps, input, signal)) }
}

/** Scans the deployment's other resources in the store, by the rules for a provider's resources. */
async function collectStoreGarbage(
  { treasury, ...registry }: Deps,
  input: CollectStoreGarbageInput,
  signal: AbortSignal,
): Promise<GarbageVerdict[]> {
  await checkDeployment(registry.store, input.deployment)
  return [
    ...(await collectUploads(registry, input)),
    ...(await collectHandOvers(registry, input)),
    ...(await collectMarket(registry, input)),
    ...(treasury === undefined ? [] : await collectReservedBudgets(registry, { treasury, signal }, input)),
  ]
}

/** Hand-overs that neither a machine nor a settlement has deleted: their attempts were terminated by hand. */
async function collectHandOvers(
  registry: Registry,
  input: CollectStoreGarbageInput,
): Promise<GarbageVerdict[]> {
  const { store } = registry
  const found = (await listHandOvers(store)).map(({ key, jobId, attempt, putAtMs }): GarbageCandidate => ({
    facts: {
      backend: STORE,
      kind: 'hand-over',
      id: key,
      place: store.url,
      sinceMs: putAtMs,
      owner: attemptIdOf(jobId, attempt),
      description: 'hand-over that no machine has read',
    },
    claim: { jobId, attempt },
    end: () => store.delete(key),
  }))
  return judgeAll(registry, input, found)
}

/** Unfinished uploads to the store. */
async function collectUploads(
  registry: Registry,
  input: CollectStoreGarbageInput,
): Promise<GarbageVerdict[]> {
  const { store, now } = registry
  let uploads: UnfinishedUpload[]
  try {
    uploads = (await store.unfinished?.()) ?? []
  } catch (error) {
    // An optional permission (docs/reference/s3.md).
    if (!(error instanceof StoreError) || error.isTransient) throw error
    const reason = `${error.message} A lifecycle rule of the bucket for unfinished uploads also removes them.`
    return [unseen({ backend: STORE, kind: 'upload', place: store.url, reason })]
  }
  const rules = { ...input, youngMs: Math.max(input.youngMs ?? 0, YOUNG_MS) }
  return judgeAll(
    registry,
    rules,
    uploads.map((upload) => foundOf(store, upload, now())),
  )
}

function foundOf(store: Registry['store'], upload: UnfinishedUpload, nowMs: number): GarbageCandidate {
  const { id, key, sizeBytes, beganAtMs, costMicroUsdPerDay } = upload
  const owner = key === undefined ? undefined : ownerOfKey(key)
  return {
    facts: {
      backend: STORE,
      kind: 'upload',
      id,
      place: store.url,
      sinceMs: beganAtMs,
      owner: owner?.attempt === undefined ? (owner?.jobId ?? '') : attemptIdOf(owner.jobId, owner.attempt),
      description: `unfinished upload${key === undefined ? '' : ` of ${key}`}, ${formatBytes(sizeBytes)} so far`,
      costMicroUsdPerDay,
    },
    claim: owner ?? nobodys(nowMs - beganAtMs),
    end: async () => store.abandon?.(upload),
  }
}

function nobodys(ageMs: number): GarbageCandidate['claim'] {
  const limit = formatDuration(NOBODYS_AFTER_MS)
  return ageMs < NOBODYS_AFTER_MS
    ? { isNeeded: true, reason: `it belongs to no job, but is younger than ${limit}` }
    : { isNeeded: false, reason: `it belongs to no job, and is older than ${limit}` }
}
