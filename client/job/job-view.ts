/** The view of a job that the command line, its JSON and the dashboard show. */
import type { Metering } from '../../core/money/meter'
import type { Retrying, TrackedRun, UploadProgress } from '../../core/beat-parts'
import type { Checkpoint, CheckpointState, RunnerWarning } from '../../core/job/checkpoint'
import type { Continuation } from '../../core/job/continuation'
import type { Phase, RunnerPhase } from '../../core/documents'
import type { RealisedOffer } from '../../core/handle'
import type { JobReason, JobState } from '../../core/job/job'
import type { AttemptState } from '../../core/job/ledger'
import type { MicroUsd } from '../../core/money/money'
import type { BackendName, CapacityType } from '../../core/offer'
import type { Remaining } from '../../core/job/remaining'
import type { LinePlace } from '../../core/job/waiting'

/** Unknown or missing values are null, so that every field is always present. @public */
export interface JobSummary {
  id: string
  name: string
  owner: string
  workflowId: string
  /** Null if the store, which knows the end of a job whose workflow was ended by hand, does not answer. */
  state: JobState | null
  /** Null if unknown. */
  reason: JobReason | null
  /** A job of `crucible rehearse`, whose machines are interrupted on purpose. */
  isRehearsal: boolean
  submittedAtMs: number
  /** End of the job. */
  endedAtMs: number | null
  progress: ProgressView | null
  cost: CostView
  deadlineAtMs: number | null
  /** The obstacle to its next step, which is retried; null without trouble. */
  trouble: TroubleView | null
  /** Position among waiting jobs with equal requests; null if the job does not wait. */
  waiting: LinePlace | null
  /** Since when its launch waits in the provider's queue; null if it does not. */
  queuedSinceMs: number | null
  /** The present phase of its machine; null without one that reports. */
  phase: RunnerPhase | null
  /** The action that the job's machine tries again; null if none has failed for some seconds. */
  retrying: Retrying | null
  /** The newest attempt. */
  placement: PlacementView | null
  /** Null if the store does not answer. */
  attemptsTotal: number | null
  /** The runner's current warning; null without one, or if no attempt runs. */
  warning: RunnerWarning | null
  /** Names the documents of the job that cannot be read; null if all can. */
  incomplete: string | null
}

/** @public */
export interface JobView extends JobSummary {
  state: JobState
  reason: JobReason
  attemptsTotal: number
  /** Message for a person, in one sentence. */
  message: string
  /** False if neither the job's workflow nor its end provided this state: it then comes from record and beats. */
  isLive: boolean
  checkpoints: { newest: Checkpoint | null; state: CheckpointState | null; count: number }
  /** Oldest first; limited to the newest fifty. */
  attempts: AttemptView[]
  /** Recoveries of the attempts, oldest first. */
  recoveries: RecoveryView[]
  /** The job's runs at experiment trackers, such as MLflow and Weights & Biases. */
  trackers: TrackedRun[]
  /** The plan's reasons for its present place. */
  placementReasons: string[]
  /** The job's page in Temporal's Web UI. */
  uiUrl: string | null
  /** How to continue a job that ended before it was done; null for other jobs. */
  continuation: Continuation | null
}

/** @public */
export interface TroubleView {
  message: string
  /** Number of failed tries. */
  tries: number
  /** Time of the next try; null during a try, and if unknown. */
  nextTryAtMs: number | null
}

/** Progress of the training. Each unit has its own fields; docs/reference/progress.md explains their sources. @public */
export interface ProgressView {
  /** Steps of the whole training. */
  step: number | null
  stepsTotal: number | null
  loss: number | null
  epoch: number | null
  epochsTotal: number | null
  /** The fraction of the epoch, or of a progress bar with an unknown unit. */
  batch: number | null
  batchesTotal: number | null
  /** 0 to 100, with one decimal. */
  percent: number | null
}

/** @public */
export interface CostView {
  /** The cost of all attempts, including the running one so far; null if that of one of them is unknown. */
  spentMicroUsd: MicroUsd | null
  /** Remaining cost of the running attempt until the job is done; null if unknown. */
  estimatedRemainingMicroUsd: MicroUsd | null
  /** Basis of the remaining cost: the pace since the first step, or the plan's forecast with the job's own or an assumed duration. */
  remainingBasis: Remaining['basis'] | null
  budgetMicroUsd: MicroUsd | null
}

/** @public */
export interface PlacementView {
  backend: BackendName
  /** The requested capacity type. */
  capacityType: CapacityType
  /** The launched offer. */
  realised: RealisedOffer | null
}

/** @public */
export interface AttemptView extends PlacementView {
  number: number
  workflowId: string
  place: string | null
  state: AttemptState
  reason: string
  /** The runner's current phase; null for a finished attempt. */
  phase: RunnerPhase | null
  /** Time of the provider's warning that it may interrupt the machine; null without a warning, or when the attempt is over. */
  rebalanceAtMs: number | null
  /** Progress of the runner's upload of artifacts or a checkpoint; null if it uploads nothing, and when the attempt is over. */
  saving: UploadProgress | null
  /** The action that the runner tries again; null if none has failed for some seconds, and when the attempt is over. */
  retrying: Retrying | null
  launchedAtMs: number | null
  /** Start of the billing of a machine that may have been queued; null while it is queued, and for every other machine. */
  billedFromAtMs: number | null
  endedAtMs: number | null
  /** Null if unknown: its machine was launched, and it ended without a settlement. */
  costMicroUsd: MicroUsd | null
  /** Basis of the cost; `dearest` is an upper bound for unknown prices. Null until the attempt has ended, and if no basis was recorded. */
  costBasis: Metering['basis'] | null
  restoredFrom: Checkpoint | null
  /** The reason for this checkpoint, in one clause. */
  restoredBecause: string | null
  checkpoint: Checkpoint | null
  checkpointState: CheckpointState | null
  /** The runner's current or last warning. */
  warning: RunnerWarning | null
  /** The job's runs at experiment trackers, as far as this attempt's runner knew them. */
  trackers: TrackedRun[]
  progress: ProgressView | null
  /** Steps done that were in no checkpoint when it ended. */
  stepsLost: number | null
  phases: Phase[]
}

/**
 * From the end of an attempt's work to the first step of the next working attempt, in milliseconds. Each part begins where the
 * previous one ends (docs/reference/failures.md defines them). A part that was not recorded, or is not over, is null: nothing is
 * estimated.
 *
 * @experimental
 */
export interface RecoveryView {
  /** Number of the attempt that ended. */
  from: number
  /** Number of the attempt that continued, or will; null without one. */
  to: number | null
  /** Failure class of the end, or the origin of the request. */
  cause: string
  /** Time from the last healthy sign until the machine began to drain, or was known to be lost. */
  detectMs: number | null
  /** Time until the runner had written its result. */
  drainMs: number | null
  /** Time until the provider had launched the next machine. */
  acquireMs: number | null
  /** Time until the runner ran there. */
  bootMs: number | null
  /** Time until the workload started: code, inputs, checkpoint, image, set-up. */
  restoreMs: number | null
  /** Time until the first step beyond the restored one. */
  firstStepMs: number | null
  /** The total. */
  totalMs: number | null
  /** The total without the boot, whose duration the provider determines. */
  overheadMs: number | null
  /** Repeated steps. */
  stepsLost: number | null
}
