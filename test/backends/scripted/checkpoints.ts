import { createHash } from 'node:crypto'
import {
  byNewest,
  checkpointId,
  parseCheckpointId,
  type Checkpoint,
  type Manifest,
  type ManifestFile,
} from '../../../core/job/checkpoint'
import { filesFolder, layout, manifestName } from '../../../storage/layout'
import { COMPLETE } from '../../support/manifests'
import type { ObjectStore } from '../../../storage/store'

/** What the scripted workload trains. */
export interface State {
  step: number
  weights: Buffer
}

export const UNTRAINED: State = { step: 0, weights: Buffer.alloc(32) }

/** Trains on to a step. Every weight depends on all steps before: a wrong resume shows in the end. */
export function trained({ step, weights }: State, toStep: number): State {
  let next = weights
  for (let at = step; at < toStep; at++) {
    next = createHash('sha256').update(next).update(String(at)).digest()
  }
  return { step: Math.max(step, toStep), weights: next }
}

/** The weights after so many undisturbed steps. */
export function weightsAfter(steps: number): Buffer {
  return trained(UNTRAINED, steps).weights
}

interface Saving {
  store: ObjectStore
  jobId: string
  attempt: number
  nowMs: number
  torn?: 'no-manifest' | 'wrong-bytes'
}

/** Uploads a checkpoint as the runner does: files, then the manifest, conditional writes. */
export async function saveCheckpoint(
  state: State,
  { store, jobId, attempt, nowMs, torn }: Saving,
): Promise<Checkpoint> {
  const { step, weights } = state
  const path = `checkpoint-${step}.bin`
  const folder = layout.checkpoint(jobId, step, attempt)
  await store.put(`${folder}${filesFolder()}${path}`, torn === 'wrong-bytes' ? weights.subarray(1) : weights)
  const manifest: Manifest = {
    version: 1,
    jobId,
    attempt,
    step,
    isStepKnown: true,
    createdAtMs: nowMs,
    ...COMPLETE,
    totalBytes: weights.length,
    files: [fileOf(path, weights)],
    resumePath: path,
  }
  if (torn !== 'no-manifest') await store.putIfAbsent(`${folder}${manifestName()}`, JSON.stringify(manifest))
  return { id: checkpointId(step, attempt), step, attempt }
}

/** One part: scripted checkpoints are far smaller than a part may be. */
function fileOf(path: string, body: Buffer): ManifestFile {
  const part = createHash('sha256').update(body).digest()
  const digest = createHash('sha256').update(part).digest('hex')
  return { path, sizeBytes: body.length, parts: [part.toString('hex')], digest, mode: 0o644 }
}

/** What a checkpoint consists of; undefined without a manifest, or when its files were removed. */
async function contentOf(
  store: ObjectStore,
  jobId: string,
  { step, attempt }: Checkpoint,
): Promise<{ weights: Buffer; isWhole: boolean } | undefined> {
  const folder = layout.checkpoint(jobId, step, attempt)
  const text = await store.get(`${folder}${manifestName()}`)
  if (text === undefined) return undefined
  const [file] = (JSON.parse(text.toString()) as Manifest).files
  const weights = await store.get(`${folder}${filesFolder()}${file!.path}`)
  return weights && { weights, isWhole: fileOf(file!.path, weights).digest === file!.digest }
}

/** Whether the files of a checkpoint are there and differ from its manifest. */
export async function isDamaged(store: ObjectStore, jobId: string, checkpoint: Checkpoint): Promise<boolean> {
  return (await contentOf(store, jobId, checkpoint))?.isWhole === false
}

/** The newest checkpoint of a job whose files all have the right digests; damaged ones are skipped. */
export async function restoreNewest(
  store: ObjectStore,
  jobId: string,
): Promise<{ checkpoint: Checkpoint; state: State } | undefined> {
  const ids = await store.listFolders(layout.checkpoints(jobId))
  const checkpoints = ids.flatMap((id) => parseCheckpointId(id) ?? []).sort(byNewest)
  for (const checkpoint of checkpoints) {
    const content = await contentOf(store, jobId, checkpoint)
    if (content?.isWhole === true)
      return { checkpoint, state: { step: checkpoint.step, weights: content.weights } }
  }
  return undefined
}
