/** SHA-256 is taken per part of this size, so that both directions of a transfer run in parallel. */
export const CHECKPOINT_PART_BYTES = 16 * 1024 * 1024

/**
 * Number of newest complete checkpoints that a running job keeps by default (`checkpoint.keep`), and the least number of provisional ones
 * newer than every complete one. The order passes it to the machine.
 */
export const CHECKPOINTS_KEPT = 3
/** Number of complete checkpoints kept after the job has ended: the one to continue from, and its predecessor. */
export const CHECKPOINTS_KEPT_AT_END = 2

/**
 * Evidence for a checkpoint. `complete`: proven. `settled` (provisional): unproven, but the program trained on after it or left it
 * unchanged for long. `quiet` (provisional): unchanged for `quietMs`.
 */
export const CHECKPOINT_STATES = ['complete', 'settled', 'quiet'] as const
export type CheckpointState = (typeof CHECKPOINT_STATES)[number]

/** The evidence for the state of a checkpoint. */
export const EVIDENCE_KINDS = [
  /** The program said so, with `crucible_job`. */
  'declared',
  /** A file named by the job's `checkpoint.complete` exists. */
  'marker',
  /** A known file format proves itself. */
  'format',
  /** The next checkpoint was started. */
  'next',
  /** The program ended normally. */
  'end',
  /** The program continued training after it. */
  'went-on',
  /** Unchanged for a while. */
  'quiet',
] as const
type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

export interface Evidence {
  kind: EvidenceKind
  /** Evidence as one clause for people, such as "trainer_state.json is there". */
  text: string
}

/** A file of a checkpoint. */
export interface ManifestFile {
  /** Path relative to the checkpoint directory, with forward slashes. */
  path: string
  sizeBytes: number
  /** Hex SHA-256 of each part of `CHECKPOINT_PART_BYTES` in order; an empty file has none. */
  parts: string[]
  /** Hex SHA-256 over the part digests, as raw bytes, in order. */
  digest: string
  /** Permission bits, so that an executable stays one. */
  mode: number
  /**
   * Location of the bytes relative to the job's checkpoint folder: `<id>/files/<path>` or `<id>/files.<revision>/<path>`, with
   * `.long/<sha256>` instead of a path that is too long for a key; `<own id>/files/<path>` if missing. A file that has not changed since an earlier checkpoint is not uploaded again.
   */
  storedAt?: string
  /** Time of the last write; set again on restore, because programs look for the newest file. */
  modifiedAtMs?: number
  /** Nanoseconds of that time within its millisecond. */
  modifiedNs?: number
  /**
   * True for a file of an older numbered file or folder that the program still kept, such as its best checkpoint: restored, but no part of
   * the proof.
   */
  isOlder?: boolean
  /** The path of another file of the checkpoint, for which this is a further name: a hard link. */
  linkedTo?: string
}

/** Permissions and time of a folder of a checkpoint, or of a file or folder of the outputs. */
export interface TreeEntry {
  path: string
  /** Permission bits. */
  mode: number
  modifiedAtMs?: number
  modifiedNs?: number
}

/** A symbolic link inside a checkpoint, such as `latest -> checkpoint-500`. */
export interface ManifestLink {
  /** Path relative to the checkpoint directory, with forward slashes. */
  path: string
  /** Path relative to the link's own folder; never outside the checkpoint directory. */
  target: string
}

/** A checkpoint of another job, by the id of that job and its own id. */
export interface CheckpointSource {
  jobId: string
  /** `Checkpoint.id` */
  checkpoint: string
}

/**
 * List of a checkpoint's files, written last and put if absent. A checkpoint without a manifest does not exist. A checkpoint that grows, or
 * is proven later, gets another manifest; the highest readable revision counts.
 */
export interface Manifest {
  version: 1
  jobId: string
  /** Number of the attempt, from 1; `COPIED_BY` for a checkpoint that was copied from another job. */
  attempt: number
  /** Revision from 1, as in the manifest's name. */
  revision: number
  state: CheckpointState
  evidence: Evidence
  step: number
  /** False if the number in the id is only a running number or an epoch, because the step is unknown. */
  isStepKnown: boolean
  /** Epoch; missing unless names or contents of the files show one. */
  epoch?: number
  /** When this manifest was written. */
  createdAtMs: number
  /** When the newest file was last written, by the clock of the machine's file system. */
  savedAtMs: number
  /** How long the program took to write the checkpoint, as far as the runner saw. */
  saveMs?: number
  /** Size of the files without `isOlder`. */
  totalBytes: number
  /** How long the upload of its files took. */
  uploadMs?: number
  files: ManifestFile[]
  /** Created again after the files; missing without links. */
  links?: ManifestLink[]
  /** All folders, for those without files and for permissions and times; missing without any. */
  folders?: TreeEntry[]
  /** The checkpoint that this is a copy of; missing if an attempt of the job made it. */
  copiedFrom?: CheckpointSource
  /** The target of `CRUCIBLE_RESUME_FROM`, relative to the checkpoint directory: the newest entry, or `.`. */
  resumePath: string
  /** Hex SHA-256 of the document's bytes before this field, which is the last one. A manifest without the field is accepted unverified. */
  sha256?: string
}

/** A checkpoint as listed. @public */
export interface Checkpoint {
  /** `<step, 12 digits>-<attempt>`, also its folder's name. */
  id: string
  /** Orders the checkpoints of a job; a step of the program unless `isStepKnown` is false. */
  step: number
  attempt: number
  /** Value of `isStepKnown` in the manifest; missing for true, or if the manifest was not read. */
  isStepKnown?: boolean
}

/** Signals that may ask the program to save before its machine is taken. */
export const SAVE_SIGNALS = ['SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGINT'] as const
export type SaveSignal = (typeof SAVE_SIGNALS)[number]

/** The kinds of warnings that remain when their attempt is over. */
export const LASTING_WARNINGS: readonly string[] = [
  // The program has succeeded without some of its `outputs`.
  'missing-outputs',
  // Checkpoints or outputs lack something that cannot be stored.
  'left-out',
  // The command has succeeded, but a program of it ended with an exception.
  'hidden-failure',
]

/** A problem that needs a person. */
export interface RunnerWarning {
  /** Kind of warning in lower-case words with dashes, such as `no-checkpoint`. */
  kind: string
  /** Full sentences: the cause and what to do. */
  text: string
  /** Start by the runner's wall clock. */
  sinceMs: number
}

/** Facts about checkpoints in beats and results, in addition to their ids. */
export interface CheckpointNews {
  /** Why `restoredFrom` was chosen, in one clause; missing if nothing was restored. */
  restoredBecause?: string
  /** The state of `checkpoint`. */
  checkpointState?: CheckpointState
  /** The most serious current one. */
  warning?: RunnerWarning | null
}

/** Outcomes of a restore. */
export const RESTORE_OUTCOMES = [
  'trying',
  /** The program made a new step after it, or saved again. */
  'went-on',
  /** The program failed before that. */
  'failed',
] as const
export type RestoreOutcome = (typeof RESTORE_OUTCOMES)[number]

export interface Restore {
  checkpoint: Checkpoint
  /** Revision of its manifest. */
  revision: number
  state: CheckpointState
  /** Why this one, in one clause. */
  why: string
  atMs: number
  outcome: RestoreOutcome
  /** Error of the program. */
  message: string | null
}

/** `restores.json`: restores of the attempt, in order of time. The runner overwrites it; later attempts read it too. */
export interface Restores {
  version: 1
  attemptId: string
  restores: Restore[]
}

/** Takes the place of the attempt in the id of a checkpoint that was copied from another job before the first attempt. */
export const COPIED_BY = 0

/** A checkpoint's id begins with this many digits; grants depend on it. */
export const CHECKPOINT_STEP_DIGITS = 12
const CHECKPOINT_ID = new RegExp(`^(\\d{${CHECKPOINT_STEP_DIGITS}})-(\\d+)$`)

export function checkpointId(step: number, attempt: number): string {
  return `${String(step).padStart(CHECKPOINT_STEP_DIGITS, '0')}-${attempt}`
}

/** Parses a checkpoint's id; `undefined` if the text is not one. */
export function parseCheckpointId(id: string): Checkpoint | undefined {
  const match = CHECKPOINT_ID.exec(id)
  return match === null ? undefined : { id, step: Number(match[1]), attempt: Number(match[2]) }
}

/**
 * Newest first: highest step, then highest attempt. A copy from another job comes after everything that the job saved itself, even if its
 * step is higher: a fine-tuning job may count its steps from 0 again.
 */
export function byNewest(a: Checkpoint, b: Checkpoint): number {
  return isOwn(b) - isOwn(a) || b.step - a.step || b.attempt - a.attempt
}

function isOwn({ attempt }: Checkpoint): number {
  return attempt === COPIED_BY ? 0 : 1
}
