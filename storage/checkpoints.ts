import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CODES } from '../core/errors'
import {
  byNewest,
  checkpointId,
  parseCheckpointId,
  type Checkpoint,
  type CheckpointState,
  type Manifest,
  type ManifestFile,
  type Restores,
} from '../core/job/checkpoint'
import { faultOf, sha256 } from './checkpoint-digests'
import { ignoreBadDocument, isUnreadable, readDocument, type Parse } from './json'
import { filesFolder, layout, manifestName, parseManifestName } from './layout'
import { eachOf } from './parallel'
import { readRestoreHistory } from './restores'
import { StoreError, type ObjectStore } from './store'

/** One manifest of a checkpoint, as the store lists it. */
interface ListedManifest {
  revision: number
  /** Time of the put by the store's clock. */
  putAtMs: number
}

export interface ListedCheckpoint extends Checkpoint {
  /** Highest revision first; never empty. */
  manifests: ListedManifest[]
}

/** The content of a job's checkpoint folder. */
export interface CheckpointSurvey {
  /** Folders with a manifest: the checkpoints that exist, whatever their state. Newest first. */
  existing: ListedCheckpoint[]
  /** Folders without one: being uploaded, left over from an upload, or being removed. Newest first. */
  partial: Checkpoint[]
}

export async function surveyCheckpoints(store: ObjectStore, jobId: string): Promise<CheckpointSurvey> {
  const listed = await eachOf(await checkpointFolders(store, jobId), async (checkpoint) => ({
    ...checkpoint,
    manifests: await listManifests(store, jobId, checkpoint),
  }))
  return {
    existing: listed.filter(({ manifests }) => manifests.length > 0),
    partial: listed.filter(({ manifests }) => manifests.length === 0).map(plain),
  }
}

/** Newest first. */
async function checkpointFolders(store: ObjectStore, jobId: string): Promise<Checkpoint[]> {
  const folders = await store.listFolders(layout.checkpoints(jobId))
  return folders
    .map(parseCheckpointId)
    .filter((checkpoint) => checkpoint !== undefined)
    .sort(byNewest)
}

async function listManifests(
  store: ObjectStore,
  jobId: string,
  checkpoint: Checkpoint,
): Promise<ListedManifest[]> {
  const folder = checkpointFolder(jobId, checkpoint)
  const found: ListedManifest[] = []
  // Lists the manifests only, because a checkpoint may have any number of files.
  for await (const { key, modifiedAtMs } of store.list(`${folder}${MANIFEST_PREFIX}`)) {
    const revision = parseManifestName(key.slice(folder.length))
    if (revision !== undefined) found.push({ revision, putAtMs: modifiedAtMs })
  }
  return found.sort((a, b) => b.revision - a.revision)
}

const MANIFEST_PREFIX = 'manifest.'

function plain({ id, step, attempt }: Checkpoint): Checkpoint {
  return { id, step, attempt }
}

/**
 * Returns the job's checkpoints that have a manifest, newest first, in any state. An id in `known` had a manifest at an earlier listing and
 * keeps it until its folder disappears. The ids of the others are added to `known`.
 */
export async function listCheckpoints(
  store: ObjectStore,
  jobId: string,
  known = new Set<string>(),
): Promise<Checkpoint[]> {
  const existing = await eachOf(await checkpointFolders(store, jobId), async (checkpoint) => {
    if (!known.has(checkpoint.id) && (await listManifests(store, jobId, checkpoint)).length === 0) return []
    known.add(checkpoint.id)
    return [checkpoint]
  })
  return existing.flat()
}

/**
 * Returns the readable manifest of a checkpoint with the highest revision, or `undefined` when the checkpoint has none and so does not
 * exist. Throws a `StoreError` with code `BAD_DOCUMENT` when all its manifests are unreadable.
 */
export async function readManifest(
  store: ObjectStore,
  at: { jobId: string; checkpoint: Checkpoint },
  parse: Parse<Manifest>,
): Promise<Manifest | undefined> {
  let complaint: unknown
  for (const { revision } of await listManifests(store, at.jobId, at.checkpoint)) {
    try {
      const manifest = await readRevision(store, { ...at, revision }, parse)
      if (manifest !== undefined) return manifest
    } catch (error) {
      if (!isUnreadable(error)) throw error
      complaint ??= error
    }
  }
  if (complaint !== undefined) throw complaint as Error
  return undefined
}

/** Returns one manifest of a checkpoint; otherwise like `readManifest`. */
export async function readRevision(
  store: ObjectStore,
  { jobId, checkpoint, revision }: { jobId: string; checkpoint: Checkpoint; revision: number },
  parse: Parse<Manifest>,
): Promise<Manifest | undefined> {
  return readDocument(store, manifestKey(jobId, checkpoint, revision), (text) => {
    const manifest = parse(text)
    const before = text.slice(0, Math.max(0, text.lastIndexOf('"sha256"')))
    if (manifest.sha256 !== undefined && manifest.sha256 !== sha256(before)) throw new Error('it is damaged')
    if (manifest.revision !== revision) throw new Error(`it claims to be revision ${manifest.revision}`)
    return manifest
  })
}

/** The readers of the documents about checkpoints. */
export interface CheckpointParsers {
  manifest: Parse<Manifest>
  restores: Parse<Restores>
}

/** A checkpoint with a readable manifest that belongs to it. */
export interface GoodCheckpoint {
  checkpoint: Checkpoint
  manifest: Manifest
}

/**
 * Yields the job's checkpoints that a program can resume from according to their manifests, in the order in which to try them: complete
 * before provisional, and last those after which programs only failed. Newest first among equals.
 */
export async function* goodCheckpoints(
  store: ObjectStore,
  jobId: string,
  parse: CheckpointParsers,
): AsyncGenerator<GoodCheckpoint> {
  const { failed } = await readRestoreHistory(store, jobId, parse.restores)
  const later: GoodCheckpoint[] = []
  for (const checkpoint of await listCheckpoints(store, jobId)) {
    const manifest = await readManifest(store, { jobId, checkpoint }, parse.manifest).catch(ignoreBadDocument)
    if (manifest === undefined || !isManifestOf(manifest, jobId, checkpoint)) continue
    const good = { checkpoint: withStepKnown(checkpoint, manifest), manifest }
    if (manifest.state === 'complete' && !failed.has(checkpoint.id)) yield good
    else later.push(good)
  }
  const rank = ({ checkpoint: { id }, manifest: { state } }: GoodCheckpoint): number =>
    (failed.has(id) ? 10 : 0) + TRUST.indexOf(state)
  // A stable sort: the newest stay first among equals.
  yield* later.sort((a, b) => rank(a) - rank(b))
}

const TRUST: readonly CheckpointState[] = ['complete', 'settled', 'quiet']

/** Returns the newest complete checkpoint that a program can resume from, or a provisional one if no complete one exists. */
export async function newestGoodCheckpoint(
  store: ObjectStore,
  jobId: string,
  parse: CheckpointParsers,
): Promise<GoodCheckpoint | undefined> {
  for await (const good of goodCheckpoints(store, jobId, parse)) return good
  return undefined
}

/** Returns the manifest of a job's newest checkpoint; `undefined` without a readable one. */
export async function readNewestManifest(
  store: ObjectStore,
  jobId: string,
  parse: Parse<Manifest>,
): Promise<Manifest | undefined> {
  const [checkpoint] = await listCheckpoints(store, jobId)
  if (checkpoint === undefined) return undefined
  return readManifest(store, { jobId, checkpoint }, parse).catch(ignoreBadDocument)
}

/** Returns the job's newest checkpoint, whatever its state, with its manifest's step; `undefined` without any. */
export async function newestCheckpoint(
  store: ObjectStore,
  jobId: string,
  parse: Parse<Manifest>,
): Promise<Checkpoint | undefined> {
  const [checkpoint] = await listCheckpoints(store, jobId)
  if (checkpoint === undefined) return undefined
  const manifest = await readManifest(store, { jobId, checkpoint }, parse).catch(ignoreBadDocument)
  return manifest === undefined ? checkpoint : withStepKnown(checkpoint, manifest)
}

/** Adds the manifest's flag that says whether the number in the id is a step. */
function withStepKnown(checkpoint: Checkpoint, { isStepKnown }: Manifest): Checkpoint {
  return isStepKnown ? checkpoint : { ...checkpoint, isStepKnown }
}

export function isManifestOf(manifest: Manifest, jobId: string, { id }: Checkpoint): boolean {
  return manifest.jobId === jobId && checkpointId(manifest.step, manifest.attempt) === id
}

/** A file that differs from the manifest, and how. */
export interface BadFile {
  path: string
  reason: string
}

/**
 * Reads every file of a checkpoint and compares it with the manifest. Returns the files that differ, none for a good checkpoint. Files pass
 * through `directory` one at a time.
 */
export async function verifyCheckpoint(
  store: ObjectStore,
  at: { jobId: string; checkpoint: Checkpoint; manifest: Manifest },
  directory: string,
): Promise<BadFile[]> {
  const { jobId, checkpoint, manifest } = at
  if (!isManifestOf(manifest, jobId, checkpoint)) {
    return [{ path: manifestName(manifest.revision), reason: 'belongs to another checkpoint' }]
  }
  const bad: BadFile[] = []
  for (const file of manifest.files) {
    const copy = join(directory, `verify-${randomUUID()}`)
    try {
      const key = checkpointFileKey(jobId, checkpoint, file)
      const reason = (await store.getFile(key, copy)) ? await faultOf(copy, file) : 'is missing'
      if (reason !== undefined) bad.push({ path: file.path, reason })
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== CODES.badKey) throw error
      bad.push({ path: file.path, reason: 'has an invalid path' })
    } finally {
      await rm(copy, { force: true })
    }
  }
  return bad
}

/** Returns the key of a checkpoint's file: in its own folder, or in that of an earlier checkpoint with the same file. */
export function checkpointFileKey(
  jobId: string,
  checkpoint: Checkpoint,
  { path, storedAt }: Pick<ManifestFile, 'path' | 'storedAt'>,
): string {
  if (storedAt !== undefined) return `${layout.checkpoints(jobId)}${storedAt}`
  return `${checkpointFolder(jobId, checkpoint)}${filesFolder()}${path}`
}

export function checkpointFolder(jobId: string, { step, attempt }: Checkpoint): string {
  return layout.checkpoint(jobId, step, attempt)
}

export function manifestKey(jobId: string, checkpoint: Checkpoint, revision: number): string {
  return `${checkpointFolder(jobId, checkpoint)}${manifestName(revision)}`
}
