import type { Grant } from '../core/grants'
import type { Granter, GrantRequest } from './grants'
import { layout } from './layout'
import { makeS3Granter, type S3GrantOptions } from './s3/grants'
import { S3Store } from './s3/s3-store'
import type { ObjectStore } from './store'

/** Returns the issuer of machines' credentials for a store; `undefined` for stores without credentials. */
export function openGranter(store: ObjectStore, options: S3GrantOptions): Granter | undefined {
  return store instanceof S3Store ? makeS3Granter(store.place, options) : undefined
}

/** Requests a grant and lists the store with it, as a machine would. Throws a `StoreError` when either fails. */
export async function tryGrant(store: ObjectStore, granter: Granter, wish: GrantRequest): Promise<Grant> {
  const grant = await granter.grant(wish)
  if (!(store instanceof S3Store)) return grant
  const asMachine = new S3Store(store.place, grant)
  try {
    await asMachine.listFolders(layout.checkpoints(wish.jobId))
    return grant
  } finally {
    await asMachine.close()
  }
}
