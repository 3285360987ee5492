import type { Settlement } from '../../core/activities'
import { attemptOf, settledAttempt } from '../../core/job/attempt-record'
import { defined } from '../../core/defined'
import type { Verdict } from '../../core/job/ledger'
import { ATTEMPTS_SHOWN_MAX, type JobInput, type JobResult, type JobStatus } from '../../core/messages'
import type { RecordEntry, RecordEntryOf } from '../../core/job/record'
import type { RecordSurvey } from '../../storage/record'

/** Content of the record's first entry: the whole input of the job's workflow. */
export function submissionOf(entries: readonly RecordEntry[]): JobInput | undefined {
  return entries.find((entry) => entry.kind === 'submitted')?.data
}

/** The result of a finished job, from the record. */
export function resultOf(entries: readonly RecordEntry[]): JobResult | undefined {
  return entries.find((entry) => entry.kind === 'finished')?.data.result
}

/** Whether entries of a record that does not show its end cannot be read, or the first one or the plan of the newest attempt is missing. */
export function isCutShort({ entries, unreadable }: RecordSurvey): boolean {
  if (resultOf(entries) !== undefined) return false
  return unreadable.length > 0 || submissionOf(entries) === undefined || isPlanMissing(entries)
}

function isPlanMissing(entries: readonly RecordEntry[]): boolean {
  const newest = entries.findLast(({ kind }) => kind === 'launched')?.attempt
  const isOfNewest = ({ kind, data }: RecordEntry): boolean =>
    kind === 'planned' && data.outcome.kind === 'place' && data.outcome.order.attempt === newest
  return newest !== undefined && !entries.some(isOfNewest)
}

/** Entries of one attempt, with its plan and the wait before it: this many of the newest ones show where a job is. */
export const ENTRIES_PER_ATTEMPT = 6

/**
 * Returns the state of a job according to its record: certain for a finished job, the last decision for another. It has the form of the
 * workflow's own status, so that either can be shown. `undefined` if the job was never submitted.
 */
export function statusFromRecord(entries: readonly RecordEntry[]): JobStatus | undefined {
  const submission = submissionOf(entries)
  // The last entry has the whole state, so the submission may be unreadable.
  if (submission === undefined) return entries.findLast((entry) => entry.kind === 'finished')?.data.status
  return entries.reduce(after, firstStatus(submission))
}

function firstStatus({ jobId, spec, owner, submittedAtMs, isRehearsal }: JobInput): JobStatus {
  return {
    id: jobId,
    name: spec.name,
    owner,
    state: 'pending',
    reason: 'submitted',
    message: 'Submitted.',
    submittedAtMs,
    spentMicroUsd: 0,
    attempts: [],
    attemptsTotal: 0,
    placementReasons: [],
    isRehearsal: isRehearsal || undefined,
    deadlineAtMs: spec.deadlineAtMs,
    budgetMicroUsd: spec.budgetMicroUsd,
  }
}

function after(status: JobStatus, { atMs, kind, attempt, data }: RecordEntry): JobStatus {
  switch (kind) {
    case 'submitted':
    case 'launched':
    case 'interrupted':
      return status
    case 'resolved':
      return { ...status, reason: 'planning', message: 'Looking for an offer.' }
    case 'copied':
      return { ...status, checkpoint: data.checkpoint }
    case 'waiting':
      return afterWaiting(status, data)
    case 'planned':
      return afterPlan(status, data, atMs)
    case 'settled':
      return afterSettlement(status, attempt, data)
    case 'decided':
      return afterDecision(status, data.verdict)
    case 'finished':
      return data.status
  }
}

type Planned = RecordEntryOf<'planned'>['data']

function afterWaiting(status: JobStatus, { outcome }: Planned): JobStatus {
  if (outcome.kind !== 'wait') return status
  return { ...status, reason: 'waiting-for-capacity', message: outcome.reason }
}

/** The plan's inputs contain the earlier events, so the last few entries of a long record suffice. */
function afterPlan(status: JobStatus, { inputs, outcome }: Planned, atMs: number): JobStatus {
  if (outcome.kind !== 'place') return status
  const { startsInMs = 0 } = inputs
  const attempt = attemptOf(outcome.order, startsInMs > 0 ? atMs + startsInMs : undefined)
  return {
    ...status,
    state: 'provisioning',
    reason: 'launching',
    message: 'Getting a machine.',
    attempts: [...status.attempts, attempt].slice(-ATTEMPTS_SHOWN_MAX),
    attemptsTotal: outcome.order.attempt,
    spentMicroUsd: inputs.ledger.spentMicroUsd,
    placementReasons: outcome.words.reasons,
  }
}

function afterSettlement(status: JobStatus, number: number | undefined, settlement: Settlement): JobStatus {
  const { checkpoint, costMicroUsd } = settlement
  return {
    ...status,
    spentMicroUsd: status.spentMicroUsd + costMicroUsd,
    ...defined({ checkpoint }),
    attempts: status.attempts.map((attempt) =>
      attempt.number === number ? settledAttempt(attempt, settlement) : attempt,
    ),
  }
}

function afterDecision(status: JobStatus, { decision }: Verdict): JobStatus {
  const { reason, message } = decision
  if (decision.kind === 'finish') return { ...status, state: decision.state, reason, message }
  return { ...status, state: 'recovering', reason, message, placementReasons: [] }
}
