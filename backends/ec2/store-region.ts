import { HOUR_MS } from '../../core/time/time'
import type { AccountApi } from './sdk/api'
import { cached } from '../calls'
import { placeOf } from './check/bucket'

/** Returns the Region of the store; nothing if it is not an AWS bucket, or its Region is unknown. */
export type StoreRegion = (signal: AbortSignal) => Promise<string | undefined>

/** A bucket never moves; one that is recreated elsewhere is noticed soon enough. */
const FRESH_MS = HOUR_MS
/** How long a plan waits for the Region. */
const PATIENCE_MS = 3_000

export function createStoreRegion({
  storeUrl,
  account,
  endpoint,
  clock,
}: {
  storeUrl: string | undefined
  account: Pick<AccountApi, 'bucketRegion'>
  /** A server that replaces AWS: then the store is in one of its Regions. */
  endpoint: string | undefined
  clock: () => number
}): StoreRegion {
  if (storeUrl === undefined || !storeUrl.startsWith('s3://')) return async () => undefined
  const { bucket } = placeOf(storeUrl)
  // A non-AWS server is in no Region, even if its URL names one.
  if (bucket.endpoint !== undefined && endpoint === undefined) return async () => undefined
  // A URL with endpoint and Region is the small cloud's. For an AWS bucket, AWS's own answer is more reliable than any setting.
  if (bucket.endpoint !== undefined && bucket.region !== undefined) return async () => bucket.region
  const read = async (signal: AbortSignal): Promise<string | undefined> =>
    account.bucketRegion(bucket, signal)
  const known = cached({ freshForMs: FRESH_MS, clock, read })
  return async (signal) => (await known.soon(PATIENCE_MS, signal))?.value ?? bucket.region
}
