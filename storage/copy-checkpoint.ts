import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { COPIED_BY, checkpointId, type Checkpoint, type CheckpointSource } from '../core/job/checkpoint'
import type { Manifest, ManifestFile } from '../core/job/checkpoint'
import { MINUTE_MS } from '../core/time/time'
import {
  checkpointFileKey,
  checkpointFolder,
  listCheckpoints,
  manifestKey,
  readManifest,
  type BadFile,
  type GoodCheckpoint,
} from './checkpoints'
import { faultOf } from './checkpoint-digests'
import type { Parse } from './json'
import { eachOf } from './parallel'
import { StoreError, type ObjectStore } from './store'

/** Returns the checkpoint that a job got from another one, with its source; `undefined` while it has none. */
export async function readCopied(
  store: ObjectStore,
  jobId: string,
  parse: Parse<Manifest>,
): Promise<{ checkpoint: Checkpoint; source: CheckpointSource } | undefined> {
  for (const checkpoint of await listCheckpoints(store, jobId)) {
    if (checkpoint.attempt !== COPIED_BY) continue
    const source = (await readManifest(store, { jobId, checkpoint }, parse))?.copiedFrom
    if (source !== undefined) return { checkpoint, source }
  }
  return undefined
}

export interface CheckpointCopy {
  from: GoodCheckpoint & { jobId: string }
  toJobId: string
}

/**
 * Copies a checkpoint to another job, its manifest last, so that an interrupted copy is not a checkpoint. Files of an earlier try are not
 * copied again. Returns the files that differ from the manifest; then there is no copy. The size of every copied file is compared with the
 * manifest. A folder store keeps no checksums, so there each file is also read and compared with its digest.
 */
export async function copyCheckpoint(
  store: ObjectStore,
  { from, toJobId }: CheckpointCopy,
  signal: AbortSignal,
): Promise<BadFile[]> {
  const step = from.checkpoint.step
  const copy: Checkpoint = { id: checkpointId(step, COPIED_BY), step, attempt: COPIED_BY }
  const checked = await eachOf(from.manifest.files, async (file) => {
    signal.throwIfAborted()
    const reason = await copyFile(store, file, {
      fromKey: checkpointFileKey(from.jobId, from.checkpoint, file),
      toKey: checkpointFileKey(toJobId, copy, { path: file.path }),
    })
    return reason === undefined ? [] : [{ path: file.path, reason }]
  })
  const bad = checked.flat()
  if (bad.length > 0) {
    for await (const { key } of store.list(checkpointFolder(toJobId, copy))) await store.delete(key)
    return bad
  }
  const source = await store.get(manifestKey(from.jobId, from.checkpoint, from.manifest.revision))
  if (source === undefined) {
    throw new StoreError(
      `The checkpoint ${from.checkpoint.id} of ${from.jobId} was removed while it was copied.`,
      {
        isTransient: true,
      },
    )
  }
  await store.putIfAbsent(
    manifestKey(toJobId, copy, 1),
    manifestOfCopy(source.toString('utf8'), {
      jobId: toJobId,
      copiedFrom: { jobId: from.jobId, checkpoint: from.checkpoint.id },
    }),
  )
  return []
}

/** Returns the problem with the copy, or `undefined` when it is good. */
async function copyFile(
  store: ObjectStore,
  file: ManifestFile,
  { fromKey, toKey }: { fromKey: string; toKey: string },
): Promise<string | undefined> {
  if ((await store.head(toKey))?.sizeBytes !== file.sizeBytes && !(await store.copy(fromKey, toKey)))
    return 'is missing'
  const copied = await store.head(toKey)
  if (copied === undefined) return 'is missing'
  if (copied.sizeBytes !== file.sizeBytes) return `has ${copied.sizeBytes} bytes instead of ${file.sizeBytes}`
  if (!store.url.startsWith('file:')) return undefined
  return faultOf(fileURLToPath(await store.readUrl(toKey, MINUTE_MS)), file)
}

/** Returns the same manifest for another job. Fields unknown to this version are kept; the digest of the document comes last. */
function manifestOfCopy(text: string, of: { jobId: string; copiedFrom: CheckpointSource }): string {
  const source = JSON.parse(text) as Record<string, unknown>
  delete source['sha256']
  const files = (source['files'] as ManifestFile[]).map(({ storedAt: _, ...file }) => file)
  const before = `${JSON.stringify({ ...source, ...of, files, attempt: COPIED_BY, revision: 1 }).slice(0, -1)},`
  const digest = createHash('sha256').update(before).digest('hex')
  return `${before}"sha256":"${digest}"}`
}
