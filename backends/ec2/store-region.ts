import { HOUR_MS } from '../../core/time'
import type { AccountApi } from './sdk/api'
import { cached } from '../calls'
import { placeOf } from './check/bucket'

/** The Region of the store; nothing where it is not in a bucket of AWS, or where that cannot be learned. */
export type StoreRegion = (signal: AbortSignal) => Promise<string | undefined>

/** A bucket never moves; one that is made anew elsewhere is seen soon enough. */
const FRESH_MS = HOUR_MS
/** What a plan can wait for it. */
const PATIENCE_MS = 3_000

export function createStoreRegion({
  storeUrl,
  account,
  endpoint,
  clock,
}: {
  storeUrl: string | undefined
  account: Pick<AccountApi, 'bucketRegion'>
  /** Another server in the place of AWS: then the store is in a Region of that. */
  endpoint: string | undefined
  clock: () => number
}): StoreRegion {
  if (storeUrl === undefined || !storeUrl.startsWith('s3://')) return async () => undefined
  const { bucket } = placeOf(storeUrl)
  // A server of one's own is in no Region, whatever its URL says.
  if (bucket.endpoint !== undefined && endpoint === undefined) return async () => undefined
  // The small cloud, where the URL says it; what AWS says of its own bucket is surer than any setting.
  if (bucket.endpoint !== undefined && bucket.region !== undefined) return async () => bucket.region
  const read = async (signal: AbortSignal): Promise<string | undefined> =>
    account.bucketRegion(bucket, signal)
  const known = cached({ freshForMs: FRESH_MS, clock, read })
  return async (signal) => (await known.soon(PATIENCE_MS, signal))?.value ?? bucket.region
}
