import { withLimit } from '../deadline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import type { RecordEntry } from '../../core/job/record'
import { STATUS_QUERY, type JobStatus } from '../../core/messages'
import { attemptWorkflowId, jobWorkflowId } from '../../core/queues'
import { oneLine } from '../../core/one-line'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { isOpenStatus } from '../../core/workflow-status'
import { attributeOf, stateInTemporal, type StateKnown } from '../attributes'
import type { Context } from '../context'
import { isTemporals } from '../errors'
import { stuckOf } from '../stuck'
import type { TroubleView } from './job-view'

/** Time for the server, and a worker behind it, to answer before record and beats are used instead. */
const ANSWER_LIMIT_MS = 2 * SECOND_MS

/** The record of a job begins before its workflow; within this time it may be about to start. */
const STARTS_WITHIN_MS = MINUTE_MS

/** Whether a job without a workflow may be about to get one: its record has only the submission, which is new. */
export function mayStart(
  { submittedAtMs }: JobStatus,
  entries: readonly RecordEntry[],
  nowMs: number,
): boolean {
  return nowMs - submittedAtMs <= STARTS_WITHIN_MS && entries.every(({ kind }) => kind === 'submitted')
}

/** Temporal's data on a job. */
export interface WorkflowState {
  /** Status from the workflow itself; missing if no worker answers. */
  status: JobStatus | undefined
  /** Close status from Temporal (`TERMINATED`, `FAILED`); missing while the workflow is open. */
  closed: string | undefined
  closedAtMs: number | undefined
  /** State of a closed job in Temporal's search attributes or by its close status; missing if the workflow was ended from outside. */
  closedState: StateKnown | undefined
  /** Why a failed workflow failed, in its own words. */
  failedBecause?: string | undefined
  trouble: TroubleView | null
  /** Close time of the newest attempt's workflow; missing while it is open, or without an attempt. */
  attemptClosedAtMs: number | undefined
}

/** The workflow of a job and that of its newest attempt, or `undefined` if the server does not answer in time. */
export async function askWorkflow(
  context: Context,
  jobId: string,
  attempt: number,
): Promise<WorkflowState | undefined> {
  try {
    const client = await inTime(context.temporal())
    const [seen, status] = await Promise.all([
      describeJob(client, jobId, attempt),
      ask(client, () => client.workflow.getHandle(jobWorkflowId(jobId)).query<JobStatus>(STATUS_QUERY)).catch(
        () => undefined,
      ),
    ])
    const failedBecause = seen.closed === 'FAILED' ? await failureOf(client, jobId) : undefined
    return { ...seen, status, failedBecause }
  } catch (error) {
    return isTemporals(error, 'WorkflowNotFoundError') ? FORGOTTEN : undefined
  }
}

/** The words of the error with which a job's workflow failed, such as why it refused its input. */
async function failureOf(client: Client, jobId: string): Promise<string | undefined> {
  try {
    await ask(client, () => client.workflow.getHandle(jobWorkflowId(jobId)).result())
  } catch (error) {
    const { cause } = error as Error
    if (isTemporals(error, 'WorkflowFailedError') && cause instanceof Error) return oneLine(cause.message)
  }
  return undefined
}

/** The state of a job from its workflow and its search attributes, without the store; `undefined` if the server does not know or answer. */
export async function statusInTemporal(context: Context, jobId: string): Promise<JobStatus | undefined> {
  const seen = await askWorkflow(context, jobId, 0)
  if (seen === undefined || seen.closed === 'FORGOTTEN') return undefined
  if (seen.status !== undefined) return seen.status
  const client = await context.temporal()
  const execution = await ask(client, () => client.workflow.getHandle(jobWorkflowId(jobId)).describe())
  const { state, reason } = stateInTemporal(execution) ?? { state: 'running', reason: null }
  return {
    id: jobId,
    name: attributeOf(execution, 'name') || jobId,
    owner: attributeOf(execution, 'owner'),
    state,
    reason: reason ?? 'unclassified',
    message: 'According to Temporal.',
    submittedAtMs: execution.startTime.getTime(),
    spentMicroUsd: 0,
    attempts: [],
    attemptsTotal: 0,
    placementReasons: [],
  }
}

/** State of a job whose history no longer exists on the server. */
export const FORGOTTEN: WorkflowState = {
  status: undefined,
  closed: 'FORGOTTEN',
  closedAtMs: undefined,
  closedState: undefined,
  trouble: null,
  attemptClosedAtMs: undefined,
}

/** Whether the server answers and has no workflow of the job. */
export async function isForgotten(client: Client, jobId: string): Promise<boolean> {
  try {
    await ask(client, () => client.workflow.getHandle(jobWorkflowId(jobId)).describe())
    return false
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return true
    throw error
  }
}

/** Describes a job's workflow without asking a worker. */
export async function describeJob(
  client: Client,
  jobId: string,
  attempt: number,
): Promise<Omit<WorkflowState, 'status'>> {
  const describe = (workflowId: string): Promise<WorkflowExecutionDescription> =>
    ask(client, () => client.workflow.getHandle(workflowId).describe())
  let isChildForgotten = false
  const [job, child] = await Promise.all([
    describe(jobWorkflowId(jobId)),
    attempt === 0
      ? undefined
      : describe(attemptWorkflowId(jobId, attempt)).catch((error: unknown) => {
          isChildForgotten = isTemporals(error, 'WorkflowNotFoundError')
        }),
  ])
  const isOpen = isOpenStatus(job.status.name)
  return {
    closed: isOpen ? undefined : job.status.name,
    closedAtMs: job.closeTime?.getTime(),
    closedState: isOpen ? undefined : stateInTemporal(job),
    trouble: isOpen ? (troubleOf(job) ?? (child == null ? null : troubleOf(child))) : null,
    attemptClosedAtMs: (isChildForgotten ? job.closeTime : child?.closeTime)?.getTime(),
  }
}

function ask<T>(client: Client, question: () => Promise<T>): Promise<T> {
  return withLimit(client, ANSWER_LIMIT_MS, question)
}

/** Awaits an answer, and rejects after the limit. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const stop = new AbortController()
  const late = sleep(ANSWER_LIMIT_MS, undefined, { signal: stop.signal }).then((): never => {
    throw new Error('too late')
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    stop.abort()
    late.catch(() => undefined)
  }
}

type Raw = WorkflowExecutionDescription['raw']
type PendingActivity = NonNullable<Raw['pendingActivities']>[number]

/** `temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED`: between two tries, or before the first. */
const BETWEEN_TRIES = 1
/** `temporal.api.enums.v1.ApplicationErrorCategory.APPLICATION_ERROR_CATEGORY_BENIGN` */
const BENIGN = 1

/** The tasks that Temporal retries in a workflow, and the reasons. @internal Tests wait until a workflow is in trouble. */
export function troubleOf({
  workflowId,
  raw,
}: Pick<WorkflowExecutionDescription, 'workflowId' | 'raw'>): TroubleView | null {
  const stuck = stuckOf({ workflowId, raw })
  if (stuck !== undefined) return { message: stuck.message, tries: stuck.tries, nextTryAtMs: null }
  for (const activity of raw?.pendingActivities ?? []) {
    const message = isInTrouble(activity) ? messageOf(activity.lastFailure) : undefined
    if (message == null) continue
    const next = activity.nextAttemptScheduleTime?.seconds
    const nextTryAtMs = next == null || !isBetweenTries(activity) ? null : Number(next) * SECOND_MS
    return { message, tries: (activity.attempt ?? 1) - 1, nextTryAtMs }
  }
  return null
}

/** Temporal keeps a failure of more than some 4 kB as the cause of one of its own. */
function messageOf(failure: PendingActivity['lastFailure']): string | null | undefined {
  return (failure?.serverFailureInfo && failure.cause?.message) || failure?.message
}

function isBetweenTries({ state }: Pick<PendingActivity, 'state'>): boolean {
  return (state as number | null | undefined) === BETWEEN_TRIES
}

/** Activities that Temporal retries after a pause. */
export function waitingForRetry({
  raw,
}: Pick<WorkflowExecutionDescription, 'raw'>): { activityId: string; name: string }[] {
  return (raw.pendingActivities ?? [])
    .filter((activity) => isBetweenTries(activity) && (activity.attempt ?? 1) > 1)
    .map(({ activityId, activityType }) => ({ activityId: activityId ?? '', name: activityType?.name ?? '' }))
}

function isInTrouble(activity: PendingActivity): boolean {
  const { attempt, activityType, lastFailure } = activity
  if ((attempt ?? 1) < 2 || lastFailure == null) return false
  if ((lastFailure.applicationFailureInfo?.category as number | null | undefined) === BENIGN) return false
  // A watch runs as long as its machine, long after an earlier error.
  return activityType?.name !== 'watch' || isBetweenTries(activity)
}
