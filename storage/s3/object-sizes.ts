import type { S3Client } from '@aws-sdk/client-s3'
import { makeClient, type Sdk } from './client'
import { readS3Environment } from './config'
import { statusOf } from './errors'

/** The size of an S3 source, and its location. */
export interface MeasuredSource {
  sizeBytes: number
  /** The bucket's region; missing when a server other than AWS does not report it. */
  region?: string
}

/** Variables that make a job read S3 from another server. */
export const S3_SERVER_ENV = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'] as const

/**
 * Measures `s3://bucket/key`, or everything under a key that ends with `/`, with the credentials of this process. Throws when the source is
 * unreadable, or when the signal aborts first.
 */
export async function measureSource(source: string, signal: AbortSignal): Promise<MeasuredSource> {
  const { region, endpoint } = readS3Environment()
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/?(.*)$/s.exec(source) ?? []
  const { sdk, client } = await makeClient({
    bucket,
    prefix: '',
    region,
    endpoint,
  })
  try {
    const at = { sdk, client, signal }
    const [sizeBytes, place] = await Promise.all([
      key === '' || key.endsWith('/') ? sizeUnder(at, bucket, key) : sizeOf(at, bucket, key),
      regionOf(at, bucket),
    ])
    return { sizeBytes, region: place }
  } finally {
    client.destroy()
  }
}

interface At {
  sdk: Sdk
  client: S3Client
  signal: AbortSignal
}

async function sizeOf({ sdk, client, signal }: At, Bucket: string, Key: string): Promise<number> {
  const { ContentLength = 0 } = await client.send(new sdk.HeadObjectCommand({ Bucket, Key }), {
    abortSignal: signal,
  })
  return ContentLength
}

async function sizeUnder({ sdk, client, signal }: At, Bucket: string, Prefix: string): Promise<number> {
  let sizeBytes = 0
  const pages = sdk.paginateListObjectsV2({ client }, { Bucket, Prefix }, { abortSignal: signal })
  for await (const { Contents = [] } of pages) for (const { Size = 0 } of Contents) sizeBytes += Size
  return sizeBytes
}

/** S3 reports it even without permission to read the bucket. */
async function regionOf({ sdk, client, signal }: At, Bucket: string): Promise<string | undefined> {
  try {
    const { BucketRegion } = await client.send(new sdk.HeadBucketCommand({ Bucket }), { abortSignal: signal })
    return BucketRegion
  } catch (error) {
    const { $response } = error as { $response?: { headers?: Record<string, string> } }
    const region = $response?.headers?.['x-amz-bucket-region']
    if (region === undefined && statusOf(error) === undefined) throw error
    return region
  }
}
