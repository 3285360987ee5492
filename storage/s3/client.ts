import type * as SdkTypes from '@aws-sdk/client-s3'
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import { defined } from '../../core/defined'
import type { Grant } from '../../core/grants'
import { silenceSdk } from './config'
import type { S3Place } from './place'

/** Requests to one server at the same time: two files of parts each, and everything small beside them. */
const SOCKETS_MAX = 64
const CONNECT_MS = 5_000
/** A server that neither takes nor gives a byte for so long is not going to. */
const SILENCE_MS = 30_000
const TRIES = 5
/** Where nobody says where the bucket is: from there S3 tells where it is. */
const REGION_DEFAULT = 'us-east-1'

/**
 * Servers of others do not all know the newer checksums, and some answer with that of an object that was replaced this moment.
 * The signature covers what is sent, and every server checks that.
 */
const PLAIN = {
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
} as const

/** The SDK takes a while to load, and most commands never need it. */
export type Sdk = typeof SdkTypes
export function loadSdk(): Promise<Sdk> {
  silenceSdk()
  return import('@aws-sdk/client-s3')
}

export function clientConfig({ region, endpoint }: S3Place): S3ClientConfig {
  return {
    region: region ?? REGION_DEFAULT,
    followRegionRedirects: true,
    maxAttempts: TRIES,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      httpAgent: { keepAlive: true, maxSockets: SOCKETS_MAX },
      httpsAgent: { keepAlive: true, maxSockets: SOCKETS_MAX },
    },
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true, ...PLAIN }),
  }
}

/** @param grant in whose name to ask; that of this process where it is missing */
export async function makeClient(place: S3Place, grant?: Grant): Promise<{ sdk: Sdk; client: S3Client }> {
  const sdk = await loadSdk()
  const credentials = grant && {
    ...{ accessKeyId: grant.keyId, secretAccessKey: grant.secret },
    ...(grant.sessionToken === null ? {} : { sessionToken: grant.sessionToken }),
  }
  return { sdk, client: new sdk.S3Client({ ...clientConfig(place), ...defined({ credentials }) }) }
}
