import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Gaps } from '../../storage/json'
import { hasRecord } from '../../storage/record'
import type { Checkpoint, CheckpointState, Evidence, Manifest } from '../../core/job/checkpoint'
import { parseManifest } from '../../intake/documents'
import {
  isManifestOf,
  listCheckpoints,
  readManifest,
  verifyCheckpoint,
  type BadFile,
} from '../../storage/checkpoints'
import { eachOf } from '../../storage/parallel'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { noSuchJob } from './read-view'

/** A checkpoint; manifest data is null if the manifest is unreadable. @public */
export interface CheckpointView extends Checkpoint {
  isStepKnown: boolean
  state: CheckpointState | null
  evidence: Evidence | null
  /** Number of versions of its manifest. */
  revision: number | null
  epoch: number | null
  files: number | null
  sizeBytes: number | null
  /** Time of the last write to its newest file. */
  savedAtMs: number | null
  createdAtMs: number | null
}

/** The result of comparing a checkpoint with its manifest. @public */
export interface CheckpointVerdict extends Checkpoint {
  isGood: boolean
  badFiles: BadFile[]
}

/** A job's checkpoints, newest first, whatever their state. */
export async function checkpointsOf(context: Context, jobId: string): Promise<CheckpointView[]> {
  return eachOf(await listOf(context, jobId), async (checkpoint) => {
    const manifest = await manifestOf(context, jobId, checkpoint)
    return {
      ...checkpoint,
      isStepKnown: manifest?.isStepKnown ?? false,
      state: manifest?.state ?? null,
      evidence: manifest?.evidence ?? null,
      revision: manifest?.revision ?? null,
      epoch: manifest?.epoch ?? null,
      files: manifest?.files.length ?? null,
      sizeBytes: manifest?.totalBytes ?? null,
      savedAtMs: manifest?.savedAtMs ?? null,
      createdAtMs: manifest?.createdAtMs ?? null,
    }
  })
}

/** Reads every file of one checkpoint, or of all, and compares its digest. Throws `not-found` for an unknown id. */
export async function verifyCheckpoints(
  context: Context,
  jobId: string,
  checkpointId?: string,
): Promise<CheckpointVerdict[]> {
  const all = await listOf(context, jobId)
  const wanted = checkpointId === undefined ? all : all.filter(({ id }) => id === checkpointId)
  if (checkpointId !== undefined && wanted.length === 0) {
    throw new CrucibleError('not-found', `${jobId} has no checkpoint ${checkpointId}.`, {
      hint:
        all.length === 0 ? 'This job has no checkpoints.' : `It has ${all.map(({ id }) => id).join(', ')}.`,
    })
  }
  const folder = await mkdtemp(join(tmpdir(), 'crucible-verify-'))
  try {
    const verdicts: CheckpointVerdict[] = []
    for (const checkpoint of wanted) {
      const badFiles = await badFilesOf(context, { jobId, checkpoint }, folder)
      verdicts.push({ ...checkpoint, isGood: badFiles.length === 0, badFiles })
    }
    return verdicts
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function badFilesOf(
  context: Context,
  { jobId, checkpoint }: { jobId: string; checkpoint: Checkpoint },
  folder: string,
): Promise<BadFile[]> {
  const manifest = await manifestOf(context, jobId, checkpoint)
  if (manifest === undefined) return [{ path: 'manifest.json', reason: 'cannot be read' }]
  return verifyCheckpoint(context.store, { jobId, checkpoint, manifest }, folder)
}

async function listOf(context: Context, jobId: string): Promise<Checkpoint[]> {
  if (!(await hasRecord(context.store, jobId))) throw await noSuchJob(context, jobId)
  return listCheckpoints(context.store, jobId)
}

async function manifestOf(
  { store }: Context,
  jobId: string,
  checkpoint: Checkpoint,
): Promise<Manifest | undefined> {
  const manifest = await new Gaps().read('', () => readManifest(store, { jobId, checkpoint }, parseManifest))
  return manifest !== undefined && isManifestOf(manifest, jobId, checkpoint) ? manifest : undefined
}
