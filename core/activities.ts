/** The activities by name: workflows call them through these interfaces, `activities/` implements them. */
import type { Checkpoint, CheckpointSource, CheckpointState, RunnerWarning } from './checkpoint'
import type { Artifact, Limits, Phase, Progress } from './documents'
import type {
  Drain,
  DrainInput,
  DrainMachineInput,
  DrainReason,
  JobDrainReason,
  StopAttemptInput,
} from './drain'
import type { Failure } from './failure'
import type { MachineHandle } from './handle'
import type { InterruptInput } from './interruption'
import type { JobReason, JobSpec } from './job'
import type { AttemptEnd, Avoidance, Ledger, Policy, Verdict } from './ledger'
import type { Metering } from './meter'
import type { GarbageVerdict, JobInput, JobResult, JobSource, JobStatus, ResolvedJob } from './messages'
import type { MicroUsd } from './money'
import type { BackendChoice, BackendName, Pins } from './offer'
import type { BackendAnswer, Order, Plan, SilentBackend } from './plan'
import type { SavedBefore } from './saving'
import type { Timing } from './timing'
import type { PromiseAnswer, PromiseInput, PromiseQuestion } from './treasury'
import type { OffersInput } from './waiting'

export interface PlanInput {
  jobId: string
  deployment: string
  recordSeq: number
  attempt: number
  resolved: ResolvedJob
  bundle: JobInput['bundle']
  ledger: Ledger
  avoid: Avoidance[]
  /** What the job's orders so far have pinned, by backend; missing before the first. */
  pins?: Record<BackendName, Pins>
  /** Where a migration wants to go; overrides the ranking. */
  target?: BackendChoice
  /** The order goes out only after so long. */
  startsInMs?: number
  deadlineAtMs?: number
  budgetMicroUsd?: MicroUsd
}

/** What to do next about a placement. */
export type PlanOutcome =
  | { kind: 'place'; order: Order; words: PlanWords }
  /** Nothing to be had now; worth asking again. */
  | {
      kind: 'wait'
      reason: string
      retryInMs: number
      silentBackends: SilentBackend[]
      /** Its place in line, where older jobs are ahead or one of them is ordering; missing where the provider was asked. */
      position?: number
    }
  /** No offer can ever run this job as it is written. */
  | { kind: 'never'; reason: JobReason; failure: Failure }

/** The plan in words, for the status and the Temporal UI. */
export interface PlanWords {
  /** One line: where and at what price. */
  summary: string
  /** Why there. */
  reasons: string[]
}

export interface DecideInput {
  jobId: string
  recordSeq: number
  attempt: number
  end: AttemptEnd
  /** Why the job asked the attempt to save and stop, if it did. */
  drainReason: JobDrainReason | null
  /** Every offer of the order, the one that it was made for first. */
  offerKeys: string[]
  /** Which of them the machine came of, and the place of it (`placeKey`), where there was one. */
  machine?: { offerKey: string; placeKey: string }
  ledger: Ledger
  policy: Policy
  /** The attempt saved a checkpoint of its own. */
  hasSaved?: boolean
  /** What is left of the job's budget, the dearest price of the order that has ended, and what it has cost; missing without a budget. */
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
  /** As in `ResolvedJob`. */
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
  /** Among the job's own checkpoints. */
  checkpoint: Checkpoint
  /** What it is a copy of. */
  source: CheckpointSource
  /** Newer ones that could not be used, each with what is wrong. */
  damaged: string[]
}

/** Activities of the orchestrator worker, on `ORCHESTRATOR_QUEUE`. */
export interface OrchestratorActivities {
  /** Checks the spec again, fixes policy, timing and runner, and puts them on record. */
  resolveJob(input: JobInput): Promise<ResolvedJob>
  /** Copies the checkpoint that a job goes on from into the job's own place, and puts on record which one. Throws `invalid` where none is left. */
  copyCheckpoint(input: CopyCheckpointInput): Promise<CopyOutcome>
  /** One look at the offers, on record; a local activity. */
  plan(input: PlanInput): Promise<PlanOutcome>
  /** The whole ranking for a job that is not submitted, or not yet: what `crucible plan` shows. Nothing goes on record. */
  previewPlan(input: { spec: JobSpec; savedBefore?: SavedBefore }): Promise<Plan>
  /** The same, asked again and again by Temporal's retries until the answer is not `wait`. */
  planWhenAvailable(input: PlanInput): Promise<Exclude<PlanOutcome, { kind: 'wait' }>>
  /** What next, and on record; a local activity. */
  decide(input: DecideInput): Promise<Verdict>
  /** Tells a running attempt to save and stop; one that is over need not be told. A local activity. */
  stopAttempt(input: StopAttemptInput): Promise<void>
  /** Puts `drain.json`, or one of `drains/` for a later, shorter window. */
  drain(input: DrainInput): Promise<void>
  /**
   * Takes back an order that no worker picked up: puts `drain.json`, and the settlement of an attempt that bought nothing on
   * record. Null when the launch was begun after all: then there is something to settle.
   */
  withdraw(input: WithdrawInput): Promise<{ settlement: Settlement | null }>
  /** Puts `limits/<seq>.json`. */
  extend(input: { jobId: string; attempt: number; limits: Limits }): Promise<void>
  /** Whether a job may reserve its budget; a local activity of the `treasury` workflow, without effect. */
  admitBudget(question: PromiseQuestion): Promise<PromiseAnswer>
  /** Promises a job that runs another budget in all, out of its month's money. Throws `quota` where there is not so much. */
  promiseBudget(input: PromiseInput): Promise<void>
  /** Last record, secrets deleted, the month told what was spent, old checkpoints thinned out. */
  finishJob(input: FinishInput): Promise<JobResult>
  /** `collectGarbage` for what was begun to be written into the store, and for money that was promised to jobs ended by hand. */
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
  /** Sent, and nobody knows: look for it after `findAfterMs`. */
  | { kind: 'unconfirmed'; findAfterMs: number }

export type FindOutcome =
  /** More than one when a provider made duplicates; all of them are to be ended but the first. */
  | { kind: 'found'; handles: MachineHandle[] }
  /** `ended`: those that the provider still shows though nothing of them runs any more, the oldest first. They were paid for. */
  | { kind: 'absent'; ended?: MachineHandle[] }
  /** The provider's lists may still be stale: look again after `againInMs`. */
  | { kind: 'unsettled'; againInMs: number }

export interface WatchInput {
  order: Order
  handle: MachineHandle
  timing: Timing
  /** False until the runner's first beat was reported. */
  isRunning: boolean
  /** True once it was reported that the machine's reservation ends. */
  isExpiring?: boolean
  /** Its budget was reported as reached. */
  isBudgetReached?: boolean
  /** Whether it was reported as queued; missing once it was reported as begun, and for providers without a queue. */
  isQueued?: boolean
  /** What the runner's warning was about when it was told last, null for none; missing where no more of it is wanted. */
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
  /** The machine's reservation ends in so long, and its runner does not drain by itself. */
  | { kind: 'expiring'; leftMs: number }
  /** What is left of what the attempt may cost is needed to save and stop. */
  | { kind: 'budget' }
  /** The runner warns of something else than before, or no more. */
  | { kind: 'warned'; warning: RunnerWarning | null }
  /** The machine lives, its runner has long been silent, and both provider and store answer. */
  | { kind: 'silent'; silentMs: number }

export interface SettleInput {
  order: Order
  timing: Timing
  /** Time that a machine which still runs is given to save and stop. */
  windowMs: number
  /** What the launch answered; null when nobody knows. */
  handle: MachineHandle | null
  /** How the attempt ended as far as it saw; null when it saw nothing (ended by hand). The runner's result counts more. */
  end: AttemptEnd | null
  /** Why it was asked to save and stop, if it was. */
  drainReason: DrainReason | null
  recordSeq: number
}

/** Instants of an attempt that tell where the time of a recovery goes; null where nobody wrote one down. */
export interface AttemptTimes {
  /** Of the runner's clock, as in `RunnerTimes`. */
  firstStepAtMs: number | null
  noNoticeAtMs: number | null
  /** The runner's last beat, and its result, by its clock. */
  lastBeatAtMs: number | null
  finishedAtMs: number | null
  /** `drain.json`: when it was asked to stop, and why; `superseded` is put once its end is known to us without that. */
  drain: { reason: Drain['reason']; atMs: number } | null
}

/** What is certain about an attempt whose machine is ended or has fenced itself off. */
export interface Settlement {
  end: AttemptEnd
  handle: MachineHandle | null
  /** When billing began, if the machine may have been queued before; missing then for one that was never billed. */
  billedFromAtMs?: number
  endedAtMs?: number
  costMicroUsd: MicroUsd
  /** From which prices; missing where nothing was bought. */
  metering?: Metering
  restoredFrom?: Checkpoint
  /** Why that one, in one clause. */
  restoredBecause?: string
  /** Of the newest checkpoint that the runner had put. */
  checkpointState?: CheckpointState
  /** What the runner warned of last. */
  warning?: RunnerWarning
  checkpoint?: Checkpoint
  progress?: Progress
  stepsLost?: number | null
  artifacts: Artifact[]
  phases: Phase[]
  /** Missing where the runner wrote no result. */
  times?: AttemptTimes
}

/** Activities of a backend's worker, on `backendQueue(name)`. */
export interface BackendActivities {
  offers(input: OffersInput): Promise<BackendAnswer>
  /** Puts `order.json` and the first record, then sends the order. */
  launch(input: LaunchInput): Promise<LaunchOutcome>
  find(input: { order: Order }): Promise<FindOutcome>
  start(input: { order: Order; handle: MachineHandle }): Promise<void>
  /** Puts `drain.json`, and presses a machine that does not obey it. False where the document could not be put. */
  drainMachine(input: DrainMachineInput): Promise<{ isOnRecord: boolean }>
  /** Takes the machine of a rehearsal's attempt back as the provider would, and puts that on record. */
  interrupt(input: InterruptInput): Promise<void>
  /** Whatever became of the attempt, makes sure that nothing of it runs, and says what is certain. */
  settle(input: SettleInput): Promise<Settlement>
  /** One look of garbage collection: what is unowned now, and, of `candidates`, what was so the last time too. */
  collectGarbage(input: CollectGarbageInput): Promise<GarbageVerdict[]>
}

export type CollectStoreGarbageInput = Omit<CollectGarbageInput, 'backend'>

export interface CollectGarbageInput {
  deployment: string
  backend: BackendName
  /** Ids found unowned a grace ago; only these may be ended. */
  candidates: string[]
  isDryRun: boolean
  /** Nothing younger than this is ended, whoever owns it; 0 when missing. */
  youngMs?: number
}

/** Activity of a backend's watch worker, on `watchQueue(name)`. */
export interface WatchActivities {
  watch(input: WatchInput): Promise<WatchOutcome>
}
