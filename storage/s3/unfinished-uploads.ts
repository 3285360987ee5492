import { microUsd } from '../../core/money/money'
import type { UnfinishedUpload } from '../unfinished'
import type { Sdk } from './client'
import type { Bucket } from './s3-store'

/** Price of S3 Standard in us-east-1, November 2026: $0.023 per GiB and month. Parts of uploads cost as much as objects. */
const USD_PER_GIB_DAY = 0.023 / 30
const GIB = 1024 ** 3

/** Lists the multipart uploads under a prefix, in progress or abandoned, each with its stored size. */
export async function listUploads(
  bucket: Bucket,
  { prefix, isOfAws }: { prefix: string; isOfAws: boolean },
): Promise<UnfinishedUpload[]> {
  const { sdk, client, name: Bucket } = bucket
  const found: UnfinishedUpload[] = []
  let after: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {}
  for (;;) {
    const page = await client.send(new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: prefix, ...after }))
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      if (Key === undefined || UploadId === undefined || Initiated === undefined) continue
      const sizeBytes = await sizeOf(bucket, { Key, UploadId })
      // The upload has ended since.
      if (sizeBytes === undefined) continue
      found.push({
        id: UploadId,
        key: Key.slice(prefix.length),
        sizeBytes,
        beganAtMs: Initiated.getTime(),
        costMicroUsdPerDay: isOfAws ? microUsd((sizeBytes / GIB) * USD_PER_GIB_DAY) : undefined,
      })
    }
    if (page.IsTruncated !== true) return found
    after = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
  }
}

type Upload = Pick<InstanceType<Sdk['AbortMultipartUploadCommand']>['input'], 'Key' | 'UploadId'>

async function sizeOf(
  { sdk, client, name: Bucket }: Bucket,
  { Key, UploadId }: Upload,
): Promise<number | undefined> {
  let sizeBytes = 0
  let PartNumberMarker: string | undefined
  try {
    // The SDK's paginator is not used, because servers name a next part even if it does not exist.
    for (;;) {
      const page = await client.send(new sdk.ListPartsCommand({ Bucket, Key, UploadId, PartNumberMarker }))
      for (const { Size = 0 } of page.Parts ?? []) sizeBytes += Size
      if (page.IsTruncated !== true) return sizeBytes
      PartNumberMarker = page.NextPartNumberMarker
    }
  } catch (error) {
    if ((error as Error).name === 'NoSuchUpload') return undefined
    throw error
  }
}

/** Aborts an upload; an ended upload is success. */
export async function abortUpload(
  { sdk, client, name: Bucket }: Bucket,
  { Key, UploadId }: Upload,
): Promise<void> {
  try {
    await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
  } catch (error) {
    if ((error as Error).name !== 'NoSuchUpload') throw error
  }
}
