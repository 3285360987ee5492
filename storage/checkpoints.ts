import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  byNewest,
  CHECKPOINT_PART_BYTES,
  checkpointId,
  parseCheckpointId,
  type Checkpoint,
  type Manifest,
  type ManifestFile,
} from '../core/checkpoint'
import { readDocument, type Parse } from './json'
import { filesFolder, layout, manifestName } from './layout'
import { eachOf } from './parallel'
import { StoreError, type ObjectStore } from './store'

/** What lies in a job's checkpoint folder. */
export interface CheckpointSurvey {
  /** With a manifest: the checkpoints that exist. Newest first. */
  complete: Checkpoint[]
  /** Without one: being uploaded, left over from an upload, or being removed. */
  partial: Checkpoint[]
}

export async function surveyCheckpoints(store: ObjectStore, jobId: string): Promise<CheckpointSurvey> {
  const folders = await store.listFolders(layout.checkpoints(jobId))
  const named = folders.map(parseCheckpointId).filter((checkpoint) => checkpoint !== undefined)
  const looked = await eachOf(named, async (checkpoint) => ({
    checkpoint,
    isComplete: (await store.head(manifestKey(jobId, checkpoint))) !== undefined,
  }))
  const those = (isComplete: boolean): Checkpoint[] =>
    looked
      .filter((look) => look.isComplete === isComplete)
      .map((look) => look.checkpoint)
      .sort(byNewest)
  return { complete: those(true), partial: those(false) }
}

/** The job's complete checkpoints, newest first. */
export async function listCheckpoints(store: ObjectStore, jobId: string): Promise<Checkpoint[]> {
  return (await surveyCheckpoints(store, jobId)).complete
}

/**
 * The manifest of a checkpoint, or `undefined` when it has none and so does not exist. Throws a `StoreError` with code
 * `BAD_DOCUMENT` when what lies there is none, or is damaged.
 */
export async function readManifest(
  store: ObjectStore,
  at: { jobId: string; checkpoint: Checkpoint },
  parse: Parse<Manifest>,
): Promise<Manifest | undefined> {
  return readDocument(store, manifestKey(at.jobId, at.checkpoint), (text) => {
    const manifest = parse(text)
    const before = text.slice(0, Math.max(0, text.lastIndexOf('"sha256"')))
    if (manifest.sha256 !== undefined && manifest.sha256 !== sha256(before)) throw new Error('it is damaged')
    return manifest
  })
}

/** The manifest of a job's newest checkpoint; `undefined` where it has none that can be read. */
export async function readNewestManifest(
  store: ObjectStore,
  jobId: string,
  parse: Parse<Manifest>,
): Promise<Manifest | undefined> {
  const [checkpoint] = await listCheckpoints(store, jobId)
  if (checkpoint === undefined) return undefined
  return readManifest(store, { jobId, checkpoint }, parse).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === 'BAD_DOCUMENT') return undefined
    throw error
  })
}

/** A file that is not what the manifest says, and how. */
export interface BadFile {
  path: string
  reason: string
}

/**
 * Reads every file of a checkpoint and compares it with the manifest. Answers the files that are wrong, none when it is
 * good. Files pass through `directory` one at a time.
 */
export async function verifyCheckpoint(
  store: ObjectStore,
  at: { jobId: string; checkpoint: Checkpoint; manifest: Manifest },
  directory: string,
): Promise<BadFile[]> {
  const { jobId, checkpoint, manifest } = at
  if (manifest.jobId !== jobId || checkpointId(manifest.step, manifest.attempt) !== checkpoint.id) {
    return [{ path: manifestName(), reason: 'belongs to another checkpoint' }]
  }
  const bad: BadFile[] = []
  for (const file of manifest.files) {
    const copy = join(directory, `verify-${randomUUID()}`)
    try {
      const key = `${folderOf(jobId, checkpoint)}${filesFolder()}${file.path}`
      const reason = (await store.getFile(key, copy)) ? await faultOf(copy, file) : 'is missing'
      if (reason !== undefined) bad.push({ path: file.path, reason })
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'BAD_KEY') throw error
      bad.push({ path: file.path, reason: 'has a path that no checkpoint may have' })
    } finally {
      await rm(copy, { force: true })
    }
  }
  return bad
}

async function faultOf(path: string, file: ManifestFile): Promise<string | undefined> {
  const { size } = await stat(path)
  if (size !== file.sizeBytes) return `has ${size} bytes instead of ${file.sizeBytes}`
  const parts = await partDigests(path, size)
  const wrong = parts.findIndex((part, index) => part !== file.parts[index])
  if (wrong !== -1) return `differs in part ${wrong + 1} of ${parts.length}`
  if (parts.length !== file.parts.length) return `has ${parts.length} parts instead of ${file.parts.length}`
  const digest = sha256(Buffer.from(parts.join(''), 'hex'))
  return digest === file.digest ? undefined : 'has parts that do not make up its digest'
}

function sha256(content: string | Buffer): string {
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

/** What thinning out leaves alone. */
export interface Retention {
  /** How many of the newest checkpoints stay; at least one. */
  keep: number
  /** Ids that stay in any case: whatever a live attempt was restored from. */
  protectedIds: readonly string[]
  /** Ids of checkpoints that were restored or verified; the newest of them stays, should the newer ones prove bad. */
  goodIds: readonly string[]
}

/** Which of the complete checkpoints, newest first, may go. */
export function expendable(complete: readonly Checkpoint[], retention: Retention): Checkpoint[] {
  const newestGood = complete.find((checkpoint) => retention.goodIds.includes(checkpoint.id))
  const kept = new Set([...retention.protectedIds, newestGood?.id])
  return complete.slice(Math.max(1, retention.keep)).filter((checkpoint) => !kept.has(checkpoint.id))
}

/**
 * Removes the checkpoints that a job no longer needs, and what broken uploads of attempts that are over left behind.
 * Answers the ids removed.
 *
 * @param retention what stays; `isOver` tells whether an attempt can no longer upload
 */
export async function thinOutCheckpoints(
  store: ObjectStore,
  jobId: string,
  retention: Retention & { isOver: (attempt: number) => boolean },
): Promise<string[]> {
  const { complete, partial } = await surveyCheckpoints(store, jobId)
  const leftovers = partial.filter(
    ({ id, attempt }) => retention.isOver(attempt) && !retention.protectedIds.includes(id),
  )
  const going = [...expendable(complete, retention), ...leftovers]
  for (const checkpoint of going) await removeCheckpoint(store, jobId, checkpoint)
  return going.map((checkpoint) => checkpoint.id)
}

/** The manifest goes first: from then on the checkpoint does not exist, whatever is left of it. */
async function removeCheckpoint(store: ObjectStore, jobId: string, checkpoint: Checkpoint): Promise<void> {
  await store.delete(manifestKey(jobId, checkpoint))
  const keys: string[] = []
  for await (const object of store.list(folderOf(jobId, checkpoint))) keys.push(object.key)
  await eachOf(keys, (key) => store.delete(key))
}

function folderOf(jobId: string, checkpoint: Checkpoint): string {
  return layout.checkpoint(jobId, checkpoint.step, checkpoint.attempt)
}

function manifestKey(jobId: string, checkpoint: Checkpoint): string {
  return `${folderOf(jobId, checkpoint)}${manifestName()}`
}
