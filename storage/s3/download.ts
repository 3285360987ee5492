import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { StoreError } from '../store'
import { storeErrorOf } from '../file-errors'
import { eachOf } from '../parallel'
import { partialOf } from '../place'
import type { Bucket } from './s3-store'

const PART_BYTES = 8 * 1024 * 1024
/** Maximum number of connections that may end without delivering a byte. */
const VAIN_TRIES_MAX = 5

/** Downloads an object to a file in parts, several at a time; the file appears when it is complete. Returns its size in bytes. */
export async function downloadTo(path: string, bucket: Bucket, key: string): Promise<number> {
  const { sdk, client, name } = bucket
  const head = await client.send(new sdk.HeadObjectCommand({ Bucket: name, Key: key }))
  const size = head.ContentLength ?? 0
  const partial = partialOf(path)
  try {
    const file = await writing(path, () => open(partial, 'wx'))
    try {
      const offsets = Array.from({ length: Math.ceil(size / PART_BYTES) }, (_, index) => index * PART_BYTES)
      await eachOf(offsets, (begin) =>
        fetchPart({ bucket, key, tag: head.ETag }, file, { begin, end: Math.min(begin + PART_BYTES, size) }),
      )
      await writing(path, () => file.sync())
    } finally {
      await file.close()
    }
    await writing(path, () => rename(partial, path))
  } finally {
    await rm(partial, { force: true })
  }
  return size
}

interface Source {
  bucket: Bucket
  key: string
  /** The found object's tag, so that parts of different objects are not mixed. */
  tag: string | undefined
}

/** Fetches one part; resumes an interrupted connection. */
async function fetchPart(
  source: Source,
  file: FileHandle,
  { begin, end }: { begin: number; end: number },
): Promise<void> {
  const { sdk, client, name } = source.bucket
  let vainTries = 0
  for (let at = begin; at < end;) {
    const before = at
    const { Body } = await client.send(
      new sdk.GetObjectCommand({
        Bucket: name,
        Key: source.key,
        Range: `bytes=${at}-${end - 1}`,
        IfMatch: source.tag,
      }),
    )
    try {
      for await (const chunk of Body as Readable) {
        const bytes = chunk as Buffer
        await writing(source.key, () => file.write(bytes, 0, bytes.length, at))
        at += bytes.length
      }
      if (at < end) throw new Error(`the connection ended after ${at - begin} of ${end - begin} bytes`)
    } catch (error) {
      vainTries = at > before ? 0 : vainTries + 1
      if (vainTries > VAIN_TRIES_MAX || error instanceof StoreError) throw error
    }
  }
}

async function writing<T>(path: string, action: () => Promise<T>): Promise<T> {
  return action().catch((error: unknown) => {
    throw storeErrorOf(error, `write ${path}`)
  })
}
