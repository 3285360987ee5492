import type { Granter } from './grants'
import { makeS3Granter, type S3GrantOptions } from './s3/grants'
import { S3Store } from './s3/s3-store'
import type { ObjectStore } from './store'

/** Who gives machines credentials for a store; `undefined` for stores that ask for none. */
export function openGranter(store: ObjectStore, options: S3GrantOptions): Granter | undefined {
  return store instanceof S3Store ? makeS3Granter(store.place, options) : undefined
}
