/** SHA-256 is taken per part of this size, so that both directions of a transfer run in parallel. */
export const CHECKPOINT_PART_BYTES = 16 * 1024 * 1024

/** One file of a checkpoint. */
export interface ManifestFile {
  /** Relative to the checkpoint directory, with forward slashes. */
  path: string
  sizeBytes: number
  /** Hex SHA-256 of each part of `CHECKPOINT_PART_BYTES` in order; an empty file has none. */
  parts: string[]
  /** Hex SHA-256 over the part digests, as raw bytes, in order. */
  digest: string
  /** Permission bits, so that an executable stays one. */
  mode: number
}

/** A symbolic link inside a checkpoint, such as `latest -> checkpoint-500`. */
export interface ManifestLink {
  /** Relative to the checkpoint directory, with forward slashes. */
  path: string
  /** Relative to the link's own folder; never leads out of the checkpoint directory. */
  target: string
}

/** A checkpoint of another job, by that job's id and its own. */
export interface CheckpointSource {
  jobId: string
  /** `Checkpoint.id` */
  checkpoint: string
}

/** The list of a checkpoint's files, written last and put if absent. A checkpoint without a manifest does not exist. */
export interface Manifest {
  version: 1
  jobId: string
  /** From 1; `COPIED_BY` for a checkpoint that was copied from another job. */
  attempt: number
  step: number
  /** False where the step is only a running number, because neither file names nor progress told one. */
  isStepKnown: boolean
  createdAtMs: number
  totalBytes: number
  /** How long its files took on their way up; missing from runners of before. */
  uploadMs?: number
  files: ManifestFile[]
  /** Made again after the files; missing when there are none. */
  links?: ManifestLink[]
  /** The checkpoint that this one is a copy of; missing where an attempt of the job made it. */
  copiedFrom?: CheckpointSource
  /** What `CRUCIBLE_RESUME_FROM` points at, relative to the checkpoint directory: the newest entry, or `.`. */
  resumePath: string
  /**
   * Hex SHA-256 of the bytes of the document before the name of this field, the last one; missing from runners of before,
   * whose manifests are believed without it.
   */
  sha256?: string
}

/** A complete checkpoint as it is listed. */
export interface Checkpoint {
  /** `<step, 12 digits>-<attempt>`, also its folder's name. */
  id: string
  step: number
  attempt: number
}

/** Stands for an attempt in the id of a checkpoint that the job got from another job before its first attempt. */
export const COPIED_BY = 0

export function checkpointId(step: number, attempt: number): string {
  return `${String(step).padStart(12, '0')}-${attempt}`
}

/** The checkpoint that an id names, or `undefined` when it is none. */
export function parseCheckpointId(id: string): Checkpoint | undefined {
  const match = /^(\d{12})-(\d+)$/.exec(id)
  return match === null ? undefined : { id, step: Number(match[1]), attempt: Number(match[2]) }
}

/** Code of the failure of a job whose source has no checkpoint left that is good. */
export const NO_CHECKPOINT = 'NO_CHECKPOINT'

/**
 * Newest first: highest step, then highest attempt. A copy from another job comes after everything that the job saved itself, also
 * when its step is higher: a job that fine-tunes may count its steps from 0 again.
 */
export function byNewest(a: Checkpoint, b: Checkpoint): number {
  return isOwn(b) - isOwn(a) || b.step - a.step || b.attempt - a.attempt
}

function isOwn({ attempt }: Checkpoint): number {
  return attempt === COPIED_BY ? 0 : 1
}
