import type { Client, WorkflowExecutionInfo } from '@temporalio/client'
import { isFinal, type JobReason, type JobState } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../../core/queues'
import type { RecordEntry } from '../../core/job/record'
import { SECOND_MS } from '../../core/time/time'
import type { Waiter } from '../../core/job/waiting'
import { isOpenStatus } from '../../core/workflow-status'
import { eachOf } from '../../storage/parallel'
import { readLine } from '../../storage/waiting-line'
import { ATTRIBUTE_KEYS } from '../attributes'
import type { Context } from '../context'
import { CrucibleError, GRPC, grpcCodeOf, SAME_DEPLOYMENT_HINT } from '../errors'
import { resultOf, statusFromRecord, submissionOf } from './history'
import type { JobSummary, TroubleView } from './job-view'
import { readAttempt } from './read-view'
import { endedAtMsOf, readLastEntries, recordedJobs } from './recorded-jobs'
import { StoreReads } from '../store-reads'
import { isAttemptOver, joinSummary } from './view'
import { describeJob, isForgotten } from './workflow-state'

/** @public */
export interface ListFilter {
  /** Any of these. */
  states?: readonly JobState[]
  owner?: string
  name?: string
  /** Backend, or one capacity type of it (`local:spot`). */
  backend?: string
  limit?: number
}

/** A screenful; Temporal lists open jobs before finished ones. */
export const LIST_LIMIT = 50

/** Limit on the time that the store may delay a list. */
const STORE_LIMIT_MS = 5 * SECOND_MS

/**
 * The jobs that match, newest first, from Temporal's search attributes, each joined with a few of its documents. Finished jobs
 * that Temporal has forgotten follow, from the record. If the store does not answer in time, its data is left out, with a note.
 * Throws `unavailable` if the server does not answer, and `usage` if it belongs to another deployment.
 */
export async function listJobs(context: Context, filter: ListFilter = {}): Promise<JobSummary[]> {
  const reads = new StoreReads(STORE_LIMIT_MS)
  const client = await context.temporal()
  const found = await findJobs(client, filter)
  found.sort((a, b) => b.startTime.getTime() - a.startTime.getTime())
  const read = await eachOf(found, async (execution) => ({
    execution,
    entries: await reads.tryRead(() => readLastEntries(context.store, jobIdOf(execution.workflowId))),
  }))
  refuseForeign(context, read)
  const isAnyOpen = found.some(({ status }) => isOpenStatus(status.name))
  const line = isAnyOpen ? await reads.tryRead(() => readLine(context.store)) : undefined
  const jobs = await eachOf(read, (one) => summarise(context, one, { reads, waiters: line?.waiters ?? [] }))
  const recorded = await listRecorded(context, { client, filter, reads, jobs })
  if (reads.trouble !== undefined)
    context.note(
      `The store ${context.config.home.storeUrl} does not answer (${reads.trouble}): progress and cost may be missing, as are jobs that Temporal no longer keeps.`,
    )
  return [...jobs, ...recorded]
}

/** A job from Temporal's search attributes with its record, which is missing if the store did not answer. */
interface ListedWorkflow {
  execution: WorkflowExecutionInfo
  entries: RecordEntry[] | undefined
}

/**
 * Refuses a server of another deployment. The record of a job begins before its workflow, so a server whose jobs are all missing from the
 * store belongs to another deployment. The server's own id would need a part of the client that takes longer to load than a list may.
 */
function refuseForeign({ store, config }: Context, found: ListedWorkflow[]): void {
  if (found.length === 0 || found.some(({ entries }) => entries?.length !== 0)) return
  const { address = 'localhost:7233' } = config.temporal.connection
  throw new CrucibleError(
    'usage',
    `The Temporal server at ${address} belongs to another deployment: the store ${store.url} has none of its jobs.`,
    { hint: SAME_DEPLOYMENT_HINT },
  )
}

/** Adds the jobs of the record to a list that is not full. */
async function listRecorded(
  context: Context,
  at: { client: Client; filter: ListFilter; reads: StoreReads; jobs: JobSummary[] },
): Promise<JobSummary[]> {
  const { client, filter, reads, jobs } = at
  const limit = (filter.limit ?? LIST_LIMIT) - jobs.length
  if (limit <= 0) return []
  const found = await reads.tryRead(() =>
    recordedJobs(context.store, {
      limit,
      known: new Set(jobs.map(({ id }) => id)),
      wants: (status) => matches(filter, status),
      isForgotten: (jobId) => isForgotten(client, jobId).catch(() => false),
      nowMs: context.now(),
    }),
  )
  if (found?.isCutShort === true)
    context.note('Older jobs were not searched. Show one by name: `crucible show JOB`.')
  return (found?.jobs ?? []).map((job) =>
    joinSummary({
      status: job.status,
      spec: submissionOf(job.entries)?.spec,
      newest: undefined,
      endedAtMs: endedAtMsOf(job),
      nowMs: context.now(),
    }),
  )
}

/** Applies the filter of `queryOf` to jobs that Temporal does not know. */
function matches({ states = [], owner, name, backend }: ListFilter, status: JobStatus): boolean {
  const last = status.attempts.at(-1)
  const placed = last === undefined ? '' : `${last.backend}:${last.capacityType}`
  return (
    (states.length === 0 || states.includes(status.state)) &&
    (owner === undefined || status.owner === owner) &&
    (name === undefined || status.name === name) &&
    (backend === undefined || (backend.includes(':') ? placed === backend : placed.startsWith(`${backend}:`)))
  )
}

/** The matches in Temporal's search attributes; at most its limit. */
export async function findJobs(client: Client, filter: ListFilter): Promise<WorkflowExecutionInfo[]> {
  const limit = filter.limit ?? LIST_LIMIT
  const found: WorkflowExecutionInfo[] = []
  if (limit <= 0) return found
  try {
    const query = queryOf(filter, await underWay(client, filter))
    for await (const execution of client.workflow.list({ query, pageSize: limit })) {
      found.push(execution)
      if (found.length === limit) break
    }
  } catch (error) {
    // A server without any worker so far does not know our search attributes, and has no jobs either.
    if (grpcCodeOf(error) !== GRPC.invalidArgument) throw error
  }
  return found
}

/** States that only an attempt's search attributes distinguish; a job's own show that an attempt is in progress. */
const UNDER_WAY: readonly JobState[] = ['provisioning', 'running']
const isStateOfAttempts = (state: JobState): boolean => UNDER_WAY.includes(state)

/** Returns the jobs whose attempts are in the requested states; undefined if the jobs' own entries answer the query. */
async function underWay(client: Client, filter: ListFilter): Promise<string[] | undefined> {
  const [wanted, ...others] = (filter.states ?? []).filter(isStateOfAttempts)
  if (wanted === undefined || others.length > 0) return undefined
  const ids = new Set<string>()
  const query = [
    ...commonTerms(WORKFLOW_TYPES.attempt, filter),
    `ExecutionStatus = 'Running'`,
    `${SEARCH_ATTRIBUTES.state} IN (${(wanted === 'running' ? ['running', 'stopping'] : [wanted]).map(quoted).join(', ')})`,
  ].join(' AND ')
  for await (const { workflowId } of client.workflow.list({ query, pageSize: ATTEMPTS_ASKED_MAX })) {
    ids.add(workflowId.replace(/\/\d+$/, ''))
    if (ids.size === ATTEMPTS_ASKED_MAX) break
  }
  return [...ids]
}

/** Limit on the number of ids in a query. */
const ATTEMPTS_ASKED_MAX = 500

/** Temporal's query for a filter. `underWay`: of the jobs with an attempt in progress, only these. */
export function queryOf(filter: ListFilter, underWay?: readonly string[]): string {
  return [...commonTerms(WORKFLOW_TYPES.job, filter), stateTerm(filter.states ?? [], underWay)].join(' AND ')
}

function stateTerm(states: readonly JobState[], underWay: readonly string[] | undefined): string {
  const { state } = SEARCH_ATTRIBUTES
  const isIn = (wanted: readonly JobState[]): string => `${state} IN (${wanted.map(quoted).join(', ')})`
  if (states.length === 0) return `${state} IS NOT NULL`
  if (underWay === undefined) return isIn(states)
  const others = states.filter((one) => !isStateOfAttempts(one))
  const terms = [
    ...(others.length === 0 ? [] : [isIn(others)]),
    // An id that matches no job, because the query must not be empty.
    `${isIn(UNDER_WAY)} AND WorkflowId IN (${(underWay.length === 0 ? ['none'] : underWay).map(quoted).join(', ')})`,
  ]
  return `(${terms.map((term) => `(${term})`).join(' OR ')})`
}

function commonTerms(type: string, { owner, name, backend }: ListFilter): string[] {
  const { owner: ownerKey, name: nameKey, backend: backendKey } = SEARCH_ATTRIBUTES
  return [
    `WorkflowType = ${quoted(type)}`,
    ...(owner === undefined ? [] : [`${ownerKey} = ${quoted(owner)}`]),
    ...(name === undefined ? [] : [`${nameKey} = ${quoted(name)}`]),
    ...(backend === undefined ? [] : [backendTerm(backendKey, backend)]),
  ]
}

function backendTerm(key: string, backend: string): string {
  return backend.includes(':') ? `${key} = ${quoted(backend)}` : `${key} STARTS_WITH ${quoted(`${backend}:`)}`
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

async function summarise(
  context: Context,
  { execution, entries = [] }: ListedWorkflow,
  { reads, waiters }: { reads: StoreReads; waiters: readonly Waiter[] },
): Promise<JobSummary> {
  const jobId = jobIdOf(execution.workflowId)
  const status = statusOf(jobId, execution, entries)
  const last = status.attempts.at(-1)
  const isRunning = last !== undefined && !isAttemptOver(last) && !isFinal(status.state)
  const isOpen = isOpenStatus(execution.status.name)
  return joinSummary({
    status,
    trouble: isOpen ? await troubleNow(context, status) : null,
    spec: submissionOf(entries)?.spec,
    newest: isRunning ? await reads.tryRead(() => readAttempt(context.store, jobId, last.number)) : undefined,
    endedAtMs: resultOf(entries)?.finishedAtMs ?? execution.closeTime?.getTime(),
    waiters,
    nowMs: context.now(),
  })
}

/** The obstacle of an open job. */
async function troubleNow(context: Context, status: JobStatus): Promise<TroubleView | null> {
  try {
    return (await describeJob(await context.temporal(), status.id, status.attemptsTotal)).trouble
  } catch {
    return null
  }
}

/** The search attributes contain the state of a job; its record contains the rest, unless the job belongs to another store. */
function statusOf(jobId: string, execution: WorkflowExecutionInfo, entries: RecordEntry[]): JobStatus {
  const attribute = (name: keyof typeof SEARCH_ATTRIBUTES): string =>
    execution.typedSearchAttributes.get(ATTRIBUTE_KEYS[name]) ?? ''
  const recorded = statusFromRecord(entries)
  if (recorded !== undefined && resultOf(entries) !== undefined) return recorded
  const isClosed = !isOpenStatus(execution.status.name)
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
