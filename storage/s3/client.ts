import type * as SdkTypes from '@aws-sdk/client-s3'
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import { defined } from '../../core/defined'
import type { Grant } from '../../core/grants'
import { requestHandler } from '../../network/aws'
import { explainingSignIn } from '../../network/sign-in'
import type { S3Place } from './place'

/** Concurrent requests to one server: the parts of two files, and small requests. */
const SOCKETS_MAX = 64
const CONNECT_MS = 5_000
/** A connection that transfers no byte for this long counts as dead. */
const SILENCE_MS = 30_000
const TRIES = 5
/** Region for requests to a bucket whose region is unknown: S3 redirects from there. */
const REGION_DEFAULT = 'us-east-1'

/**
 * Client settings for all vendors' servers. Some do not support the newer checksums, and some return the checksum of an object that was
 * just replaced. The signature covers the sent content, and every server checks the signature.
 */
const PLAIN = {
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
} as const

/** The SDK takes a while to load, and most commands never need it. */
export type Sdk = typeof SdkTypes
function loadSdk(): Promise<Sdk> {
  return import('@aws-sdk/client-s3')
}

function clientConfig({ region, endpoint }: S3Place): S3ClientConfig {
  return {
    region: region ?? REGION_DEFAULT,
    followRegionRedirects: true,
    maxAttempts: TRIES,
    requestHandler: requestHandler({ connectMs: CONNECT_MS, silenceMs: SILENCE_MS, socketsMax: SOCKETS_MAX }),
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true, ...PLAIN }),
  }
}

/** @param grant the credentials to use; those of this process when missing */
export async function makeClient(place: S3Place, grant?: Grant): Promise<{ sdk: Sdk; client: S3Client }> {
  const sdk = await loadSdk()
  const credentials = grant && {
    accessKeyId: grant.keyId,
    secretAccessKey: grant.secret,
    sessionToken: grant.sessionToken === null ? undefined : grant.sessionToken,
  }
  const client = new sdk.S3Client({ ...clientConfig(place), ...defined({ credentials }) })
  return { sdk, client: grant === undefined ? explainingSignIn(client) : client }
}
