import { createHash } from 'node:crypto'
import { withInstants, withoutInstants, type MarketReading } from '../core/market'
import type { BackendAnswer } from '../core/job/plan'
import { DAY_MS } from '../core/time/time'
import { readDocument } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** A document that no job uses is kept this long: a plan writes it before the job's record names it. */
export const UNUSED_MARKET_KEPT_MS = DAY_MS
/** Age from which a plan writes a reused document again, so that it is not deleted before the record names it. */
const REFRESH_AFTER_MS = UNUSED_MARKET_KEPT_MS / 2

/**
 * Keeps answers for the record of a job, each under the digest of its facts and prices: equal readings are one document. Call it before the
 * record names them.
 */
export async function keepMarket(
  store: ObjectStore,
  answers: readonly BackendAnswer[],
  { jobId, nowMs }: { jobId: string; nowMs: number },
): Promise<MarketReading[]> {
  return eachOf(answers, async (answer) => {
    const { backend } = answer
    const { text, instantsMs } = withoutInstants(answer)
    const sha256 = digestOf(text)
    const key = layout.market(backend, sha256)
    const stored = await store.head(key)
    if (stored === undefined || nowMs - stored.modifiedAtMs > REFRESH_AFTER_MS) await store.put(key, text)
    await store.put(layout.marketUse(backend, sha256, jobId), '')
    return { backend, sha256, instantsMs }
  })
}

/** Returns the answer as it was read, or `undefined` if its document no longer exists. Throws for a modified document. */
export async function readMarket(
  store: ObjectStore,
  { backend, sha256, instantsMs }: MarketReading,
): Promise<BackendAnswer | undefined> {
  return readDocument(store, layout.market(backend, sha256), (text) => {
    if (digestOf(text) !== sha256) throw new Error('its content does not match its digest')
    return withInstants(text, instantsMs)
  })
}

/** A document of `market/` with the jobs whose records use it. */
export interface StoredMarket {
  /** The common prefix of its keys. */
  id: string
  backend: string
  jobIds: string[]
  keys: string[]
  /** Time of the last write, or of its use by another job. */
  modifiedAtMs: number
  sizeBytes: number
}

/** Lists the documents under a prefix of `market/`. */
export async function listMarket(store: ObjectStore, prefix = layout.markets()): Promise<StoredMarket[]> {
  const found = new Map<string, StoredMarket>()
  for await (const { key, modifiedAtMs, sizeBytes } of store.list(prefix)) {
    const [backend, name, jobId] = key.slice(layout.markets().length).split('/')
    if (backend === undefined || name === undefined) continue
    const id = `${layout.markets()}${backend}/${name.replace(/\.json$/, '')}`
    const one = found.get(id) ?? { id, backend, jobIds: [], keys: [], modifiedAtMs: 0, sizeBytes: 0 }
    found.set(id, one)
    if (jobId !== undefined) one.jobIds.push(jobId)
    one.keys.push(key)
    one.modifiedAtMs = Math.max(one.modifiedAtMs, modifiedAtMs)
    one.sizeBytes += sizeBytes
  }
  return [...found.values()]
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
