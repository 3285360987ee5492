import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { CHECKPOINT_PART_BYTES, type ManifestFile } from '../core/job/checkpoint'

/** Returns how a file on this machine differs from its manifest entry; `undefined` when it does not. */
export async function faultOf(path: string, file: ManifestFile): Promise<string | undefined> {
  const { size } = await stat(path)
  if (size !== file.sizeBytes) return `has ${size} bytes instead of ${file.sizeBytes}`
  const parts = await partDigests(path, size)
  const wrong = parts.findIndex((part, index) => part !== file.parts[index])
  if (wrong !== -1) return `differs in part ${wrong + 1} of ${parts.length}`
  if (parts.length !== file.parts.length) return `has ${parts.length} parts instead of ${file.parts.length}`
  const digest = sha256(Buffer.from(parts.join(''), 'hex'))
  return digest === file.digest ? undefined : 'has parts that do not make up its digest'
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Hex SHA-256 of each part of `CHECKPOINT_PART_BYTES`, in order. */
async function partDigests(path: string, sizeBytes: number): Promise<string[]> {
  const digests: string[] = []
  for (let start = 0; start < sizeBytes; start += CHECKPOINT_PART_BYTES) {
    const part = createReadStream(path, { start, end: start + CHECKPOINT_PART_BYTES - 1 })
    const hash = createHash('sha256')
    for await (const chunk of part as AsyncIterable<Buffer>) hash.update(chunk)
    digests.push(hash.digest('hex'))
  }
  return digests
}
