import { openGranter } from '../../storage/open-granter'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import type { Cloud } from '#small-cloud'
import type { RawKeys } from '../support/raw-s3'

/** The credentials that a machine of an attempt gets for the store at a URL. */
export async function grantKeys(
  storeUrl: string,
  cloud: Cloud,
  grantee: { jobId: string; attempt: number },
): Promise<RawKeys> {
  const roleArn = cloud.account().roles.find(({ name }) => name === 'crucible-grant')!.arn
  const store = openStore(storeUrl) as S3Store
  try {
    const granter = openGranter(store, { roleArn })!
    const { keyId, secret, sessionToken } = await granter.grant({ ...grantee, durationMs: 3_600_000 })
    return { accessKeyId: keyId, secretAccessKey: secret, sessionToken: sessionToken ?? undefined }
  } finally {
    await store.close()
  }
}
