import type { ObjectStore } from '../store'
import { readS3Environment } from './config'
import { parsePlace } from './place'
import { S3Store } from './s3-store'

/**
 * Opens a bucket. Settings missing from the URL come from the variables of all AWS tools; the store's own URL then contains them for
 * machines too.
 */
export function openBucket(url: URL): ObjectStore {
  const { region, endpoint } = readS3Environment()
  const told = parsePlace(url)
  // The region of this machine's account does not apply to another vendor's server.
  return new S3Store({ ...told, endpoint: told.endpoint ?? endpoint, region: told.region ?? region })
}
