import type { CollectStoreGarbageInput } from '../../core/activities'
import type { GarbageVerdict } from '../../core/messages'
import { formatBytes } from '../../core/resources'
import { layout } from '../../storage/layout'
import { listMarket, UNUSED_MARKET_KEPT_MS, type StoredMarket } from '../../storage/market'
import { StoreError, type ObjectStore } from '../../storage/store'
import { judgeAll, STORE, type GarbageCandidate, type Registry } from './garbage'

/** A workflow's answer has room for this many verdicts; the next scan finds the others. */
const FOUND_MAX = 200

/**
 * Market documents that no record has used for a day: a plan that was never recorded has left them, or the folders of their jobs were
 * deleted. Others are not reported, because every decision of every job has one.
 */
export async function collectMarket(
  registry: Registry,
  input: CollectStoreGarbageInput,
): Promise<GarbageVerdict[]> {
  const { store, now } = registry
  // Documents are listed before their users, because a job that begins meanwhile writes its own.
  const stored = await listMarket(store)
  const jobs = new Set(await store.listFolders(layout.jobs()))
  const oldMs = now() - UNUSED_MARKET_KEPT_MS
  const unused = stored.filter(
    ({ jobIds, modifiedAtMs }) => modifiedAtMs < oldMs && !jobIds.some((jobId) => jobs.has(jobId)),
  )
  return judgeAll(
    registry,
    input,
    unused.slice(0, FOUND_MAX).map((market) => foundOf(store, market)),
  )
}

function foundOf(store: ObjectStore, market: StoredMarket): GarbageCandidate {
  const { id, backend, sizeBytes, modifiedAtMs } = market
  return {
    facts: {
      backend: STORE,
      kind: 'market',
      id,
      owner: '',
      place: store.url,
      sinceMs: modifiedAtMs,
      description: `offers of ${backend} that no record uses, ${formatBytes(sizeBytes)}`,
    },
    claim: { isNeeded: false, reason: 'no record of a job in the store uses it' },
    end: () => deleteUnused(store, market),
  }
}

/** Looks again first: a plan may be about to use it. */
async function deleteUnused(store: ObjectStore, market: StoredMarket): Promise<void> {
  const [now] = await listMarket(store, market.id)
  const isUnchanged = now?.modifiedAtMs === market.modifiedAtMs && now.keys.length === market.keys.length
  if (now !== undefined && !isUnchanged)
    throw new StoreError('A plan has just used it.', { isTransient: true })
  for (const key of market.keys) await store.delete(key)
}
