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

/**
 * Requests a grant and uses the store with it as a machine would: lists, and in the store of a deployment also writes, reads and removes an
 * object, which in an encrypted bucket needs rights to its key. Throws a `StoreError` when anything fails.
 */
export async function tryGrant(store: ObjectStore, granter: Granter, wish: GrantRequest): Promise<Grant> {
  const grant = await granter.grant(wish)
  if (!(store instanceof S3Store)) return grant
  const asMachine = new S3Store(store.place, grant)
  try {
    await asMachine.listFolders(layout.checkpoints(wish.jobId))
    // A store that has objects but no deployment yet would be refused.
    if ((await store.head(layout.deployment())) === undefined) return grant
    const key = `${layout.attempt(wish.jobId, wish.attempt)}beat.probe`
    await asMachine.put(key, 'written by crucible doctor')
    try {
      await asMachine.get(key)
    } finally {
      await asMachine.delete(key)
    }
    return grant
  } finally {
    await asMachine.close()
  }
}
