/** Inputs, results, the status query, updates and signals of workflows. */
import type { Checkpoint, RunnerWarning } from './job/checkpoint'
import type { Artifact, Limits, Progress } from './documents'
import type { MachineHandle } from './handle'
import type { BundleRef, JobReason, JobSpec, JobState } from './job/job'
import type { Settlement } from './activities'
import type { AttemptRecord, Avoidance, Ledger, Policy } from './job/ledger'
import type { MicroUsd } from './money/money'
import type { BackendChoice, BackendName, Pins } from './offer'
import type { Order } from './job/plan'
import type { Timing } from './time/timing'

/** Input of the `job` workflow. */
export interface JobInput {
  jobId: string
  spec: JobSpec
  bundle: BundleRef | null
  owner: string
  deployment: string
  submittedAtMs: number
  /** The job that this one repeats or continues. */
  from?: string
  /** The checkpoint that it continues from; missing if it starts over. */
  source?: JobSource
  /** A job of `crucible rehearse`: only such a job obeys `INTERRUPT_UPDATE`. */
  isRehearsal?: true
  /** State of the previous run, if the job continued as new between two attempts. */
  carry?: JobCarry
}

/** The checkpoint of another job that a job begins with. If its files prove to be damaged, an older one is used. @public */
export interface JobSource {
  jobId: string
  checkpoint: Checkpoint
}

/** State that a job keeps when it continues as new. */
export interface JobCarry {
  resolved: ResolvedJob
  status: JobStatus
  ledger: Ledger
  avoid: Avoidance[]
  pins?: Record<BackendName, Pins>
  pause?: Pause
  recordSeq: number
}

/** Length of the pause before the next order, and its reason in the words of the decision. */
export interface Pause {
  forMs: number
  reason: JobReason
  message: string
}

/** The spec, checked again by a worker, with everything that stays fixed for the job's life. */
export interface ResolvedJob {
  spec: JobSpec
  policy: Policy
  timing: Timing
  runnerSha256: string
  storeUrl: string
  /** The month from which the job's budget is reserved; missing if months and owners have no budgets. */
  month?: string
  /** As in `JobInput`: places of reservations are kept for their owners. Missing for a rehearsal on this machine. */
  owner?: string
}

/** Answer of the status query. It excludes values that change with every step; the client joins them from the beat. */
export interface JobStatus {
  id: string
  /** The workflow run that answered, for links to its page. */
  runId?: string
  name: string
  owner: string
  state: JobState
  reason: JobReason
  /** Message for a person, in one sentence. */
  message: string
  /** Problem that blocks the job's next step, which is retried meanwhile. */
  trouble?: string
  /** Whether the job is a rehearsal, as in `JobInput`. */
  isRehearsal?: true
  submittedAtMs: number
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
  /** Cost of all ended attempts. */
  spentMicroUsd: MicroUsd
  /** Oldest first; only the newest `ATTEMPTS_SHOWN_MAX` are kept. */
  attempts: AttemptRecord[]
  attemptsTotal: number
  checkpoint?: Checkpoint
  /** Why the current placement was chosen, from the plan. */
  placementReasons: string[]
}

/** Attempts kept in the status; a job interrupted hundreds of times must not outgrow a query or a continue-as-new. */
export const ATTEMPTS_SHOWN_MAX = 50

/** Result of a job that succeeded, and first detail of the failure of one that did not. */
export interface JobResult {
  id: string
  state: JobState
  reason: JobReason
  message: string
  attempts: number
  costMicroUsd: MicroUsd
  artifacts: Artifact[]
  checkpoint?: Checkpoint
  progress?: Progress
  finishedAtMs: number
}

/** Input of the `attempt` workflow. */
export interface AttemptInput {
  order: Order
  timing: Timing
  /** Delay from the start of the attempt until its order goes out; before that nothing is bought. */
  pause?: Pause
  /** Record numbers of the launch and the settlement. */
  launchSeq: number
  settleSeq: number
}

/** Log message of a job that failed, with its `reason` and `message`: a log of an error has lost the error's type. */
export const JOB_FAILED_LOG = 'Job failed'

/**
 * The type of the failure with which an attempt closes if it lost its machine or its program failed: Temporal shows it as failed. Its
 * detail is the attempt's outcome, as certain as that of a completed one.
 */
export const ATTEMPT_FAILED = 'attempt-failed'

/** Result of the `attempt` workflow: the facts about an attempt whose machine has ended. */
export interface AttemptOutcome {
  settlement: Settlement
}

/** Answer of the attempt's status query. */
export interface AttemptStatus {
  state: AttemptRecord['state']
  reason: string
  handle: MachineHandle | null
}

/** Signal to an attempt: new limits for the running machine. */
export interface ExtendRequest {
  limits: Limits
}

/** Signal from an attempt to its job: the runner's current warning. */
export interface WarningNotice {
  attempt: number
  warning: RunnerWarning | null
}

/** Update that moves a job. Without a target the job moves to the best other placement, if one exists. */
export interface MigrateUpdate {
  to?: BackendChoice
}

/** Update with a new deadline or budget of a job, never in the past or below the amount spent. @public */
export interface ExtendUpdate {
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
}

/** Update of a rehearsal's job: take its machine back as the provider would. */
export interface InterruptUpdate {
  /** The attempt that is meant, so that a late update does not hit the next one. */
  attempt: number
  /** Time from the notice to the end of the machine; null without a notice. */
  noticeMs: number | null
}

/** @public */
export interface UpdateReceipt {
  message: string
}

/** Input of the `garbageCollection` workflow. */
export interface GarbageCollectionInput {
  deployment: string
  backends: BackendName[]
  graceMs: number
  isDryRun: boolean
}

/** Result of garbage collection for one resource. @experimental */
export interface GarbageVerdict {
  /** `store` for the object store, and for the money of months. */
  backend: BackendName
  kind: string
  id: string
  /** The attempt or job that it was made for; empty for shared resources. */
  owner: string
  description: string
  /** Action on the resource. `unseen` is a place that may hold resources and that no worker scans. */
  action: 'kept' | 'ended' | 'would-end' | 'failed' | 'unseen'
  /** Why, in a sentence. */
  reason: string
  /** Region, zone, folder. */
  place?: string
  sinceMs?: number
  /** 0 if free; missing if unknown. */
  costMicroUsdPerDay?: MicroUsd
}

/** @experimental */
export interface GarbageCollectionResult {
  verdicts: GarbageVerdict[]
}

export const STATUS_QUERY = 'status'
/** Query of the `treasury` workflow. */
export const TREASURY_QUERY = 'treasury'
export const PROMISE_UPDATE = 'promise'
export const SETTLE_UPDATE = 'settle'
export const MIGRATE_UPDATE = 'migrate'
export const EXTEND_UPDATE = 'extend'
/** Update of a job without arguments: stop with a drain of seconds. Temporal's own cancel makes a full drain. */
export const CANCEL_NOW_UPDATE = 'cancelNow'
export const INTERRUPT_UPDATE = 'interrupt'
/** Signal to an attempt: a `DrainRequest`. The first reason counts; a shorter window shortens it. */
export const DRAIN_SIGNAL = 'drain'
export const EXTEND_SIGNAL = 'extend'
export const WARNING_SIGNAL = 'warning'
/** Signal to a job and to its attempt: retry now whatever waits for a retry. */
export const RETRY_SIGNAL = 'retry'
