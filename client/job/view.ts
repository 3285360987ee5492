import { LASTING_WARNINGS, type Checkpoint } from '../../core/job/checkpoint'
import { continuationOf } from '../../core/job/continuation'
import type { Metered } from '../../core/money/meter'
import type { Beat, Billing, RunnerPhase } from '../../core/documents'
import type { MachineHandle, RealisedOffer } from '../../core/handle'
import { isFinal, type JobReason, type JobSpec } from '../../core/job/job'
import type { AttemptRecord, AttemptState } from '../../core/job/ledger'
import { costSoFar } from '../../core/money/meter'
import type { JobStatus } from '../../core/messages'
import type { MicroUsd } from '../../core/money/money'
import { jobWorkflowId } from '../../core/queues'
import { remainingOf, type RunningFacts } from '../../core/job/remaining'
import { startMaxMs, toldAtMs } from '../../core/time/machine-age'
import { formatDuration } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import {
  aheadOf,
  isLineMessage,
  lineMessage,
  poolOf,
  type LinePlace,
  type Waiter,
} from '../../core/job/waiting'
import type { AttemptView, CostView, JobSummary, JobView, RecoveryView, TroubleView } from './job-view'
import { newestProgress, progressView } from './progress-view'

/** Documents of the newest attempt, which are newer than the job's state. */
export interface AttemptDocumentsRead {
  attempt: number
  beat: Beat | undefined
  machine: MachineHandle | undefined
  /** Cost by the provider's prices, according to the watch's last report. */
  metered?: Metered | undefined
  /** Billing record of a machine that may be queued, before the watch's first report. */
  billing?: Billing | undefined
  /** Length of the lease; missing before the first one. */
  leaseMs?: number | undefined
  /** Names of documents that cannot be read; missing without any. */
  unreadable?: readonly string[]
}

/** An attempt that ended without a settlement, which would know its cost. */
export interface Unsettled {
  attempt: number
  /** Whether a machine was ordered, and may have cost something. */
  isLaunched: boolean
}

/** Inputs of a job's row in a list. */
export interface SummaryFacts {
  status: JobStatus
  spec: JobSpec | undefined
  newest: AttemptDocumentsRead | undefined
  unsettled?: Unsettled | undefined
  /** Temporal no longer knows the job, and its machine may still run: its message says so. */
  isUndecided?: boolean
  endedAtMs: number | undefined
  /** Problem that Temporal reports. */
  trouble?: TroubleView | null
  /** Names of entries of the record that cannot be read. */
  unreadable?: readonly string[] | undefined
  /** Says which artifacts are lost; null without any. */
  lost?: string | null
  /** Whether entries that cannot be read may contain costs. */
  isCostUnknown?: boolean | undefined
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

/** Facts that a job's record or workflow always has. */
type KnownState = Pick<JobView, 'state' | 'reason' | 'attemptsTotal'>

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
export function joinSummary(facts: SummaryFacts, attempts = attemptsOf(facts)): JobSummary & KnownState {
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
    phase: last?.phase ?? null,
    retrying: last?.retrying ?? null,
    placement:
      last === undefined
        ? null
        : { backend: last.backend, capacityType: last.capacityType, realised: last.realised },
    attemptsTotal: status.attemptsTotal,
    warning: last === undefined ? null : standingWarning(last),
    incomplete: incompleteIn(facts),
  }
}

function incompleteIn({ unreadable = [], newest, lost = null }: SummaryFacts): string | null {
  const ofAttempt = (newest?.unreadable ?? []).map((name) => `attempts/${newest!.attempt}/${name}`)
  const gaps = [gapsInWords([...unreadable, ...ofAttempt]), lost].filter((gap) => gap !== null)
  return gaps.length === 0 ? null : gaps.join(' ')
}

/** Documents that a remark lists. */
const NAMED_MAX = 5

/** Says which documents of a job, or of another thing, cannot be read; null without any. */
export function gapsInWords(names: readonly string[], of = ' of the job'): string | null {
  if (names.length === 0) return null
  const more = names.length > NAMED_MAX ? [`${names.length - NAMED_MAX} more`] : []
  const shown = [...names.slice(0, NAMED_MAX), ...more].join(', ')
  return `Documents${of} cannot be read, and what only they contain is unknown: ${shown}.`
}

/** The warning of an attempt, unless it has ended with it. */
function standingWarning(attempt: AttemptView): AttemptView['warning'] {
  const remains = LASTING_WARNINGS.includes(attempt.warning?.kind ?? '')
  return isAttemptOver(attempt) && !remains ? null : attempt.warning
}

/** The job's place in its line: the only definition, for every view. Null for a job that waits for something else, or for nothing. */
function waitingOf({ status, spec, waiters = [] }: SummaryFacts): LinePlace | null {
  const own = waiters.find(({ jobId }) => jobId === status.id)
  if (own === undefined || spec === undefined || status.reason !== 'waiting-for-capacity') return null
  return { position: aheadOf(own, waiters).length + 1, pool: poolOf(spec) }
}

/** Describes the job's problem. Temporal reports the number of tries; the workflow only that it retries. */
function troubleOf({ status, trouble }: SummaryFacts): TroubleView | null {
  if (trouble != null || status.trouble === undefined) return trouble ?? null
  return { message: status.trouble, tries: 1, nextTryAtMs: null }
}

function attemptsOf({ status, newest, unsettled, nowMs }: SummaryFacts): AttemptView[] {
  return status.attempts.map((attempt) => {
    const documents = newest?.attempt === attempt.number ? newest : undefined
    const view = attemptView(attempt, documents, nowMs)
    const isUnsettled = unsettled?.attempt === attempt.number && isAttemptOver(view)
    return isUnsettled ? unsettledView(view, documents, unsettled) : view
  })
}

/** Adds what the documents of an attempt without a settlement say. Only a free machine has a known cost then. */
function unsettledView(
  view: AttemptView,
  documents: AttemptDocumentsRead | undefined,
  { isLaunched }: Unsettled,
): AttemptView {
  const { machine, beat } = documents ?? {}
  const realised = machine?.realised ?? null
  return {
    ...view,
    realised,
    place: realised?.place ?? null,
    launchedAtMs: machine?.launchedAtMs ?? null,
    progress: view.progress ?? progressView(beat?.progress ?? undefined),
    checkpoint: view.checkpoint ?? beat?.checkpoint ?? null,
    restoredFrom: view.restoredFrom ?? beat?.restoredFrom ?? null,
    costMicroUsd: isLaunched && realised?.priceMicroUsdPerHour !== 0 ? null : 0,
  }
}

/** The job knows that an attempt is in progress; the attempt itself and its runner know its state. */
function stateOf(
  facts: SummaryFacts,
  last: AttemptView | undefined,
): Pick<JobView, 'state' | 'reason' | 'message'> {
  const { status, newest, nowMs } = facts
  const { state, reason } = status
  const message = messageOf(facts)
  const isUnderWay = state === 'provisioning' || state === 'running'
  if (!isUnderWay || last === undefined || isAttemptOver(last)) return { state, reason, message }
  // Without the attempt's documents, its progress is unknown.
  if (newest === undefined || newest.unreadable?.includes('beat.json') === true)
    return { state, reason, message }
  if (last.state !== 'provisioning') {
    const now = activityOf(last, newest.beat)
    const isKnown = reason === now.reason || facts.isUndecided === true
    return { state: 'running', reason: now.reason, message: isKnown ? message : said(now.message, last) }
  }
  if (last.reason === 'queued')
    return { state: 'provisioning', reason: 'queued', message: queueInWords(last.launchedAtMs, nowMs) }
  if (last.phase !== null && last.phase in PREPARING)
    return { state: 'provisioning', reason: 'starting', message: said(PREPARING[last.phase]!, last) }
  // During a pause, the job's own message explains the wait.
  if (reason !== 'launching' && reason !== 'under-way' && reason !== 'training')
    return { state: 'provisioning', reason, message }
  if (last.launchedAtMs !== null) return { state: 'provisioning', reason: 'launching', message: LAUNCHED }
  if (state === 'provisioning') return { state, reason, message }
  return { state: 'provisioning', reason: 'launching', message: 'Getting a machine.' }
}

/** Returns the present activity of a machine whose workload has started or ended. */
function activityOf({ phase }: AttemptView, beat: Beat | undefined): { reason: JobReason; message: string } {
  if (phase === 'draining')
    return { reason: 'saving', message: 'The machine is to stop, and the program saves its state.' }
  if (phase !== 'finishing') return { reason: 'training', message: 'Training.' }
  const hasRun = beat?.phases?.some(({ name }) => name === 'running') !== false
  const message = hasRun
    ? 'The program has ended, and its files are being kept.'
    : 'The machine ends without having run the program.'
  return { reason: 'finishing', message }
}

/** An activity, with what is tried again meanwhile. */
function said(message: string, { retrying }: AttemptView): string {
  return retrying === null ? message : `${message} Trying again: ${retrying.text.replace(/\.$/, '')}.`
}

const LAUNCHED = 'The machine was launched and has not reported yet.'

/** Activity of a machine before it runs the program. */
const PREPARING: Partial<Record<RunnerPhase, string>> = {
  starting: 'The machine has started.',
  fetching: 'The machine downloads code and inputs.',
  restoring: 'The machine restores the newest checkpoint.',
  pulling: 'The machine pulls the image.',
  setup: 'The machine runs the set-up.',
}

/** A position in the line is the present one: the job asks only now and then, and its own message ages meanwhile. */
function messageOf(facts: SummaryFacts): string {
  const { message } = facts.status
  const place = waitingOf(facts)
  if (place === null) return isLineMessage(message) ? 'Waiting for a machine.' : message
  return isLineMessage(message) ? lineMessage(place) : `${message} ${lineMessage(place)}`
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
  if (isAttemptOver(base)) return base
  if (documents === undefined) return { ...base, ...withoutBeat(base), costMicroUsd: null }
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
    retrying: beat?.retrying ?? null,
    costMicroUsd:
      realised === null || launchedAtMs === null
        ? costBeforeLaunch(documents)
        : costNow(documents, { realised, launchedAtMs, nowMs }),
    restoredFrom: beat?.restoredFrom ?? null,
    restoredBecause: beat?.restoredBecause ?? null,
    checkpoint: beat?.checkpoint ?? base.checkpoint,
    checkpointState: beat?.checkpointState ?? null,
    warning: beat?.warning ?? null,
    trackers: beat?.trackers ?? [],
    progress: progressView(beat?.progress ?? undefined),
  }
}

/** Nothing is billed before the launch; a machine that reports without a document has an unknown price. */
function costBeforeLaunch({ beat, metered, unreadable }: AttemptDocumentsRead): MicroUsd | null {
  return metered?.costMicroUsd ?? (beat === undefined && unreadable === undefined ? 0 : null)
}

/** The machine's own time counts where it refutes the dates, as in the watch: a clock that was set makes no machine cost more. */
function costNow(
  { beat, metered, billing, unreadable }: AttemptDocumentsRead,
  { realised, launchedAtMs, nowMs }: { realised: RealisedOffer; launchedAtMs: number; nowMs: number },
): MicroUsd | null {
  if (unreadable?.includes('billing.json') === true) return null
  if (billing?.fromAtMs === null) return 0
  const { priceMicroUsdPerHour, billedAtLeastMs, billedInStepsOfMs } = realised
  const fromAtMs = billing?.fromAtMs ?? launchedAtMs
  const own = beat && { beat, sinceBeatMs: Math.max(0, nowMs - beat.clockMs), startMs: 0 }
  const toAtMs = toldAtMs({ fromAtMs, toAtMs: nowMs, startMaxMs: startMaxMs(DEFAULT_TIMING) }, own)
  return costSoFar({ fromAtMs, priceMicroUsdPerHour, billedAtLeastMs, billedInStepsOfMs, metered }, toAtMs)
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
    retrying: null,
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
  { beat, billing, unreadable }: AttemptDocumentsRead,
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
      if (unreadable?.includes('beat.json') === true) return withoutBeat({ state, reason })
      return billing?.fromAtMs === null && isStarting ? { state, reason: 'queued' } : { state, reason }
  }
}

/** The job's own record of an attempt in progress is as old as its beginning. */
function withoutBeat({
  state,
  reason,
}: Pick<AttemptView, 'state' | 'reason'>): Pick<AttemptView, 'state' | 'reason'> {
  return state === 'provisioning' ? { state: 'running', reason: 'under-way' } : { state, reason }
}

function costOf(facts: SummaryFacts, attempts: AttemptView[]): CostView {
  const { status } = facts
  const last = attempts.at(-1)
  const running = last === undefined || isAttemptOver(last) ? undefined : last
  const left =
    running === undefined || isFinal(status.state) ? null : remainingOf(runningFacts(facts, running))
  return {
    spentMicroUsd: spentBy(facts, attempts.at(-1)),
    estimatedRemainingMicroUsd: left?.microUsd ?? null,
    remainingBasis: left?.basis ?? null,
    budgetMicroUsd: status.budgetMicroUsd ?? null,
  }
}

/** The cost of the settled attempts, and that of the last one unless it is among them. */
function spentBy(
  { status, unsettled, isCostUnknown }: SummaryFacts,
  last: AttemptView | undefined,
): MicroUsd | null {
  if (isCostUnknown === true) return null
  const isIncluded = last === undefined || (isAttemptOver(last) && unsettled?.attempt !== last.number)
  if (isIncluded) return status.spentMicroUsd
  return last.costMicroUsd === null ? null : status.spentMicroUsd + last.costMicroUsd
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
