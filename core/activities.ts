/** The activities by name. Workflows call them through these interfaces; `activities/` implements them. */
import type { Checkpoint, CheckpointSource, CheckpointState, RunnerWarning } from './job/checkpoint'
import type { Artifact, Limits, Phase, Progress, RunnerTimes, TrackerNews } from './documents'
import type {
  Drain,
  DrainInput,
  DrainMachineInput,
  DrainReason,
  JobDrainReason,
  StopAttemptInput,
} from './job/drain'
import type { Failure } from './failure'
import type { MachineHandle } from './handle'
import type { InterruptInput } from './job/interruption'
import type { JobReason } from './job/job'
import type { AttemptEnd, Avoidance, Ledger, Policy, Verdict } from './job/ledger'
import type { Metering } from './money/meter'
import type { GarbageVerdict, JobInput, JobResult, JobSource, JobStatus, ResolvedJob } from './messages'
import type { MicroUsd } from './money/money'
import type { BackendChoice, BackendName, Pins } from './offer'
import type { Order, PlanReport, SilentBackend } from './job/plan'
import type { PreviewInput } from './job/preview'
import type { Timing } from './time/timing'
import type { BudgetAnswer, MonthlyBudgetRequest, BudgetQuestion } from './money/treasury'
import type { OffersInput, SentAnswer } from './job/waiting'

export interface PlanInput {
  jobId: string
  deployment: string
  recordSeq: number
  attempt: number
  resolved: ResolvedJob
  bundle: JobInput['bundle']
  ledger: Ledger
  avoid: Avoidance[]
  /** Pins of the job's earlier orders, by backend; missing before the first order. */
  pins?: Record<BackendName, Pins>
  /** Target of a migration; overrides the ranking. */
  target?: BackendChoice
  /** Delay before the order goes out. */
  startsInMs?: number
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
}

/** Next step for a placement. */
export type PlanOutcome =
  | { kind: 'place'; order: Order; words: PlanWords }
  /** No capacity now; worth another try. */
  | {
      kind: 'wait'
      reason: string
      retryInMs: number
      silentBackends: SilentBackend[]
      /** The job's place in line, if older jobs are ahead or one of them is ordering; missing if the provider was asked. */
      position?: number
    }
  /** No offer can ever run this job as written. */
  | { kind: 'never'; reason: JobReason; failure: Failure }

/** The plan in words, for the status and the Temporal UI. */
export interface PlanWords {
  /** One line with place and price. */
  summary: string
  /** Why it was chosen. */
  reasons: string[]
}

export interface DecideInput {
  jobId: string
  recordSeq: number
  attempt: number
  end: AttemptEnd
  /** Why the job asked the attempt to save and stop, if it did. */
  drainReason: JobDrainReason | null
  /** Keys of every offer of the order, the preferred one first. */
  offerKeys: string[]
  /** Offer and place (`placeKey`) of the machine, if the attempt had one. */
  machine?: { offerKey: string; placeKey: string }
  ledger: Ledger
  policy: Policy
  /** Whether the attempt itself saved a checkpoint. */
  hasSaved?: boolean
  /** The remaining budget, and the highest price and the cost of the order that has ended; missing without a budget. */
  budget?: { leftMicroUsd: MicroUsd; priceMaxMicroUsdPerHour: MicroUsd; costMicroUsd?: MicroUsd }
}

export interface WithdrawInput {
  order: Order
  /** Why nothing was bought. */
  end: AttemptEnd
  recordSeq: number
}

export interface FinishInput {
  jobId: string
  recordSeq: number
  status: JobStatus
  artifacts: Artifact[]
  progress?: Progress
  /** Month of the reserved budget, as in `ResolvedJob`. */
  month?: string
  /** `checkpoint.keep` of the job. */
  checkpointsKept?: number
}

export interface CopyCheckpointInput {
  jobId: string
  source: JobSource
  recordSeq: number
}

/** Which checkpoint a job begins with. */
export interface CopyOutcome {
  /** The copy, among the job's own checkpoints. */
  checkpoint: Checkpoint
  /** The original checkpoint. */
  source: CheckpointSource
  /** Newer ones that could not be used, each with the problem. */
  damaged: string[]
}

/** Activities of the orchestrator worker, on `ORCHESTRATOR_QUEUE`. */
export interface OrchestratorActivities {
  /** Checks the spec again, fixes policy, timing and runner, and records them. */
  resolveJob(input: JobInput): Promise<ResolvedJob>
  /**
   * Copies the checkpoint that a job continues from into the job's own part of the store. Throws `invalid` if no good checkpoint is left.
   */
  copyCheckpoint(input: CopyCheckpointInput): Promise<CopyOutcome>
  /** Reads the offers once and records the plan; a local activity. */
  plan(input: PlanInput): Promise<PlanOutcome>
  /** Ranks offers for a job that is not submitted yet, as `crucible plan` shows them. Records nothing. */
  previewPlan(input: PreviewInput): Promise<PlanReport>
  /** Plans a job; Temporal retries it until the answer is not `wait`. */
  planWhenAvailable(input: PlanInput): Promise<Exclude<PlanOutcome, { kind: 'wait' }>>
  /** Decides what happens next and records it; a local activity. */
  decide(input: DecideInput): Promise<Verdict>
  /** Signals a running attempt to save and stop, and ignores one that is over. A local activity. */
  stopAttempt(input: StopAttemptInput): Promise<void>
  /** Puts `drain.json`, or the next document in `drains/` for a later, shorter window. */
  drain(input: DrainInput): Promise<void>
  /** Withdraws an order that no worker picked up. Returns null if the launch has begun; the attempt must then be settled. */
  withdraw(input: WithdrawInput): Promise<{ settlement: Settlement | null }>
  /** Puts `limits/<seq>.json`. */
  extend(input: { jobId: string; attempt: number; limits: Limits }): Promise<void>
  /** Whether a job may reserve its budget; a local activity of the `treasury` workflow, without side effects. */
  admitBudget(question: BudgetQuestion): Promise<BudgetAnswer>
  /** Reserves another total budget for a running job from its month's money. Throws `quota` if that does not suffice. */
  promiseBudget(input: MonthlyBudgetRequest): Promise<void>
  /** Writes the last record, deletes secrets, reports the job's spending to the month, and removes old checkpoints. */
  finishJob(input: FinishInput): Promise<JobResult>
  /** `collectGarbage` for unfinished writes to the store, and for money reserved for jobs that were terminated by hand. */
  collectStoreGarbage(input: CollectStoreGarbageInput): Promise<GarbageVerdict[]>
}

export interface LaunchInput {
  order: Order
  recordSeq: number
}

export type LaunchOutcome =
  | { kind: 'launched'; handle: MachineHandle }
  /** Certainly nothing was bought. */
  | { kind: 'refused'; failure: Failure }
  /** Sent without an answer: the effect is unknown. Look for the machine after `findAfterMs`. */
  | { kind: 'unconfirmed'; findAfterMs: number }

export type FindOutcome =
  /**
   * Handles of the attempt's machines. If a provider made duplicates, all but the first must be terminated. `ended`, oldest first: machines
   * that the provider still lists although nothing runs on them; they were billed.
   */
  | { kind: 'found'; handles: MachineHandle[]; ended?: MachineHandle[] }
  | { kind: 'absent'; ended?: MachineHandle[] }
  /** The provider's lists may still be stale: look again after `againInMs`. */
  | { kind: 'unsettled'; againInMs: number }

export interface WatchInput {
  order: Order
  handle: MachineHandle
  timing: Timing
  /** False until the runner's first beat was reported. */
  isRunning: boolean
  /** True once the end of the machine's reservation was reported. */
  isExpiring?: boolean
  /** True once it was reported that the budget is reached. */
  isBudgetReached?: boolean
  /** Whether the machine was reported as queued; missing once it was reported as begun, and for providers without a queue. */
  isQueued?: boolean
  /** Kind of the runner's warning that was reported last, null for none; missing if warnings are no longer wanted. */
  warned?: RunnerWarning['kind'] | null
}

/** Why a watch returned. */
export type WatchOutcome =
  /** The runner beats and its workload runs. */
  | { kind: 'running' }
  /** The machine waits in its provider's queue: it does not exist yet and costs nothing. */
  | { kind: 'queued' }
  /** It left the queue and is billed from then on. Reported if it was reported as queued, or if its runner must be started. */
  | { kind: 'begun'; fromAtMs: number }
  /** There is a result, the machine is gone, or its lease has certainly run out. */
  | { kind: 'over'; end: AttemptEnd }
  /** The machine's reservation ends after this time, and its runner has not begun to drain. */
  | { kind: 'expiring'; leftMs: number }
  /** The remaining budget only covers saving and shutting down. */
  | { kind: 'budget' }
  /** The runner's warning has changed or ended. */
  | { kind: 'warned'; warning: RunnerWarning | null }
  /** The machine exists, its runner has long been silent, and both provider and store answer. */
  | { kind: 'silent'; silentMs: number }

export interface SettleInput {
  order: Order
  timing: Timing
  /** Time that a running machine gets to save and stop. */
  windowMs: number
  /** The answer to the launch; null if unknown. */
  handle: MachineHandle | null
  /** How the attempt ended, as far as the workflow saw; null if it saw nothing. The runner's result takes precedence. */
  end: AttemptEnd | null
  /** Why it was asked to save and stop, if so. */
  drainReason: DrainReason | null
  recordSeq: number
}

/** Instants of an attempt from which a recovery is split into phases; null if not recorded. */
export interface AttemptTimes extends Pick<RunnerTimes, 'firstStep'> {
  /** Time of the first step by the runner's clock, as in `RunnerTimes`. */
  firstStepAtMs: number | null
  noNoticeAtMs: number | null
  /** The runner's last beat and its result, by the runner's clock. */
  lastBeatAtMs: number | null
  finishedAtMs: number | null
  /** `drain.json`: when and why it was asked to stop; `superseded` is put once we know its end without a request. */
  drain: { reason: Drain['reason']; atMs: number } | null
}

/** Facts about an attempt whose machine is terminated or has fenced itself off. */
export interface Settlement extends TrackerNews {
  end: AttemptEnd
  handle: MachineHandle | null
  /** When billing began, if the machine may have been queued before; missing for a queued machine that was never billed. */
  billedFromAtMs?: number
  endedAtMs?: number
  costMicroUsd: MicroUsd
  /** Part of the cost for other machines that the provider made of the order; missing without any. */
  duplicatesMicroUsd?: MicroUsd
  /** The prices used; missing if nothing was bought. */
  metering?: Metering
  restoredFrom?: Checkpoint
  /** Why that checkpoint, in one clause. */
  restoredBecause?: string
  /** State of the newest checkpoint that the runner has uploaded. */
  checkpointState?: CheckpointState
  /** The runner's last warning. */
  warning?: RunnerWarning
  checkpoint?: Checkpoint
  progress?: Progress
  stepsLost?: number | null
  artifacts: Artifact[]
  phases: Phase[]
  /** Times that the runner reported; missing if it wrote no result. */
  times?: AttemptTimes
}

/** Activities of a backend's worker, on `backendQueue(name)`. */
export interface BackendActivities {
  offers(input: OffersInput): Promise<SentAnswer>
  /** Whether workers of this backend serve `launchQueue`. An answer also proves that the backend has a worker. */
  servesLaunches(input: object): Promise<boolean>
  /** Puts `order.json` and the first record, then sends the order. On `launchQueue`, it first waits for its turn. */
  launch(input: LaunchInput): Promise<LaunchOutcome>
  find(input: { order: Order }): Promise<FindOutcome>
  start(input: { order: Order; handle: MachineHandle }): Promise<void>
  /** Puts `drain.json`, and signals a machine that does not obey it. False if the document could not be written. */
  drainMachine(input: DrainMachineInput): Promise<{ isOnRecord: boolean }>
  /** Takes back the machine of a rehearsal's attempt as the provider would, and records that. */
  interrupt(input: InterruptInput): Promise<void>
  /** Ensures that nothing of the attempt runs, however it ended, and returns the facts about it. */
  settle(input: SettleInput): Promise<Settlement>
  /** Runs one pass of garbage collection. Returns what is unowned now and, of `candidates`, what was also unowned in the last pass. */
  collectGarbage(input: CollectGarbageInput): Promise<GarbageVerdict[]>
}

export type CollectStoreGarbageInput = Omit<CollectGarbageInput, 'backend'>

export interface CollectGarbageInput {
  deployment: string
  backend: BackendName
  /** Ids that were unowned a grace period ago; only these may be terminated. */
  candidates: string[]
  isDryRun: boolean
  /** Minimum age of a terminated resource, with or without an owner; 0 if missing. */
  youngMs?: number
}

/** Activity of a backend's watch worker, on `watchQueue(name)`. */
export interface WatchActivities {
  watch(input: WatchInput): Promise<WatchOutcome>
}
