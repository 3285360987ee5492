/**
 * The documents between the control plane and the runner, as stored in the object store. `docs/reference/runner-protocol.md` is the
 * interface; the files under `test/runner/golden/` test both sides against it. Every document has exactly one writer.
 */
import type { Checkpoint, CheckpointNews, ManifestLink, SaveSignal, TreeEntry } from './job/checkpoint'
import type { AttemptBudget } from './money/budget'
import { DRAIN_REASONS } from './job/drain'
import type { Metered } from './money/meter'
import type { GpuUse, Retrying, TrackerNews, UploadProgress } from './beat-parts'
import type { Sealed } from './grants'
import type { MicroUsd } from './money/money'
import type { Progress } from './job/progress'

export { DRAIN_REASONS, type Drain, type DrainReason } from './job/drain'
export {
  UNNAMED_MACHINE,
  type Billing,
  type Claim,
  type EndedMachine,
  type HandOverDocument,
} from './machine-documents'
export type { TrackerNews } from './beat-parts'
export type { Progress } from './job/progress'

/** Limits of the runner. The control plane writes them; the highest `seq` counts. */
export interface Limits {
  seq: number
  /** The user's deadline, by which the machine is off. */
  deadlineAtMs: number | null
  /** Budget of this attempt, launch, drain and power-off included; null without a limit. */
  budget: AttemptBudget | null
}

export interface InputFile {
  /** `file://`, `https://`, `http://` or `s3://`. */
  source: string
  /** Path of the input, relative to the workload's working directory. */
  path: string
}

/** How the machine logs in to the registry of the image. */
export interface ImageLogin {
  username: string
  /** Name of the secret that holds the password; the workload gets it only if `secrets` lists it too. */
  secret: string
}

/** Reactions of a workload to a warning of a higher interruption risk. */
export const REBALANCE_ANSWERS = ['save', 'move', 'ignore'] as const
export type RebalanceAnswer = (typeof REBALANCE_ANSWERS)[number]

/** Source of the machine's interruption notice. */
export type NoticeSource =
  | { kind: 'none' }
  | { kind: 'file'; path: string }
  /** The metadata service of the provider's machines. */
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
  /** The program that runs both, with its options; `bash -eo pipefail` if missing, or `sh -e` without bash. */
  shell?: string
  image: string | null
  /** Login of the registry; missing if it needs none. */
  imageLogin?: ImageLogin
  shmGiB: number | null
  env: Record<string, string>
  /** Names; the sealed values are stored next to this document and deleted once read. */
  secrets: string[]
  bundle: { sha256: string; sizeBytes: number } | null
  inputs: InputFile[]
  /** Paths or globs under the working directory that are kept as artifacts; the output directory always is. */
  outputs: string[]
  /** A successful attempt that lacks one of `outputs` has failed. */
  requiresOutputs?: boolean
  checkpoint: {
    /** Directory for checkpoints, relative to the workload's working directory; null for the runner's own. */
    directory: string | null
    /** Minimum time between uploads; 0 uploads each checkpoint. A drain always uploads the newest. */
    everyMs: number
    /** Time without changes after which a checkpoint without other evidence is provisional. */
    quietMs: number
    /**
     * Globs that make a checkpoint complete once each matches a file, relative to the checkpoint directory or the checkpoint's own folder.
     */
    complete?: string[]
    /** Globs of the files that a checkpoint may contain, relative to the checkpoint directory. */
    include?: string[]
    /** Globs relative to the checkpoint directory: never part of a checkpoint. */
    exclude?: string[]
    /** Signal that makes the program save before its machine is taken; SIGTERM, which also ends it, if missing. */
    signal?: SaveSignal
    /** Number of complete checkpoints to keep. The control plane removes the others. */
    keep: number
  }
  limits: Limits
  /** The first lease, from the runner's start. */
  leaseMs: number
  /** Time from the stop request until the workload is killed, uploads included. */
  drainMs: number
  /** Time at the end of every limit that is reserved for uploading the result and powering off. */
  powerOffMs: number
  /**
   * A machine whose runner starts later than this after `issuedAtMs` must not run the workload; with `queueMs`, later than this after
   * the machine itself began.
   */
  startWithinMs: number
  /** Longest free wait in the provider's queue before the machine begins; missing for a backend without a queue. */
  queueMs?: number
  /** The provider ends the machine this long after it began; only with `queueMs`, because only then that instant is unknown. */
  runMsMax?: number
  beatMs: number
  /** The attempt ends if the image pull makes no progress for this long; 10 minutes if missing. */
  registryMs?: number
  /** Maximum size of one artifact; the runner's default if missing. */
  artifactGiBMax?: number
  notice: NoticeSource
  /** End of the machine's availability (a reservation's cut-off), by which it must have saved and stopped. */
  usableUntilMs?: number
  /** `save` if missing. */
  onRebalance?: RebalanceAnswer
}

/** `order.json` as stored: the order and when it was first put. */
export interface IssuedRunnerOrder extends RunnerOrder {
  issuedAtMs: number
}

/**
 * `lease.json`: the right to continue. The runner counts `ttlMs` from the moment when it *sent* beat number `answersBeat`, on its own
 * monotonic clock. The control plane renews only after reading that beat, so it knows without comparing clocks when the lease has certainly
 * expired.
 */
export interface Lease {
  seq: number
  answersBeat: number
  ttlMs: number
  /** New value of the order's `usableUntilMs`, if that has changed. */
  usableUntilMs?: number
  /** Upper bound of the attempt's cost when that beat was sent; missing if unknown. Later time is counted at the highest price. */
  spentMicroUsd?: MicroUsd
  /** The cost by the provider's reported prices, for people. */
  metered?: Metered
  /** New credentials for the store, for machines that have none: a `Grant`, sealed with the attempt's key. */
  grant?: Sealed
}

/** Phases of the runner's work. */
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

/** Instants by the runner's wall clock from which a recovery is split into phases. */
export interface RunnerTimes {
  /** Time of the first step beyond the restored one; null before it, and if the workload reports no steps. */
  firstStepAtMs?: number | null
  /** The step that was then seen: a program may print only every hundredth. Null if it reports no steps. */
  firstStep?: number | null
  /** The last poll for the provider's notice that found none; null if notices are not polled. */
  noNoticeAtMs?: number | null
}

/** `beat.json`: the runner is alive. Overwritten every `beatMs`. */
export interface Beat extends RunnerTimes, CheckpointNews, TrackerNews {
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
  /** Time of the provider's first warning of a higher interruption risk; missing without a warning. */
  rebalanceAtMs?: number
  /** Progress of the current upload; missing while nothing is saved. */
  saving?: UploadProgress
  /** Missing while nothing has failed for some seconds, and from older runners. */
  retrying?: Retrying
  /**
   * The runner does not answer its timekeeper since then (same clock as `clockMs`): the beat has its last facts. Missing while it
   * answers.
   */
  stalledSinceMs?: number
  /** The runner's wall clock, for display and for estimating clock skew. */
  clockMs: number
  /** Milliseconds since the runner started, monotonic. */
  uptimeMs: number
  /** Phases up to now. */
  phases?: Phase[]
}

/** Why the runner ended the attempt. */
export const RESULT_REASONS = [
  'completed',
  'workload',
  'setup',
  'bundle',
  /** An input was unavailable for a long time, or for an older runner's any reason. */
  'input',
  /** An input that can never be had. */
  'no-input',
  /** The store refused this machine before the command. */
  'store-refused',
  /** The image does not exist. */
  'image',
  /** The container engine of the machine failed. */
  'engine',
  /** The registry refuses this machine. */
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

/** A phase of an attempt on the machine. */
export interface Phase {
  name: RunnerPhase
  startedAtMs: number
  durationMs: number
}

export interface Artifact {
  /** Path relative to the job's artifacts. */
  path: string
  sizeBytes: number
  sha256: string
}

/** `outputs.json`: what the artifacts of an attempt have in addition to their content. The runner overwrites it. */
export interface Outputs {
  version: 1
  files: TreeEntry[]
  folders: TreeEntry[]
  /** Links to folders of the same outputs; links to files are kept as files. */
  links: ManifestLink[]
}

/** `result.json`: how the attempt ended, put once by the runner as its last act. */
export interface RunnerResult extends RunnerTimes, CheckpointNews, TrackerNews {
  version: 1
  attemptId: string
  /** `succeeded`: exit code 0 without a stop request. `stopped`: ended by a request before it was done. `failed`: any other end. */
  outcome: 'succeeded' | 'stopped' | 'failed'
  reason: ResultReason
  /** Message for a person, in one sentence. */
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

/** `diagnosis.json`: what could be learned about a machine whose runner left no result. Put once by the control plane. */
export interface Diagnosis {
  atMs: number
  /** The provider's id of the machine. */
  machine: string
  /** Diagnosis of up to some pages, with secrets masked. */
  text: string
  /** The most telling line. */
  lastWords?: string
}

/** A line of `logs/<from>-<to>.ndjson`. */
export interface LogLine {
  /** Number of the line in the attempt, from 1, without gaps. */
  n: number
  /** The runner's wall clock. */
  t: number
  /** Standard output, standard error, the runner, or a gap. */
  s: 'out' | 'err' | 'runner' | 'gap'
  m: string
  /** Number of lost lines, for a gap. */
  lost?: number
}
