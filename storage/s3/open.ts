import { defined } from '../../core/defined'
import type { ObjectStore } from '../store'
import { readS3Environment } from './config'
import { parsePlace } from './place'
import { S3Store } from './s3-store'

/** What the URL does not say, the variables that all AWS tools read do; the store's own URL then says it to machines too. */
export function openBucket(url: URL): ObjectStore {
  const { region, endpoint } = readS3Environment()
  const told = parsePlace(url)
  // A region of this machine's own account says nothing of a server of somebody else.
  const place = {
    ...defined({ endpoint, region }),
    ...told,
  }
  return new S3Store(place)
}
