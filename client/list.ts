import type { WorkflowExecutionInfo } from '@temporalio/client'
import { isFinal, type JobReason, type JobState } from '../core/job'
import type { JobStatus } from '../core/messages'
import { SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../core/queues'
import type { RecordEntry } from '../core/record'
import { eachOf } from '../storage/parallel'
import { readRecord, readRecords } from '../storage/record'
import { ATTRIBUTE_KEYS } from './attributes'
import type { Context } from './context'
import { GRPC, grpcCodeOf } from './errors'
import { ENTRIES_PER_ATTEMPT, resultOf, statusFromRecord, submissionOf } from './history'
import type { JobSummary, TroubleView } from './job-view'
import { readAttempt } from './look'
import { isAttemptOver, joinSummary } from './view'
import { describeJob } from './workflow-state'

export interface ListFilter {
  /** Any of these. */
  states?: readonly JobState[]
  owner?: string
  name?: string
  /** A backend, or one capacity type of it (`local:spot`). */
  backend?: string
  limit?: number
}

/** A screenful; Temporal lists jobs that run before those that are over. */
export const LIST_LIMIT = 50

/**
 * The jobs that match, newest first, from Temporal's index of workflows; each joined with a few documents of its own. Throws
 * `unavailable` when the server does not answer.
 */
export async function listJobs(context: Context, filter: ListFilter = {}): Promise<JobSummary[]> {
  const found = await find(context, filter)
  found.sort((a, b) => b.startTime.getTime() - a.startTime.getTime())
  return eachOf(found, (execution) => summarise(context, execution))
}

async function find(context: Context, filter: ListFilter): Promise<WorkflowExecutionInfo[]> {
  const client = await context.temporal()
  const limit = filter.limit ?? LIST_LIMIT
  const found: WorkflowExecutionInfo[] = []
  if (limit <= 0) return found
  try {
    for await (const execution of client.workflow.list({ query: queryOf(filter), pageSize: limit })) {
      found.push(execution)
      if (found.length === limit) break
    }
  } catch (error) {
    // A server that has never met a worker does not know our search attributes: it has no jobs either.
    if (grpcCodeOf(error) !== GRPC.invalidArgument) throw error
  }
  return found
}

/** Temporal's query for a filter. */
export function queryOf({ states, owner, name, backend }: ListFilter): string {
  const { state, owner: ownerKey, name: nameKey, backend: backendKey } = SEARCH_ATTRIBUTES
  const terms = [
    `WorkflowType = ${quoted(WORKFLOW_TYPES.job)}`,
    states === undefined || states.length === 0
      ? `${state} IS NOT NULL`
      : `${state} IN (${states.map(quoted).join(', ')})`,
    ...(owner === undefined ? [] : [`${ownerKey} = ${quoted(owner)}`]),
    ...(name === undefined ? [] : [`${nameKey} = ${quoted(name)}`]),
    ...(backend === undefined ? [] : [backendTerm(backendKey, backend)]),
  ]
  return terms.join(' AND ')
}

function backendTerm(key: string, backend: string): string {
  return backend.includes(':') ? `${key} = ${quoted(backend)}` : `${key} STARTS_WITH ${quoted(`${backend}:`)}`
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

async function summarise(context: Context, execution: WorkflowExecutionInfo): Promise<JobSummary> {
  const { store } = context
  const jobId = jobIdOf(execution.workflowId)
  const entries = await readRecords(store, jobId, { last: ENTRIES_PER_ATTEMPT })
  if (submissionOf(entries) === undefined) {
    const first = await readRecord(store, jobId, 0)
    if (first !== undefined) entries.unshift(first)
  }
  const status = statusOf(jobId, execution, entries)
  const last = status.attempts.at(-1)
  const isRunning = last !== undefined && !isAttemptOver(last) && !isFinal(status.state)
  const isOpen = OPEN.includes(execution.status.name)
  return joinSummary({
    status,
    trouble: isOpen ? await troubleNow(context, status) : null,
    spec: submissionOf(entries)?.spec,
    newest: isRunning ? await readAttempt(store, jobId, last.number) : undefined,
    endedAtMs: resultOf(entries)?.finishedAtMs ?? execution.closeTime?.getTime(),
    nowMs: context.now(),
  })
}

/** What an open job cannot get past. */
async function troubleNow(context: Context, status: JobStatus): Promise<TroubleView | null> {
  try {
    return (await describeJob(await context.temporal(), status.id, status.attemptsTotal)).trouble
  } catch {
    return null
  }
}

const OPEN = ['RUNNING', 'PAUSED']

/** The index knows where a job is; its record knows the rest, unless the job belongs to another store. */
function statusOf(jobId: string, execution: WorkflowExecutionInfo, entries: RecordEntry[]): JobStatus {
  const attribute = (name: keyof typeof SEARCH_ATTRIBUTES): string =>
    execution.typedSearchAttributes.get(ATTRIBUTE_KEYS[name]) ?? ''
  const recorded = statusFromRecord(entries)
  if (recorded !== undefined && resultOf(entries) !== undefined) return recorded
  const isClosed = !OPEN.includes(execution.status.name)
  return {
    id: jobId,
    name: attribute('name'),
    owner: attribute('owner'),
    message: '',
    submittedAtMs: execution.startTime.getTime(),
    spentMicroUsd: 0,
    attempts: [],
    attemptsTotal: 0,
    placementReasons: [],
    ...recorded,
    state: isClosed ? 'failed' : (attribute('state') as JobState),
    reason: isClosed ? 'unclassified' : (attribute('reason') as JobReason),
  }
}

export function jobIdOf(workflowId: string): string {
  return workflowId.replace(/^job\//, '')
}
