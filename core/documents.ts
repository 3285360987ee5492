/**
 * The documents between the control plane and the runner, as they lie in the object store. `docs/reference/runner-protocol.md` is
 * the interface; the files under `test/runner/golden/` hold both sides to it. Every document has exactly one writer.
 */
import type { Checkpoint, CheckpointNews, SaveSignal } from './checkpoint'
import type { AttemptBudget } from './budget'
import { DRAIN_REASONS } from './drain'
import type { Metered } from './meter'
import type { GpuUse, UploadProgress } from './beat-parts'
import type { Sealed } from './grants'
import type { MicroUsd } from './money'
import type { Progress } from './progress'

export { DRAIN_REASONS, type Drain, type DrainReason } from './drain'
export type { Progress } from './progress'

/** When the runner must have stopped, whatever else happens. Control plane writes; the highest `seq` counts. */
export interface Limits {
  seq: number
  /** The user's deadline: the machine is off by then. */
  deadlineAtMs: number | null
  /** What this attempt may cost, launch, drain and power-off included; null where nothing limits it. */
  budget: AttemptBudget | null
}

export interface InputFile {
  /** `file://`, `https://`, `http://` or `s3://`. */
  source: string
  /** Where the workload finds it, relative to its working directory. */
  path: string
}

/** How the machine logs in to the registry of the image. */
export interface ImageLogin {
  username: string
  /** Name of the secret that is the password; the workload gets it only if it is among `secrets`, too. */
  secret: string
}

/** What becomes of a workload whose machine, as the provider says, may be taken back sooner than others. */
export const REBALANCE_ANSWERS = ['save', 'move', 'ignore'] as const
export type RebalanceAnswer = (typeof REBALANCE_ANSWERS)[number]

/** Where the machine's interruption notice comes from. */
export type NoticeSource =
  | { kind: 'none' }
  | { kind: 'file'; path: string }
  /** The metadata service that a provider gives to each of its machines. */
  | { kind: 'instance-metadata' }

/** `order.json`: what to run. Put once by the control plane, before the machine is launched. */
export interface RunnerOrder {
  version: 1
  jobId: string
  jobName: string
  attempt: number
  attemptId: string
  run: string
  setup: string | null
  image: string | null
  /** Missing where the registry asks for none. */
  imageLogin?: ImageLogin
  shmGiB: number | null
  env: Record<string, string>
  /** Names; the values come sealed, beside this document, and are deleted once read. */
  secrets: string[]
  bundle: { sha256: string; sizeBytes: number } | null
  inputs: InputFile[]
  /** Paths or globs under the working directory that are kept as artifacts; the output directory always is. */
  outputs: string[]
  checkpoint: {
    /** Where the workload writes checkpoints, relative to its working directory; null for the runner's own. */
    directory: string | null
    /** Upload at most this often; 0 uploads each one. A drain always uploads the newest. */
    everyMs: number
    /** A checkpoint without other evidence is provisional once nothing in it changed for this long. */
    quietMs: number
    /** Globs: a checkpoint is complete when each matches a file, relative to the checkpoint directory or to the checkpoint's own folder. */
    complete?: string[]
    /** Globs relative to the checkpoint directory: nothing else is part of a checkpoint. */
    include?: string[]
    /** Globs relative to the checkpoint directory: never part of a checkpoint. */
    exclude?: string[]
    /** What asks the program to save before its machine goes; SIGTERM when missing, which also ends it. */
    signal?: SaveSignal
    /** How many complete ones stay; read by the control plane, which thins out. */
    keep: number
  }
  limits: Limits
  /** The first lease, from the runner's start. */
  leaseMs: number
  /** From the request to stop until the workload is killed; uploads included. */
  drainMs: number
  /** Kept free at the end of every limit for the upload of the result and the power-off. */
  powerOffMs: number
  /** A machine whose runner starts later than this after `issuedAtMs` must not run the workload. */
  startWithinMs: number
  beatMs: number
  /** How long the image may not come, without a layer more, until the attempt ends; 10 minutes when missing. */
  registryMs?: number
  /** Size that one artifact may have; the runner's own default where it is missing. */
  artifactGiBMax?: number
  notice: NoticeSource
  /** Until when the machine can be used at all (a reservation's cut-off): it must have saved and stopped by then. */
  usableUntilMs?: number
  /** `save` when missing. */
  onRebalance?: RebalanceAnswer
}

/** `order.json` as it lies in the store: the order and when it was first put. */
export interface IssuedRunnerOrder extends RunnerOrder {
  issuedAtMs: number
}

/** `claim.json`: whose the attempt is. Put once, by the first who can tell; never deleted. */
export interface Claim {
  /** The provider's id of the machine, as its handle has it; a name of the runner's own where nobody told it that. */
  machine: string
  /** The name of the send that made the machine, where it was told that. */
  send?: string
}

/** How the name begins that a runner makes up for its machine, which no provider knows; the claim's `send` may tell which it is. */
export const UNNAMED_MACHINE = 'unnamed-'

/** What the bootstrap of a machine reads once (docs/reference/runner-protocol-store.md, "Hand-over"), sealed with the key of its send. */
export interface HandOverDocument {
  version: 1
  jobId: string
  attempt: number
  attemptId: string
  /** The object store as the machine reaches it. */
  storeUrl: string
  runnerSha256: string
  runnerUrl: string
  /** Deletes this document. */
  deleteUrl: string
  /** The attempt's key, 64 hex digits. */
  key: string
  /** The text of the file with the first grant, sealed with the attempt's key; null for a store without credentials. */
  grant: string | null
  /** How long the machine may be on before the runner has started, and after the end of its lease. */
  startMs: number
  endMs: number
  /** What the runner needs to save and stop when the machine shuts down. */
  stopSeconds: number
}

/**
 * `lease.json`: the right to go on. The runner counts `ttlMs` from the moment at which it *sent* beat number
 * `answersBeat`, on its own monotonic clock, so that the control plane, which renews only after reading that beat, knows
 * when the lease has certainly run out without comparing clocks.
 */
export interface Lease {
  seq: number
  answersBeat: number
  ttlMs: number
  /** In the place of the order's, where that has moved since. */
  usableUntilMs?: number
  /**
   * What the attempt had cost at most when that beat was sent; missing where nobody has told. The rest counts at the dearest price.
   */
  spentMicroUsd?: MicroUsd
  /** The same as far as the provider has told its prices, for people. */
  metered?: Metered
  /** Fresh credentials for the store, for machines that have none of their own: a `Grant`, sealed with the attempt's key. */
  grant?: Sealed
}

/** What the runner is doing. */
export const RUNNER_PHASES = [
  'starting',
  'fetching',
  'restoring',
  'pulling',
  'setup',
  'running',
  'draining',
  'finishing',
] as const
export type RunnerPhase = (typeof RUNNER_PHASES)[number]

/** Instants by the runner's wall clock that tell where the time of a recovery goes. */
export interface RunnerTimes {
  /** When the first step beyond the restored one was seen; null before, and where the workload tells no steps. */
  firstStepAtMs?: number | null
  /** The last look for the provider's notice that found none; null where nobody looks for one. */
  noNoticeAtMs?: number | null
}

/** `beat.json`: the runner is alive. Overwritten every `beatMs`. */
export interface Beat extends RunnerTimes, CheckpointNews {
  attemptId: string
  /** Counts up from 1 with every beat. */
  seq: number
  phase: RunnerPhase
  progress: Progress | null
  gpus: GpuUse[]
  checkpoint: Checkpoint | null
  restoredFrom: Checkpoint | null
  /** The highest `limits` and `lease` obeyed. */
  limitsSeq: number
  leaseSeq: number
  logLines: number
  /** When the provider said that the machine may be taken back sooner than others; missing as long as it has not. */
  rebalanceAtMs?: number
  /** Missing while it saves nothing. */
  saving?: UploadProgress
  /** The runner's wall clock, for display and for judging clock slack. */
  clockMs: number
  /** Milliseconds since the runner started, monotonic. */
  uptimeMs: number
  /** Up to now. */
  phases?: Phase[]
}

/** Why the runner ended the attempt. */
export const RESULT_REASONS = [
  'completed',
  'workload',
  'setup',
  'bundle',
  'input',
  /** There is no such image. */
  'image',
  /** The registry does not give it to this machine. */
  'image-login',
  /** The registry did not answer for a long time. */
  'registry',
  'secrets',
  'disk-full',
  'interrupted',
  'lease',
  'late',
  'runner',
  ...DRAIN_REASONS,
] as const
export type ResultReason = (typeof RESULT_REASONS)[number]

/** One stage of an attempt on the machine. */
export interface Phase {
  name: RunnerPhase
  startedAtMs: number
  durationMs: number
}

export interface Artifact {
  /** Relative to the job's artifacts. */
  path: string
  sizeBytes: number
  sha256: string
}

/** `result.json`: how the attempt ended, put once by the runner as its last act. */
export interface RunnerResult extends RunnerTimes, CheckpointNews {
  version: 1
  attemptId: string
  /** `succeeded`: exit code 0 and not asked to stop. `stopped`: asked to stop before it was done. `failed`: the rest. */
  outcome: 'succeeded' | 'stopped' | 'failed'
  reason: ResultReason
  /** One sentence for a person. */
  message: string
  exitCode: number | null
  signal: string | null
  progress: Progress | null
  checkpoint: Checkpoint | null
  restoredFrom: Checkpoint | null
  artifacts: Artifact[]
  phases: Phase[]
  logLines: number
  finishedAtMs: number
}

/** `diagnosis.json`: what could be learned of a machine whose runner left no result. Put once by the control plane. */
export interface Diagnosis {
  atMs: number
  /** The provider's id of the machine. */
  machine: string
  /** Some pages for people, secrets masked. */
  text: string
  /** The line that says most. */
  lastWords?: string
}

/** A line of `logs/<from>-<to>.ndjson`. */
export interface LogLine {
  /** Number of the line in the attempt, from 1, without holes. */
  n: number
  /** The runner's wall clock. */
  t: number
  /** Standard output, standard error, the runner itself, or a gap. */
  s: 'out' | 'err' | 'runner' | 'gap'
  m: string
  /** On a gap: how many lines were lost. */
  lost?: number
}
