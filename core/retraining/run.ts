/** One run of a schedule: what goes in and out of the `retrain` workflow, and its activities. */
import type { BundleRef, JobState } from '../job/job'
import type { JobInput, JobResult, JobSource } from '../messages'
import type { MicroUsd } from '../money/money'
import type { BackendChoice } from '../offer'
import type { OwnedReservation } from '../reservation/reservation'
import type { ReservationInput, ReservationNotice, ReservationResult } from '../reservation/reserving'
import type { Gate, ModelRef, PromotedModel, RetrainSpec, RunDates } from './retraining'

/** Input of the `retrain` workflow, and one revision of a schedule. */
export interface RetrainInput {
  schedule: string
  /** 1, 2, ...: which version of the file it runs. */
  revision: number
  spec: RetrainSpec
  bundle: BundleRef | null
  /** Names of the secrets that its jobs need. */
  secrets: string[]
  owner: string
  deployment: string
  /** Where Temporal's Web UI has the pages of workflows; missing if that is not known. */
  uiUrl?: string
  /** State of the run before, after a continue-as-new. */
  carry?: RetrainCarry
}

export interface RetrainCarry {
  /** Missing until it is resolved. */
  run?: RunRef
  status: RetrainStatus
  placement?: RunPlacement
  /** The reservation that is searched for. */
  search?: ReservationInput
  /** Its workflow was not started yet. */
  isUnbegun?: true
  /** A person wants the training to begin before its window. */
  isStartedNow?: true
  isChecked?: true
  isRehearsed?: true
  /** News of reservations that the owner has not heard. */
  news?: string[]
  stepsTried: number
  /** How many trainings were prepared. */
  trainings: number
  recordSeq: number
}

/** `trained`: there is a model, and the file has no promotion. `kept`: the model in production stays, by the gate or by a person. */
export const RETRAIN_STATES = [
  'starting',
  'searching',
  'waiting',
  'checking',
  'training',
  'evaluating',
  'awaiting-approval',
  'promoting',
  'promoted',
  'trained',
  'kept',
  'failed',
  'skipped',
  'cancelled',
] as const
/** @experimental */
export type RetrainState = (typeof RETRAIN_STATES)[number]

export function isRetrainFinal(state: RetrainState): boolean {
  return ['promoted', 'trained', 'kept', 'failed', 'skipped', 'cancelled'].includes(state)
}

/** The run that an instant of the schedule stands for. */
export interface RunRef {
  /** `2027-04-05`, with a letter if that date ran before. */
  id: string
  /** Begins the ids of its jobs. */
  jobPrefix: string
  dates: RunDates
  /** Where its record continues, if the server has lost a history of it. */
  firstSeq?: number
}

/** A job of a run, for its report. @experimental */
export interface RunJob {
  part: 'rehearsal' | 'training' | 'evaluation' | 'production' | 'promotion'
  jobId: string
  state?: JobState
  costMicroUsd?: MicroUsd
  startedAtMs: number
  endedAtMs?: number
}

const SUFFIXES: Readonly<Record<RunJob['part'], string>> = {
  rehearsal: 'reh',
  training: 'train',
  evaluation: 'eval',
  production: 'prod',
  promotion: 'promo',
}

/** The id of a job of a run. `number` counts its trainings. */
export function runJobId(
  { jobPrefix }: Pick<RunRef, 'jobPrefix'>,
  { part, number = 1 }: { part: RunJob['part']; number?: number },
): string {
  return `${jobPrefix}-${SUFFIXES[part]}${number === 1 ? '' : `-t${number}`}`
}

/** Whether a job is one of the trainings of a run, whose first one is known. */
export function isTrainingOf(first: string, jobId: string): boolean {
  return jobId === first || (jobId.startsWith(`${first}-t`) && /^\d+$/.test(jobId.slice(first.length + 2)))
}

/** The answer of the gate. @experimental */
export interface GateVerdict {
  isPassed: boolean
  message: string
  metric: string
  value: number | null
  production: number | null
  /** Where the value of production is from: `none` without a model in production, `unknown` if that one has no such value. */
  productionFrom: 'rerun' | 'recorded' | 'none' | 'unknown'
  /** The models cannot be compared: a person may decide. */
  isUndecided?: true
}

/** Answer of the status query. @experimental */
export interface RetrainStatus {
  schedule: string
  revision: number
  owner: string
  /** Missing until it is resolved. */
  run?: RunRef
  state: RetrainState
  /** One sentence for a person. */
  message: string
  /** It waits at most until then. */
  untilAtMs?: number
  trouble?: string
  /** Its page in Temporal's Web UI. */
  pageUrl?: string
  startedAtMs: number
  /** Reservations that it asked for, with their last news; the last one is the current one. */
  reservations: ReservationNotice[]
  /** Early words: fallbacks, and what the checks found. */
  warnings: string[]
  jobs: RunJob[]
  model?: ModelRef
  verdict?: GateVerdict
  promoted?: PromotedModel
  decision?: { kind: 'approved' | 'rejected'; by: string; atMs: number; reason?: string }
  endedAtMs?: number
}

/** Where the training runs. */
export type RunPlacement =
  | { kind: 'reserved'; backend: string; reservation: OwnedReservation }
  /** Missing backends: those of the job. */
  | { kind: 'open'; backends?: readonly BackendChoice[]; regions?: readonly string[]; deadlineMs?: number }

/** Result of the `retrain` workflow, and the last entry of a run's record. @experimental */
export interface RetrainResult extends Pick<
  RetrainStatus,
  'schedule' | 'state' | 'message' | 'warnings' | 'jobs' | 'model' | 'verdict' | 'promoted' | 'startedAtMs'
> {
  run: RunRef
  costMicroUsd: MicroUsd
  /** What was paid for capacity, as a part of the cost. */
  capacityMicroUsd: MicroUsd
  endedAtMs: number
}

/** `schedules/<name>/runs/<run>/<seq>.json`. @experimental */
export interface RunEntry {
  seq: number
  atMs: number
  kind:
    | 'started'
    | 'capacity'
    | 'checked'
    | 'job'
    | 'model'
    | 'judged'
    | 'promoted'
    | 'overrun'
    | 'told'
    | 'finished'
  summary: string
  data: unknown
}

/** Names a run in every activity, with its place in the record. */
export interface RunTask {
  input: Omit<RetrainInput, 'carry'>
  run: RunRef
  recordSeq: number
}

export interface CapacityQuestion extends RunTask {
  /** How many steps were tried. */
  tried: number
  /** How many trainings were prepared. */
  trainings: number
  /** What became of the last one. */
  last?: Pick<ReservationNotice, 'state' | 'message'>
  /** Gets the news of reservations. */
  notifyWorkflowId: string
  spentMicroUsd: MicroUsd
}

export type CapacityDecision =
  | { kind: 'reserve'; index: number; input: ReservationInput; message: string }
  | { kind: 'open'; index: number; placement: Extract<RunPlacement, { kind: 'open' }>; message: string }
  | { kind: 'give-up'; message: string }

export interface PrepareJobTask extends RunTask {
  part: RunJob['part']
  jobId: string
  /** Missing for rehearsals, evaluations and promotions, which run where the file says. */
  placement?: RunPlacement
  source?: JobSource
  /** The new model, and the one in production, for templates. */
  model?: ModelRef
  production?: ModelRef
  /** The rest of the run's budget. */
  budgetMicroUsd?: MicroUsd
}

/** What the checks found. */
export interface RunChecks {
  problems: string[]
}

export interface OverrunQuestion extends RunTask {
  reservation: OwnedReservation
}

export type OverrunDecision =
  | { kind: 'continue'; backends: readonly BackendChoice[]; message: string }
  | { kind: 'stop'; message: string }

export interface PromotionTask extends RunTask {
  name: string
  isApproved?: boolean
  /** The version that it was judged against; 0 without one. */
  judgedAgainst: number
}

/** Activities of the orchestrator's worker. */
export interface RetrainingActivities {
  /** Determines which run this is, and puts its first entry. Renews the dates of the schedule. */
  resolveRun(input: {
    input: Omit<RetrainInput, 'carry'>
    workflowId: string
    runId: string
    /** The first run, if a reset has made this one of it. */
    firstRunId?: string
    scheduledAtMs: number
  }): Promise<RunRef>
  decideCapacity(question: CapacityQuestion): Promise<CapacityDecision>
  /** Puts the wish for a reservation on record, as `crucible reservations reserve` does. Returns the recorded one. */
  requestCapacity(input: ReservationInput): Promise<ReservationInput>
  /** How a reservation is that another history of the run has asked for: its last news. */
  readReservation(input: { reservationId: string }): Promise<ReservationNotice>
  decideOverrun(question: OverrunQuestion): Promise<OverrunDecision>
  judgeModel(
    input: RunTask & {
      gate: Gate
      value: number | null
      production: number | null
      productionFrom: GateVerdict['productionFrom']
    },
  ): Promise<GateVerdict>
  checkRun(input: RunTask & { placement: RunPlacement }): Promise<RunChecks>
  /** Copies code and secrets to a job and puts its first entry, so that it can start at once. */
  prepareJob(input: PrepareJobTask): Promise<JobInput>
  /** The result of a job that closed without one in its failure, as a cancelled one does; null if its record has none. */
  resultOf(input: { jobId: string }): Promise<JobResult | null>
  /** Returns at the end of a job that is no child of this history; null if it closed without a result. */
  endOfJob(input: { jobId: string }): Promise<JobResult | null>
  /** The model that a job left: its newest good checkpoint. */
  modelOf(input: RunTask & { jobId: string }): Promise<{ model: ModelRef; source: JobSource } | null>
  readMetric(input: RunTask & { jobId: string; attempts: number; metric: string }): Promise<number | null>
  /** The model in production, if its checkpoint is still there. */
  productionOf(input: {
    model: string
    /** Of the new model's data. */
    window: RunDates['window']
  }): Promise<{
    promoted: PromotedModel
    source: JobSource | null
    /** Why the new model must not replace it without a person: its data are older. */
    older?: string
  } | null>
  /**
   * Makes sure that no other run promotes before this one has, or is over. Returns what it replaces. Fails as `transient` while another run
   * promotes, and as `invalid` for a model that must not replace the current one without a person's approval.
   */
  claimPromotion(input: PromotionTask & { workflowId: string }): Promise<{ production: PromotedModel | null }>
  /** Moves the pointer. Repeating it for the same run changes nothing. Fails as `invalid` as the claim does. */
  promoteModel(
    input: PromotionTask & { model: ModelRef; metric?: { name: string; value: number } },
  ): Promise<PromotedModel>
  /** Gives back hourly capacity; prepaid capacity stays for the owner's other jobs. Returns what happened. */
  releaseCapacity(
    input: RunTask & { reservationId: string; kind: 'prepaid' | 'hourly' },
  ): Promise<{ message: string; result?: Partial<ReservationResult> }>
  /** Posts news to the webhook. */
  tellRun(input: RunTask & { status: RetrainStatus }): Promise<void>
  finishRun(input: RunTask & { result: Omit<RetrainResult, 'endedAtMs'> }): Promise<RetrainResult>
}
