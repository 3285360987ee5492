/** Jobs whose workflow closed, or disappeared, without completing their record. */
import { defined } from '../../core/defined'
import type { RunnerResult } from '../../core/documents'
import { isFinal } from '../../core/job/job'
import type { AttemptRecord } from '../../core/job/ledger'
import type { RecordEntry } from '../../core/job/record'
import type { JobStatus } from '../../core/messages'
import { formatInstant } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as documents from '../../intake/documents'
import { ignoreBadDocument, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { readAttempt, readEndOf } from './attempt-documents'
import { isAttemptOver, type AttemptDocumentsRead, type Unsettled } from './view'
import type { WorkflowState } from './workflow-state'

/** How and when a workflow closed, according to Temporal. */
type Closed = Pick<WorkflowState, 'closed' | 'closedState' | 'attemptClosedAtMs' | 'failedBecause'>

/** A job with a closed workflow. */
export interface Judged {
  status: JobStatus
  /** Documents of its last attempt, if that was never settled. */
  newest: AttemptDocumentsRead | undefined
  unsettled: Unsettled | undefined
  /** Whether its machine may still run, so that nothing is decided. */
  isUndecided: boolean
}

/**
 * Judges a job whose workflow closed without completing its record: by the record, by the result that the runner of its last attempt left,
 * and by Temporal. While the machine of a job that the server has forgotten may still run, nothing is decided.
 */
export async function judgeClosed(
  store: ObjectStore,
  {
    recorded,
    entries,
    seen,
    nowMs,
    hasGaps = false,
  }: {
    recorded: JobStatus
    entries: readonly RecordEntry[]
    seen: Closed
    nowMs: number
    /** Whether entries of the record cannot be read: the end may be among them. */
    hasGaps?: boolean
  },
): Promise<Judged> {
  const last = recorded.attempts.at(-1)
  if (hasGaps && !isFinal(recorded.state) && seen.closedState === undefined) return untold(recorded, seen)
  if (isFinal(recorded.state) || last === undefined || isAttemptOver(last))
    return {
      status: closedWithoutRecord(recorded, seen),
      newest: undefined,
      unsettled: undefined,
      isUndecided: false,
    }
  const { number } = last
  const [result, newest] = await Promise.all([
    readRunnerResult(store, recorded.id, number),
    readAttempt(store, recorded.id, number),
  ])
  const { machine } = newest
  const endedAtMs =
    isForgotten(seen) && machine !== undefined
      ? await readEndOf(store, { jobId: recorded.id, attempt: number, machine })
      : undefined
  const isDecided = !isForgotten(seen) || result !== undefined || endedAtMs !== undefined
  const aliveUntilMs = isDecided ? 0 : mayRunUntilMs(newest)
  if (aliveUntilMs > nowMs)
    return {
      status: withoutWorkflow(recorded, newest, aliveUntilMs),
      newest,
      unsettled: undefined,
      isUndecided: true,
    }
  const isLaunched = entries.some(({ kind, attempt }) => kind === 'launched' && attempt === number)
  return {
    status: closedWithoutRecord(recorded, { ...seen, ...defined({ attemptClosedAtMs: endedAtMs }) }, result),
    newest,
    unsettled: { attempt: number, isLaunched },
    isUndecided: false,
  }
}

/** The end is in an entry that cannot be read, and Temporal does not know it either. */
function untold(recorded: JobStatus, seen: Closed): Judged {
  const how = CLOSED_HOW[seen.closed ?? ''] ?? 'Its workflow closed.'
  const status = {
    ...recorded,
    message: `${how} Its record cannot be read as a whole, so its end is unknown.`,
  }
  return { status, newest: undefined, unsettled: undefined, isUndecided: true }
}

/** The latest end of a machine without a workflow: that of its lease, or before its first beat that of its time to start. */
function mayRunUntilMs({ beat, machine, leaseMs = DEFAULT_TIMING.leaseMs }: AttemptDocumentsRead): number {
  if (beat !== undefined) return beat.clockMs + leaseMs
  return machine === undefined ? 0 : machine.launchedAtMs + DEFAULT_TIMING.startWithinMs
}

function withoutWorkflow(recorded: JobStatus, { machine }: AttemptDocumentsRead, untilMs: number): JobStatus {
  const name = machine === undefined ? '' : ` ${machine.backend}/${machine.id}`
  const message =
    `No longer known to Temporal. Its machine${name} may still run, until ${formatInstant(untilMs)}. ` +
    `End it with \`crucible gc\`; if that refuses because the server was reset, run \`crucible gc --adopt\` first.`
  return { ...recorded, message }
}

const CLOSED_HOW: Readonly<Record<string, string>> = {
  TERMINATED: 'Its workflow was terminated by hand.',
  TIMED_OUT: 'Its workflow timed out.',
  DELETED: 'The Temporal server has no workflow for it: its history was deleted.',
  FORGOTTEN: 'The Temporal server has no workflow for it: its history was deleted, or it never started.',
}

const isForgotten = ({ closed }: Closed): boolean => closed === 'FORGOTTEN'

/** State, reason and message of a job. */
type Outcome = Pick<JobStatus, 'state' | 'reason' | 'message'>

const REST = 'Garbage collection removes its remaining resources (crucible gc).'

function closedWithoutRecord(recorded: JobStatus, seen: Closed, result?: RunnerResult): JobStatus {
  const { closed, failedBecause } = seen
  if (closed === undefined || isFinal(recorded.state)) return recorded
  const key = isForgotten(seen) && recorded.attemptsTotal > 0 ? 'DELETED' : closed
  const how =
    CLOSED_HOW[key] ??
    (failedBecause === undefined
      ? `Its workflow closed (${closed.toLowerCase()}) without completing its record.`
      : `Its workflow failed: ${sentence(failedBecause)}`)
  const attempts = recorded.attempts.map((attempt) =>
    attempt.number !== recorded.attemptsTotal || isAttemptOver(attempt)
      ? attempt
      : endedAttempt(attempt, seen, result),
  )
  const { state, reason, message } = outcomeOf(attempts.at(-1), seen, result)
  return { ...recorded, state, reason, message: [message, how, REST].filter(Boolean).join(' '), attempts }
}

function outcomeOf(last: AttemptRecord | undefined, seen: Closed, result: RunnerResult | undefined): Outcome {
  if (last?.state === 'succeeded')
    return { state: 'succeeded', reason: 'completed', message: 'Its program finished.' }
  const { state = 'failed', reason = null } = seen.closedState ?? {}
  if (result === undefined) return { state, reason: reason ?? 'unclassified', message: '' }
  const message = `Its last attempt ended: ${sentence(result.message)}`
  if (seen.closedState !== undefined) return { state, reason: reason ?? 'unclassified', message }
  if (result.reason === 'workload' || result.reason === 'setup')
    return { state: 'failed', reason: 'workload-failed', message }
  // A workflow that is ended by hand also asks its attempt to stop.
  const ended = isForgotten(seen) ? STOPPED_BY[result.reason] : undefined
  return { state: 'failed', reason: 'unclassified', ...ended, message }
}

/** End of a job that the server has forgotten, by the reason for which its runner stopped. */
const STOPPED_BY: Partial<Record<RunnerResult['reason'], Omit<Outcome, 'message'>>> = {
  cancelled: { state: 'cancelled', reason: 'cancelled' },
  deadline: { state: 'failed', reason: 'deadline-reached' },
  budget: { state: 'failed', reason: 'budget-reached' },
  lease: { state: 'failed', reason: 'lease-lapsed' },
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** The last attempt by its result; otherwise as ended if its own workflow has closed or is gone. */
function endedAttempt(attempt: AttemptRecord, seen: Closed, result: RunnerResult | undefined): AttemptRecord {
  if (result === undefined) {
    const { attemptClosedAtMs: endedAtMs } = seen
    if (endedAtMs === undefined && !isForgotten(seen)) return attempt
    return { ...attempt, state: 'failed', reason: 'ended without a settlement', endedAtMs }
  }
  const { outcome, message, finishedAtMs, phases, progress, checkpoint, restoredFrom } = result
  return {
    ...attempt,
    state: outcome,
    reason: outcome === 'succeeded' ? 'completed' : `${result.reason}: ${message}`,
    endedAtMs: finishedAtMs,
    phases,
    progress: progress ?? undefined,
    checkpoint: checkpoint ?? undefined,
    restoredFrom: restoredFrom ?? undefined,
  }
}

/** The result that the runner of an attempt left, if it is readable. */
async function readRunnerResult(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<RunnerResult | undefined> {
  const { parseResult } = require('../../intake/documents') as typeof documents
  return readDocument(store, layout.result(jobId, attempt), parseResult).catch(ignoreBadDocument)
}
