/** The one picture of a job that the command line, its JSON and the dashboard show. */
import type { Metering } from '../core/activities'
import type { UploadProgress } from '../core/beat-parts'
import type { Checkpoint, CheckpointState, RunnerWarning } from '../core/checkpoint'
import type { Continuation } from '../core/continuation'
import type { Phase, RunnerPhase } from '../core/documents'
import type { RealisedOffer } from '../core/handle'
import type { JobReason, JobState } from '../core/job'
import type { AttemptState } from '../core/ledger'
import type { MicroUsd } from '../core/money'
import type { BackendName, CapacityType } from '../core/offer'
import type { LinePlace } from '../core/waiting'

/** What is not known, or not there, is null, so that every field is always there. */
export interface JobSummary {
  id: string
  name: string
  owner: string
  workflowId: string
  state: JobState
  reason: JobReason
  /** A job of `crucible rehearse`, whose machines are taken back on purpose. */
  isRehearsal: boolean
  submittedAtMs: number
  /** When it was over. */
  endedAtMs: number | null
  progress: ProgressView | null
  cost: CostView
  deadlineAtMs: number | null
  /** What keeps it from its next step, and is tried again; null while nothing does. */
  trouble: TroubleView | null
  /** Its place among the jobs with equal wishes that wait for a machine; null when it does not wait. */
  waiting: LinePlace | null
  /** The newest attempt. */
  placement: PlacementView | null
  attemptsTotal: number
  /** What the runner warns of now; null when it does not, or no attempt runs. */
  warning: RunnerWarning | null
}

export interface JobView extends JobSummary {
  /** One sentence for a person. */
  message: string
  /** False when neither the job's workflow nor its end told this: then it is what record and beats tell. */
  isLive: boolean
  checkpoints: { newest: Checkpoint | null; state: CheckpointState | null; count: number }
  /** Oldest first; only the newest fifty of a job that went through more. */
  attempts: AttemptView[]
  /** Oldest first; of the same attempts. */
  recoveries: RecoveryView[]
  /** Why it is where it is, from the plan. */
  placementReasons: string[]
  /** The job's page in Temporal's Web UI. */
  uiUrl: string | null
  /** How its work goes on, where it ended before it was done. */
  continuation: Continuation | null
}

export interface TroubleView {
  message: string
  /** How often it was tried in vain. */
  tries: number
  /** Null while it is being tried, and where it is not known. */
  nextTryAtMs: number | null
}

/** How far the training is. Each unit has its own fields; docs/reference/progress.md says where each comes from. */
export interface ProgressView {
  /** Steps of the whole training. */
  step: number | null
  stepsTotal: number | null
  loss: number | null
  epoch: number | null
  epochsTotal: number | null
  /** What is done of the epoch, or of a progress bar whose unit is unknown. */
  batch: number | null
  batchesTotal: number | null
  /** 0 to 100, with one decimal. */
  percent: number | null
}

export interface CostView {
  /** Of all attempts, the running one so far included. */
  spentMicroUsd: MicroUsd
  /** Until the job is done, where pace and price are known. */
  estimatedRemainingMicroUsd: MicroUsd | null
  budgetMicroUsd: MicroUsd | null
}

export interface PlacementView {
  backend: BackendName
  /** What was asked for. */
  capacityType: CapacityType
  /** What was got. */
  realised: RealisedOffer | null
}

export interface AttemptView extends PlacementView {
  number: number
  workflowId: string
  place: string | null
  state: AttemptState
  reason: string
  /** What the runner is doing, of an attempt that is not over. */
  phase: RunnerPhase | null
  /** When the provider said that it may take the machine back sooner than others; null when it has not, or it is over. */
  rebalanceAtMs: number | null
  /** How far its runner is with saving artifacts or a checkpoint; null while it saves nothing, and when it is over. */
  saving: UploadProgress | null
  launchedAtMs: number | null
  endedAtMs: number | null
  costMicroUsd: MicroUsd
  /** `dearest`: nobody told its prices, and it cost that at most. Null until it has ended, and where nobody wrote it down. */
  costBasis: Metering['basis'] | null
  restoredFrom: Checkpoint | null
  /** Why that one, in one clause. */
  restoredBecause: string | null
  checkpoint: Checkpoint | null
  checkpointState: CheckpointState | null
  /** What its runner warns of, or warned of last. */
  warning: RunnerWarning | null
  progress: ProgressView | null
  /** Steps done and in no checkpoint when it ended. */
  stepsLost: number | null
  phases: Phase[]
}

/**
 * From the end of an attempt's work to the first step of the next attempt that worked, in milliseconds. Each part begins where the
 * one before ends (docs/reference/failures.md defines them). What nobody wrote down, or is not over, is null: nothing is guessed.
 */
export interface RecoveryView {
  /** Number of the attempt that ended. */
  from: number
  /** Number of the attempt that went on, or is to; null while there is none. */
  to: number | null
  /** Failure class of the end, or who asked for it. */
  cause: string
  /** From the last sign that all was well until the machine began to drain, or was known to be lost. */
  detectMs: number | null
  /** Until the runner had put its result. */
  drainMs: number | null
  /** Until the provider had launched the next machine. */
  acquireMs: number | null
  /** Until the runner ran there. */
  bootMs: number | null
  /** Until the workload was started: code, inputs, checkpoint, image, set-up. */
  restoreMs: number | null
  /** Until the first step beyond the restored one. */
  firstStepMs: number | null
  /** All of it. */
  totalMs: number | null
  /** All of it but the boot, which is the provider's. */
  overheadMs: number | null
  /** Steps done again. */
  stepsLost: number | null
}
