import { CODES } from '../core/errors'
import { BackendError } from '../backends/errors'
import type { CopyCheckpointInput, CopyOutcome, OrchestratorActivities } from '../core/activities'
import { byNewest, type Checkpoint, type CheckpointSource } from '../core/job/checkpoint'
import { CHECKPOINT_PARSERS, parseManifest } from '../intake/documents'
import { goodCheckpoints } from '../storage/checkpoints'
import { copyCheckpoint, readCopied } from '../storage/copy-checkpoint'
import { putRecord } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import { beating } from './heartbeat'

interface Deps {
  store: ObjectStore
  now: () => number
}

export function createCopyingActivities(deps: Deps): Pick<OrchestratorActivities, 'copyCheckpoint'> {
  return { copyCheckpoint: (input) => beating((signal) => copyOnRecord(deps, input, signal)) }
}

/** Copies the checkpoint from which a job resumes into the job's folder, once, and records which one it was. */
async function copyOnRecord(
  { store, now }: Deps,
  input: CopyCheckpointInput,
  signal: AbortSignal,
): Promise<CopyOutcome> {
  const { jobId, recordSeq } = input
  const { copied, damaged } = await copyNewest(store, input, signal)
  const { checkpoint, source } = copied
  const skipped = damaged.length === 0 ? '' : `; skipped as damaged: ${damaged.join(', ')}`
  const entry = await putRecord(store, jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'copied',
    summary: `Resumes from step ${checkpoint.step} of ${source.jobId} (${source.checkpoint})${skipped}`,
    data: { checkpoint, source, damaged },
  })
  return entry.data
}

interface Copied {
  copied: { checkpoint: Checkpoint; source: CheckpointSource }
  damaged: string[]
}

async function copyNewest(
  store: ObjectStore,
  { jobId, source }: CopyCheckpointInput,
  signal: AbortSignal,
): Promise<Copied> {
  const earlier = await readCopied(store, jobId, parseManifest)
  if (earlier !== undefined) return { copied: earlier, damaged: [] }
  const damaged: string[] = []
  for await (const good of goodCheckpoints(store, source.jobId, CHECKPOINT_PARSERS)) {
    // Ignore what came after the submission: its owner was not shown it.
    if (byNewest(good.checkpoint, source.checkpoint) < 0) continue
    const from = { ...good, jobId: source.jobId }
    const bad = await copyCheckpoint(store, { from, toJobId: jobId }, signal)
    if (bad.length > 0) {
      damaged.push(`${good.checkpoint.id} (${bad[0]!.path} ${bad[0]!.reason})`)
      continue
    }
    const copied = await readCopied(store, jobId, parseManifest)
    if (copied !== undefined) return { copied, damaged }
  }
  const why = damaged.length === 0 ? 'they were removed' : `damaged: ${damaged.join(', ')}`
  throw new BackendError({
    class: 'invalid',
    code: CODES.noCheckpoint,
    message: `${source.jobId} has no usable checkpoint left (${why}).`,
    hint: `Start over with: crucible submit --from ${source.jobId} --fresh`,
  })
}
