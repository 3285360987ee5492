/** One run of a schedule: inputs and results of the `retrain` workflow, and its activities. */
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
  /** Address of Temporal's Web UI; missing if unknown. */
  uiUrl?: string
  /** State of the previous run of the workflow, after a continue-as-new. */
  carry?: RetrainCarry
}

export interface RetrainCarry {
  /** The run; missing until it is resolved. */
  run?: RunRef
  status: RetrainStatus
  placement?: RunPlacement
  /** The reservation that is searched for. */
  search?: ReservationInput
  /** Whether its workflow has not been started yet. */
  isUnbegun?: true
  /** A person wants the training to begin before its window. */
  isStartedNow?: true
  isChecked?: true
  isRehearsed?: true
  /** Events of reservations that the owner has not received yet. */
  news?: string[]
  stepsTried: number
  /** How many trainings were prepared. */
  trainings: number
  recordSeq: number
}

/** `trained`: a model exists, and the file has no promotion. `kept`: the gate or a person kept the model in production. @experimental */
export type RetrainState =
  | 'starting'
  | 'searching'
  | 'waiting'
  | 'checking'
  | 'training'
  | 'evaluating'
  | 'awaiting-approval'
  | 'promoting'
  | 'promoted'
  | 'trained'
  | 'kept'
  | 'failed'
  | 'skipped'
  | 'cancelled'

export function isRetrainFinal(state: RetrainState): boolean {
  return ['promoted', 'trained', 'kept', 'failed', 'skipped', 'cancelled'].includes(state)
}

/** The run for an instant of the schedule. */
export interface RunRef {
  /** `2027-04-05`, with a letter if that date ran before. */
  id: string
  /** Begins the ids of its jobs. */
  jobPrefix: string
  dates: RunDates
  /** First sequence number of its record, if the server lost a history of the run. */
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

/** Whether a job is one of the trainings of a run, given the id of its first one. */
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
  /** Source of the production value: `none` without a model in production, `unknown` if that model has no such value. */
  productionFrom: 'rerun' | 'recorded' | 'none' | 'unknown'
  /** The models cannot be compared: a person may decide. */
  isUndecided?: true
}

/** Answer of the status query. @experimental */
export interface RetrainStatus {
  schedule: string
  revision: number
  owner: string
  /** The run; missing until it is resolved. */
  run?: RunRef
  state: RetrainState
  /** Message for a person, in one sentence. */
  message: string
  /** End of its wait. */
  untilAtMs?: number
  trouble?: string
  /** Its page in Temporal's Web UI. */
  pageUrl?: string
  startedAtMs: number
  /** Reservations of the run with their last reports; the last one is the current one. */
  reservations: ReservationNotice[]
  /** Warnings: fallbacks, and findings of the checks. */
  warnings: string[]
  jobs: RunJob[]
  model?: ModelRef
  verdict?: GateVerdict
  promoted?: PromotedModel
  decision?: { kind: 'approved' | 'rejected'; by: string; atMs: number; reason?: string }
  endedAtMs?: number
}

/** Placement of the training. */
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
  /** Part of the cost that was paid for capacity. */
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
  /** Number of tried steps. */
  tried: number
  /** How many trainings were prepared. */
  trainings: number
  /** State and message of the last reservation. */
  last?: Pick<ReservationNotice, 'state' | 'message'>
  /** Workflow that receives the events of reservations. */
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
  /** Placement; missing for rehearsals, evaluations and promotions, whose file names their backends. */
  placement?: RunPlacement
  source?: JobSource
  /** The new model, and the one in production, for templates. */
  model?: ModelRef
  production?: ModelRef
  /** The rest of the run's budget. */
  budgetMicroUsd?: MicroUsd
}

/** Results of the checks. */
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
  /**
   * Determines which run this is, uses up the permission of its schedule, and puts its first entry. Renews the dates of the schedule. Fails
   * with the code `NOT_ALLOWED` if the schedule does not allow the run.
   */
  resolveRun(input: {
    input: Omit<RetrainInput, 'carry'>
    workflowId: string
    runId: string
    /** Id of the first run, if a reset has made this run from it. */
    firstRunId?: string
    scheduledAtMs: number
  }): Promise<RunRef>
  decideCapacity(question: CapacityQuestion): Promise<CapacityDecision>
  /** Records the request for a reservation, as `crucible reservations reserve` does. Returns the recorded one. */
  requestCapacity(input: ReservationInput): Promise<ReservationInput>
  /** Reads the last report about a reservation that another history of the run requested. */
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
  /** Returns the result of a job whose failure contains none, such as a cancelled job; null if its record has none. */
  resultOf(input: { jobId: string }): Promise<JobResult | null>
  /** Returns the result at the end of a job that is not a child of this history; null if it closed without one. */
  endOfJob(input: { jobId: string }): Promise<JobResult | null>
  /** The model that a job left: its newest good checkpoint. */
  modelOf(input: RunTask & { jobId: string }): Promise<{ model: ModelRef; source: JobSource } | null>
  readMetric(input: RunTask & { jobId: string; attempts: number; metric: string }): Promise<number | null>
  /** Returns the model in production, if its checkpoint still exists. */
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
   * Ensures that no other run promotes until this one has promoted or is over. Returns the model that is replaced. Fails as `transient`
   * while another run promotes, and as `invalid` for a model that must not replace the current one without a person's approval.
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
  /** Posts an event to the webhook. */
  tellRun(input: RunTask & { status: RetrainStatus }): Promise<void>
  finishRun(input: RunTask & { result: Omit<RetrainResult, 'endedAtMs'> }): Promise<RetrainResult>
}
