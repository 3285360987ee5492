/** SHA-256 is taken per part of this size, so that both directions of a transfer run in parallel. */
export const CHECKPOINT_PART_BYTES = 16 * 1024 * 1024

/**
 * How many of the newest complete checkpoints of a running job stay, unless its `checkpoint.keep` says otherwise; and, where that is no less,
 * how many provisional ones that are newer than every complete one. The order says it to the machine.
 */
export const CHECKPOINTS_KEPT = 3
/** The same once the job has ended: the one to go on from, and the one before it. */
export const CHECKPOINTS_KEPT_AT_END = 2

/**
 * What is known of a checkpoint. `complete`: proven by evidence. The two others are provisional. `settled`: no proof, but
 * the program trained on after it, or it stayed unchanged for long. `quiet`: nothing in it changed for `quietMs`.
 */
export const CHECKPOINT_STATES = ['complete', 'settled', 'quiet'] as const
export type CheckpointState = (typeof CHECKPOINT_STATES)[number]

/** What makes the runner believe the state of a checkpoint. */
export const EVIDENCE_KINDS = [
  /** The program said so, with `crucible_job`. */
  'declared',
  /** A file that `checkpoint.complete` of the job names is there. */
  'marker',
  /** A known file format proves itself. */
  'format',
  /** The next checkpoint was begun. */
  'next',
  /** The program ended in good order. */
  'end',
  /** The program trained on after it. */
  'went-on',
  /** Nothing changed for a while. */
  'quiet',
] as const
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

export interface Evidence {
  kind: EvidenceKind
  /** One clause for people, such as "trainer_state.json is there". */
  text: string
}

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
  /**
   * Where the bytes are, relative to the job's checkpoint folder: `<id>/files/<path>` or `<id>/files.<revision>/<path>`;
   * `<own id>/files/<path>` when missing. A file that has not changed since an earlier checkpoint is not uploaded again.
   */
  storedAt?: string
  /** When it was last written; set again when it is restored, as programs look for the newest file. */
  modifiedAtMs?: number
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

/**
 * The list of a checkpoint's files, written last and put if absent. A checkpoint without a manifest does not exist. One that
 * grows, or of which more becomes known, gets another manifest: the highest revision that can be read holds.
 */
export interface Manifest {
  version: 1
  jobId: string
  /** From 1; `COPIED_BY` for a checkpoint that was copied from another job. */
  attempt: number
  /** From 1; the same as in the manifest's name. */
  revision: number
  state: CheckpointState
  evidence: Evidence
  step: number
  /** False where the number in the id is only a running number or an epoch, because nothing told the step. */
  isStepKnown: boolean
  /** Where names or contents of the files tell one. */
  epoch?: number
  /** When this manifest was written. */
  createdAtMs: number
  /** When the newest file was last written, by the clock of the machine's file system. */
  savedAtMs: number
  /** How long the program took to write it, as far as the runner saw. */
  saveMs?: number
  totalBytes: number
  /** How long its files took to upload. */
  uploadMs?: number
  files: ManifestFile[]
  /** Made again after the files; missing when there are none. */
  links?: ManifestLink[]
  /** The checkpoint that this one is a copy of; missing where an attempt of the job made it. */
  copiedFrom?: CheckpointSource
  /** What `CRUCIBLE_RESUME_FROM` points at, relative to the checkpoint directory: the newest entry, or `.`. */
  resumePath: string
  /**
   * Hex SHA-256 of the bytes of the document before the name of this field, the last one. A manifest without it is
   * read as it is.
   */
  sha256?: string
}

/** A checkpoint as it is listed. @public */
export interface Checkpoint {
  /** `<step, 12 digits>-<attempt>`, also its folder's name. */
  id: string
  /** Orders the checkpoints of a job; a step of the program unless `isStepKnown` is false. */
  step: number
  attempt: number
  /** As in its manifest; missing means true, or that the manifest was not read. */
  isStepKnown?: boolean
}

/** What may ask the program to save when its machine is about to go. */
export const SAVE_SIGNALS = ['SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGINT'] as const
export type SaveSignal = (typeof SAVE_SIGNALS)[number]

/** Something that a person should mend, about checkpoints. */
export interface RunnerWarning {
  /** In lower-case words with dashes, such as `no-checkpoint`. */
  kind: string
  /** Full sentences: the cause and what to do. */
  text: string
  /** By the runner's wall clock. */
  sinceMs: number
}

/** What beats and results say of checkpoints beside their ids. */
export interface CheckpointNews {
  /** Why `restoredFrom` and no other, in one clause; missing where nothing was restored. */
  restoredBecause?: string
  /** The state of `checkpoint`. */
  checkpointState?: CheckpointState
  /** The most serious one there is. */
  warning?: RunnerWarning | null
}

/** What became of a restore. */
export const RESTORE_OUTCOMES = [
  'trying',
  /** The program made a new step after it, or saved anew. */
  'went-on',
  /** The program failed before that. */
  'failed',
] as const
export type RestoreOutcome = (typeof RESTORE_OUTCOMES)[number]

export interface Restore {
  checkpoint: Checkpoint
  /** Of its manifest. */
  revision: number
  state: CheckpointState
  /** Why this one, in one clause. */
  why: string
  atMs: number
  outcome: RestoreOutcome
  /** How the program failed. */
  message: string | null
}

/** `restores.json`: what the attempt was restored from, in order of time. Overwritten by the runner; read by later attempts, too. */
export interface Restores {
  version: 1
  attemptId: string
  restores: Restore[]
}

/** Stands for an attempt in the id of a checkpoint that the job got from another job before its first attempt. */
export const COPIED_BY = 0

/** Grants are written with this number: a checkpoint's id begins with so many digits. */
export const CHECKPOINT_STEP_DIGITS = 12
const CHECKPOINT_ID = new RegExp(`^(\\d{${CHECKPOINT_STEP_DIGITS}})-(\\d+)$`)

export function checkpointId(step: number, attempt: number): string {
  return `${String(step).padStart(CHECKPOINT_STEP_DIGITS, '0')}-${attempt}`
}

/** The checkpoint that an id names, or `undefined` when it is none. */
export function parseCheckpointId(id: string): Checkpoint | undefined {
  const match = CHECKPOINT_ID.exec(id)
  return match === null ? undefined : { id, step: Number(match[1]), attempt: Number(match[2]) }
}

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
