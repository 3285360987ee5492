import type { CompletedPart } from '@aws-sdk/client-s3'
import { eachOf } from '../parallel'
import { partBytesOf } from './parts'
import type { Bucket } from './s3-store'

/** Size above which objects are copied in parts, several at a time; S3 copies at most 5 GiB in one request. */
const ONE_REQUEST_BYTES_MAX = 256 * 1024 * 1024

interface Copying {
  from: string
  to: string
  metadata: Record<string, string>
}

/**
 * Copies an object inside a bucket, on the server. The copy has the given metadata, not that of the source. A failed copy leaves no parts
 * behind.
 */
export async function copyWithin(
  bucket: Bucket,
  copying: Copying,
  partBytesMin = ONE_REQUEST_BYTES_MAX,
): Promise<void> {
  const { sdk, client, name } = bucket
  const head = await client.send(new sdk.HeadObjectCommand({ Bucket: name, Key: copying.from }))
  const source: Source = { sizeBytes: head.ContentLength ?? 0, tag: head.ETag }
  if (source.sizeBytes > partBytesMin) return copyInParts(bucket, copying, { ...source, partBytesMin })
  await client.send(
    new sdk.CopyObjectCommand({
      Bucket: name,
      Key: copying.to,
      Metadata: copying.metadata,
      MetadataDirective: 'REPLACE',
      ...copySource(bucket, copying, source),
    }),
  )
}

interface Source {
  sizeBytes: number
  /** The found object's tag, so that parts of different objects are not mixed. */
  tag: string | undefined
}

async function copyInParts(
  bucket: Bucket,
  copying: Copying,
  source: Source & { partBytesMin: number },
): Promise<void> {
  const { sdk, client, name } = bucket
  const at = { Bucket: name, Key: copying.to }
  const partBytes = partBytesOf(source.sizeBytes, source.partBytesMin)
  const { UploadId } = await client.send(
    new sdk.CreateMultipartUploadCommand({ ...at, Metadata: copying.metadata }),
  )
  const offsets = Array.from(
    { length: Math.ceil(source.sizeBytes / partBytes) },
    (_, index) => index * partBytes,
  )
  let failure: Error | undefined
  const copyPart = async (offset: number): Promise<CompletedPart> => {
    const PartNumber = offset / partBytes + 1
    const end = Math.min(offset + partBytes, source.sizeBytes) - 1
    const { CopyPartResult } = await client.send(
      new sdk.UploadPartCopyCommand({
        ...at,
        UploadId,
        PartNumber,
        CopySourceRange: `bytes=${offset}-${end}`,
        ...copySource(bucket, copying, source),
      }),
    )
    return { PartNumber, ETag: CopyPartResult?.ETag }
  }
  try {
    // Waits for all parts in progress: a part that arrived after the upload was aborted would remain in the store.
    const Parts = await eachOf(offsets, async (offset) =>
      failure === undefined ? copyPart(offset).catch((error: Error) => void (failure ??= error)) : undefined,
    )
    if (failure !== undefined) throw failure
    const done = Parts.filter((part) => part !== undefined)
    await client.send(
      new sdk.CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts: done } }),
    )
  } catch (error) {
    await client.send(new sdk.AbortMultipartUploadCommand({ ...at, UploadId })).catch(() => undefined)
    throw error
  }
}

function copySource(
  { name }: Bucket,
  { from }: Copying,
  { tag }: Source,
): { CopySource: string; CopySourceIfMatch?: string } {
  const CopySource = `${name}/${from.split('/').map(encodeURIComponent).join('/')}`
  return { CopySource, CopySourceIfMatch: tag }
}
