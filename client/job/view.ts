import { MISSING_OUTPUTS, type Checkpoint } from '../../core/job/checkpoint'
import { continuationOf } from '../../core/job/continuation'
import type { Metered } from '../../core/money/meter'
import type { Beat, Billing, RunnerPhase } from '../../core/documents'
import type { MachineHandle, RealisedOffer } from '../../core/handle'
import { isFinal, type JobSpec } from '../../core/job/job'
import type { AttemptRecord, AttemptState } from '../../core/job/ledger'
import { defined } from '../../core/defined'
import { spend, spendOver } from '../../core/money/meter'
import type { JobStatus } from '../../core/messages'
import type { MicroUsd } from '../../core/money/money'
import { jobWorkflowId } from '../../core/queues'
import { remainingOf, type RunningFacts } from '../../core/job/remaining'
import { formatDuration } from '../../core/time/time'
import { aheadOf, poolOf, type LinePlace, type Waiter } from '../../core/job/waiting'
import type { AttemptView, CostView, JobSummary, JobView, RecoveryView, TroubleView } from './job-view'
import { newestProgress, progressView } from './progress-view'

/** Documents of the newest attempt, which are newer than the job's state. */
export interface AttemptDocumentsRead {
  attempt: number
  beat: Beat | undefined
  machine: MachineHandle | undefined
  /** Cost by the provider's prices, according to the watch's last report. */
  metered?: Metered | undefined
  /** Billing record that is read before the first beat of a machine that may be queued. */
  billing?: Billing | undefined
}

/** Inputs of a job's row in a list. */
export interface SummaryFacts {
  status: JobStatus
  spec: JobSpec | undefined
  newest: AttemptDocumentsRead | undefined
  endedAtMs: number | undefined
  /** Problem that Temporal reports. */
  trouble?: TroubleView | null
  /** The waiting jobs, from the store; missing if it was not read. */
  waiters?: readonly Waiter[]
  nowMs: number
}

/** Inputs of a job's view. */
export interface JobFacts extends SummaryFacts {
  isLive: boolean
  checkpoints: Checkpoint[]
  recoveries: RecoveryView[]
  uiUrl: string | undefined
}

/** Combines the job's workflow, its record and its runner's documents. Pure. */
export function joinView(facts: JobFacts): JobView {
  const { status, checkpoints, recoveries, isLive, uiUrl } = facts
  const attempts = attemptsOf(facts)
  const view = {
    ...joinSummary(facts, attempts),
    ...stateOf(facts, attempts.at(-1)),
    isLive,
    checkpoints: newestOf(checkpoints, attempts),
    attempts,
    recoveries,
    // Each attempt knows the runs of earlier ones, once its runner has begun.
    trackers: attempts.findLast(({ trackers }) => trackers.length > 0)?.trackers ?? [],
    placementReasons: status.placementReasons,
    uiUrl: uiUrl ?? null,
  }
  const { budgetMicroUsd } = view.cost
  const checkpoint = view.checkpoints.newest
  return { ...view, continuation: continuationOf({ ...view, checkpoint, budgetMicroUsd }) }
}

/** The newest checkpoint in the store, with the runner's data on it if both are the same. */
function newestOf([newest, ...others]: Checkpoint[], attempts: AttemptView[]): JobView['checkpoints'] {
  if (newest === undefined) return { newest: null, state: null, count: 0 }
  const told = attempts.findLast(({ checkpoint }) => checkpoint?.id === newest.id)
  return {
    newest: told?.checkpoint ?? newest,
    state: told?.checkpointState ?? null,
    count: others.length + 1,
  }
}

/** Joins the facts of a job for a list. */
export function joinSummary(facts: SummaryFacts, attempts = attemptsOf(facts)): JobSummary {
  const { status, endedAtMs } = facts
  const last = attempts.at(-1)
  const { state, reason } = stateOf(facts, last)
  return {
    id: status.id,
    name: status.name,
    owner: status.owner,
    workflowId: jobWorkflowId(status.id),
    state,
    reason,
    isRehearsal: status.isRehearsal === true,
    submittedAtMs: status.submittedAtMs,
    endedAtMs: endedAtMs ?? null,
    progress: newestProgress(attempts),
    cost: costOf(facts, attempts),
    deadlineAtMs: status.deadlineAtMs ?? null,
    trouble: troubleOf(facts),
    waiting: waitingOf(facts),
    queuedSinceMs: reason === 'queued' ? (last?.launchedAtMs ?? null) : null,
    placement:
      last === undefined
        ? null
        : { backend: last.backend, capacityType: last.capacityType, realised: last.realised },
    attemptsTotal: status.attemptsTotal,
    warning: last === undefined ? null : standingWarning(last),
  }
}

/** The warning of an attempt, unless it has ended with it. */
function standingWarning(attempt: AttemptView): AttemptView['warning'] {
  return isAttemptOver(attempt) && attempt.warning?.kind !== MISSING_OUTPUTS ? null : attempt.warning
}

function waitingOf({ status, spec, waiters = [] }: SummaryFacts): LinePlace | null {
  const own = waiters.find(({ jobId }) => jobId === status.id)
  if (own === undefined || spec === undefined || isFinal(status.state)) return null
  return { position: aheadOf(own, waiters).length + 1, pool: poolOf(spec) }
}

/** Describes the job's problem. Temporal reports the number of tries; the workflow only that it retries. */
function troubleOf({ status, trouble }: SummaryFacts): TroubleView | null {
  if (trouble != null || status.trouble === undefined) return trouble ?? null
  return { message: status.trouble, tries: 1, nextTryAtMs: null }
}

function attemptsOf({ status, newest, nowMs }: SummaryFacts): AttemptView[] {
  return status.attempts.map((attempt) =>
    attemptView(attempt, newest?.attempt === attempt.number ? newest : undefined, nowMs),
  )
}

/** The job knows that an attempt is in progress; the attempt itself and its runner know its state. */
function stateOf(
  { status: { state, reason, message }, newest, nowMs }: SummaryFacts,
  last: AttemptView | undefined,
): Pick<JobView, 'state' | 'reason' | 'message'> {
  const isUnderWay = state === 'provisioning' || state === 'running'
  if (!isUnderWay || last === undefined || isAttemptOver(last)) return { state, reason, message }
  if (last.state !== 'provisioning')
    return { state: 'running', reason: 'training', message: reason === 'training' ? message : 'Training.' }
  if (last.reason === 'queued')
    return { state: 'provisioning', reason: 'queued', message: queueInWords(last.launchedAtMs, nowMs) }
  if (last.phase !== null && last.phase in PREPARING)
    return { state: 'provisioning', reason: 'starting', message: PREPARING[last.phase]! }
  // Without the attempt's documents, its progress is unknown.
  if (state === 'provisioning' || newest === undefined) return { state, reason, message }
  // During a pause, the job's own message explains the wait.
  return reason === 'under-way' || reason === 'training'
    ? { state: 'provisioning', reason: 'launching', message: 'Getting a machine.' }
    : { state: 'provisioning', reason, message }
}

/** Activity of a machine before it runs the program. */
const PREPARING: Partial<Record<RunnerPhase, string>> = {
  starting: 'The machine has started.',
  fetching: 'The machine downloads code and inputs.',
  restoring: 'The machine restores the newest checkpoint.',
  pulling: 'The machine pulls the image.',
  setup: 'The machine runs the set-up.',
}

function queueInWords(launchedAtMs: number | null, nowMs: number): string {
  const sinceMs = launchedAtMs === null ? 0 : nowMs - launchedAtMs
  return `Queued by the provider for ${formatDuration(sinceMs)}, which costs nothing.`
}

/** True if no part of the attempt is running. */
export function isAttemptOver({
  endedAtMs,
  state,
}: {
  endedAtMs?: number | null
  state: AttemptState
}): boolean {
  return endedAtMs != null || !['provisioning', 'running', 'stopping'].includes(state)
}

function attemptView(
  attempt: AttemptRecord,
  documents: AttemptDocumentsRead | undefined,
  nowMs: number,
): AttemptView {
  const base = settledView(attempt)
  if (documents === undefined || isAttemptOver(base)) return base
  const { beat, machine, billing } = documents
  const realised = base.realised ?? machine?.realised ?? null
  const launchedAtMs = base.launchedAtMs ?? machine?.launchedAtMs ?? null
  return {
    ...base,
    ...stateNow(attempt, documents),
    realised,
    launchedAtMs,
    billedFromAtMs: billing?.fromAtMs ?? null,
    place: realised?.place ?? null,
    phase: beat?.phase ?? null,
    rebalanceAtMs: beat?.rebalanceAtMs ?? null,
    saving: beat?.saving ?? null,
    costMicroUsd:
      realised === null || launchedAtMs === null ? 0 : costNow(documents, { realised, launchedAtMs, nowMs }),
    restoredFrom: beat?.restoredFrom ?? null,
    restoredBecause: beat?.restoredBecause ?? null,
    checkpoint: beat?.checkpoint ?? base.checkpoint,
    checkpointState: beat?.checkpointState ?? null,
    warning: beat?.warning ?? null,
    trackers: beat?.trackers ?? [],
    progress: progressView(beat?.progress ?? undefined),
  }
}

/** Returns the cost from the watch's last report, extrapolated at the price in it. */
function costNow(
  { metered, billing }: AttemptDocumentsRead,
  { realised, launchedAtMs, nowMs }: { realised: RealisedOffer; launchedAtMs: number; nowMs: number },
): MicroUsd {
  const { priceMicroUsdPerHour, billedAtLeastMs, billedInStepsOfMs } = realised
  if (billing?.fromAtMs === null) return 0
  const fromAtMs = billing?.fromAtMs ?? launchedAtMs
  const rounding = defined({ billedAtLeastMs, billedInStepsOfMs })
  if (metered === undefined) return spend({ fromAtMs, priceMicroUsdPerHour, ...rounding }, nowMs)
  const sinceMs = Math.max(0, nowMs - metered.toAtMs)
  return metered.costMicroUsd + spendOver(sinceMs, metered.priceMicroUsdPerHour)
}

function settledView(attempt: AttemptRecord): AttemptView {
  const { number, workflowId, backend, capacityType, state, reason, costMicroUsd } = attempt
  return {
    number,
    workflowId,
    backend,
    capacityType,
    realised: attempt.realised ?? null,
    place: attempt.realised?.place ?? null,
    state,
    reason,
    phase: null,
    rebalanceAtMs: null,
    saving: null,
    launchedAtMs: attempt.launchedAtMs ?? null,
    billedFromAtMs: attempt.billedFromAtMs ?? null,
    endedAtMs: attempt.endedAtMs ?? null,
    costMicroUsd,
    costBasis: attempt.costBasis ?? null,
    restoredFrom: attempt.restoredFrom ?? null,
    restoredBecause: attempt.restoredBecause ?? null,
    checkpoint: attempt.checkpoint ?? null,
    checkpointState: attempt.checkpointState ?? null,
    warning: attempt.warning ?? null,
    trackers: attempt.trackers ?? [],
    progress: progressView(attempt.progress),
    // The steps since the last checkpoint are not lost if the work is done.
    stepsLost: state === 'succeeded' ? 0 : (attempt.stepsLost ?? null),
    phases: attempt.phases ?? [],
  }
}

/** The runner is the first to know that its workload runs, or saves and stops. */
function stateNow(
  { state, reason }: AttemptRecord,
  { beat, billing }: AttemptDocumentsRead,
): Pick<AttemptView, 'state' | 'reason'> {
  const isStarting = state === 'provisioning'
  switch (beat?.phase) {
    case 'draining':
      return { state: 'stopping', reason: state === 'stopping' ? reason : 'saving' }
    case 'running':
    case 'finishing':
      return isStarting ? { state: 'running', reason: 'training' } : { state, reason }
    case 'starting':
    case 'fetching':
    case 'restoring':
    case 'pulling':
    case 'setup':
      return isStarting ? { state, reason: 'starting' } : { state, reason }
    case undefined:
      return billing?.fromAtMs === null && isStarting ? { state, reason: 'queued' } : { state, reason }
  }
}

function costOf(facts: SummaryFacts, attempts: AttemptView[]): CostView {
  const { status } = facts
  const last = attempts.at(-1)
  const running = last === undefined || isAttemptOver(last) ? undefined : last
  const left =
    running === undefined || isFinal(status.state) ? null : remainingOf(runningFacts(facts, running))
  return {
    spentMicroUsd: status.spentMicroUsd + (running?.costMicroUsd ?? 0),
    estimatedRemainingMicroUsd: left?.microUsd ?? null,
    remainingBasis: left?.basis ?? null,
    budgetMicroUsd: status.budgetMicroUsd ?? null,
  }
}

function runningFacts({ status, newest, nowMs }: SummaryFacts, running: AttemptView): RunningFacts {
  return {
    expected: status.attempts.at(-1)?.expected,
    priceMicroUsdPerHour: running.realised?.priceMicroUsdPerHour,
    launchedAtMs: running.launchedAtMs,
    beat: newest?.attempt === running.number ? newest.beat : undefined,
    nowMs,
  }
}
