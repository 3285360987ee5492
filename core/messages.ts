/** What goes in and out of workflows: inputs, results, the status query, updates and signals. */
import type { Checkpoint, RunnerWarning } from './checkpoint'
import type { Artifact, Limits, Progress } from './documents'
import type { MachineHandle } from './handle'
import type { BundleRef, JobReason, JobSpec, JobState } from './job'
import type { Settlement } from './activities'
import type { AttemptRecord, Avoidance, Ledger, Policy } from './ledger'
import type { MicroUsd } from './money'
import type { BackendChoice, BackendName, Pins } from './offer'
import type { Order } from './plan'
import type { Timing } from './timing'

/** Input of the `job` workflow. */
export interface JobInput {
  jobId: string
  spec: JobSpec
  bundle: BundleRef | null
  owner: string
  deployment: string
  submittedAtMs: number
  /** The job that this one repeats or goes on from. */
  from?: string
  /** What it goes on from; missing where it starts over. */
  source?: JobSource
  /** A job of `crucible rehearse`: only such a job obeys `INTERRUPT_UPDATE`. */
  isRehearsal?: true
  /** State of the run before, when the job continued as new between two attempts. */
  carry?: JobCarry
}

/** The checkpoint of another job that a job begins with. Where its files prove to be damaged, an older one is taken. @public */
export interface JobSource {
  jobId: string
  checkpoint: Checkpoint
}

/** What a job takes along when it continues as new. */
export interface JobCarry {
  resolved: ResolvedJob
  status: JobStatus
  ledger: Ledger
  avoid: Avoidance[]
  pins?: Record<BackendName, Pins>
  pause?: Pause
  recordSeq: number
}

/** How long the next order is held back, and why, in the words of the decision that holds it back. */
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
  /** The month whose money the job's budget is promised from; missing where months and owners have no budgets. */
  month?: string
}

/** Answer of the status query. What changes with every step is not in it: that is the beat's, joined by the client. */
export interface JobStatus {
  id: string
  /** The workflow's run that says so, for links to its page. */
  runId?: string
  name: string
  owner: string
  state: JobState
  reason: JobReason
  /** One sentence for a person. */
  message: string
  /** What keeps the job from its next step, as long as it does; retried meanwhile. */
  trouble?: string
  /** As in `JobInput`. */
  isRehearsal?: true
  submittedAtMs: number
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
  /** Money of all ended attempts. */
  spentMicroUsd: MicroUsd
  /** Oldest first; only the newest `ATTEMPTS_SHOWN_MAX` are kept. */
  attempts: AttemptRecord[]
  attemptsTotal: number
  checkpoint?: Checkpoint
  /** Why the present placement was chosen, from the plan. */
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
  /** From the start of the attempt until its order goes out; until then nothing is bought. */
  pause?: Pause
  /** Numbers under which the launch and the settlement go on record. */
  launchSeq: number
  settleSeq: number
}

/** Result of the `attempt` workflow: what is certain about it, its machine ended. */
/**
 * The type of the failure with which an attempt closes that has lost its machine, or whose program failed: Temporal shows it as failed.
 * Its detail is the attempt's outcome, which is as certain as that of one that completes.
 */
export const ATTEMPT_FAILED = 'attempt-failed'

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

/** Signal from an attempt to its job: what the runner warns of now. */
export interface WarningNotice {
  attempt: number
  warning: RunnerWarning | null
}

/** Update of a job: move it. Without a target it moves to the best placement but the present one, if there is another. */
export interface MigrateUpdate {
  to?: BackendChoice
}

/** Update of a job: new deadline or budget, never in the past or below what is spent. @public */
export interface ExtendUpdate {
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
}

/** Update of a rehearsal's job: take its machine back as the provider would. */
export interface InterruptUpdate {
  /** The attempt that is meant: an update that comes late must not strike the next one. */
  attempt: number
  /** From the notice to the end of the machine; null for none. */
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

/** What garbage collection found about one resource. @experimental */
export interface GarbageVerdict {
  /** `store` for what is in the object store, and for the money of months. */
  backend: BackendName
  kind: string
  id: string
  /** The attempt or job that it was made for; empty for what serves many. */
  owner: string
  description: string
  /** `unseen`: a place where something may be, and at which nobody looks any more. */
  action: 'kept' | 'ended' | 'would-end' | 'failed' | 'unseen'
  /** Why, in a sentence. */
  reason: string
  /** Region, zone, folder. */
  place?: string
  sinceMs?: number
  /** 0 for what is free; missing where nobody knows. */
  costMicroUsdPerDay?: MicroUsd
}

/** @experimental */
export interface GarbageCollectionResult {
  verdicts: GarbageVerdict[]
}

export const STATUS_QUERY = 'status'
/** Of the `treasury` workflow. */
export const TREASURY_QUERY = 'treasury'
export const PROMISE_UPDATE = 'promise'
export const SETTLE_UPDATE = 'settle'
export const MIGRATE_UPDATE = 'migrate'
export const EXTEND_UPDATE = 'extend'
/** Update of a job without arguments: stop with a drain of seconds. Plain cancel is Temporal's own and drains in full. */
export const CANCEL_NOW_UPDATE = 'cancelNow'
export const INTERRUPT_UPDATE = 'interrupt'
/** Signal to an attempt: a `DrainRequest`. The first reason counts; a shorter window shortens it. */
export const DRAIN_SIGNAL = 'drain'
export const EXTEND_SIGNAL = 'extend'
export const WARNING_SIGNAL = 'warning'
/** Signal to a job and to its attempt: whatever waits before it tries again tries now. */
export const RETRY_SIGNAL = 'retry'
