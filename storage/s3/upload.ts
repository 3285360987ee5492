import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { storeErrorOf } from '../file-errors'
import { partBytesOf } from './parts'
import type { Bucket } from './s3-store'

/** Smaller files take one request. */
const PART_BYTES_MIN = 8 * 1024 * 1024
/** Number of concurrent parts; each is held in memory. */
const PARALLEL_PARTS = 4

export interface UploadTarget {
  bucket: Bucket
  key: string
  metadata: Record<string, string>
}

/** Uploads a file in parts, several at a time. A failed upload leaves no parts behind. */
export async function uploadFrom(path: string, { bucket, key, metadata }: UploadTarget): Promise<void> {
  const { size } = await reading(path, () => stat(path))
  const params = { Bucket: bucket.name, Key: key, Metadata: metadata }
  if (size <= PART_BYTES_MIN) {
    const Body = await reading(path, () => readFile(path))
    await bucket.client.send(new bucket.sdk.PutObjectCommand({ ...params, Body }))
    return
  }
  const { Upload } = await import('@aws-sdk/lib-storage')
  const file = createReadStream(path)
  const broken = new Promise<never>((_, reject) =>
    file.once('error', (error) => reject(storeErrorOf(error, `read ${path} to store it`))),
  )
  const upload = new Upload({
    client: bucket.client,
    params: { ...params, Body: file },
    partSize: partBytesOf(size, PART_BYTES_MIN),
    queueSize: PARALLEL_PARTS,
  })
  await Promise.race([upload.done(), broken])
}

async function reading<T>(path: string, action: () => Promise<T>): Promise<T> {
  return action().catch((error: unknown) => {
    throw storeErrorOf(error, `read ${path} to store it`)
  })
}
