import type { Client, WorkflowExecutionInfo } from '@temporalio/client'
import { GRPC } from '../../core/grpc'
import { isFinal, type JobState } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../../core/queues'
import { SECOND_MS } from '../../core/time/time'
import type { Waiter } from '../../core/job/waiting'
import { isOpenStatus } from '../../core/workflow-status'
import { readDeployment } from '../../storage/deployment'
import { eachOf } from '../../storage/parallel'
import { unmarkedStore } from '../../storage/mark'
import type { RecordSurvey } from '../../storage/record'
import { readLine } from '../../storage/waiting-line'
import { attributeOf, stateInTemporal, type StateKnown } from '../attributes'
import type { Context } from '../context'
import { grpcCodeOf } from '../errors'
import { refuseForeign } from '../foreign-server'
import { isCutShort, resultOf, statusFromRecord, submissionOf } from './history'
import type { JobSummary, TroubleView } from './job-view'
import { readAttempt } from './attempt-documents'
import { judgeClosed, type Judged } from './closed'
import {
  endedAtMsOf,
  readLastEntries,
  recordedJobs,
  type RecordedJob,
  type RecordedJobs,
} from './recorded-jobs'
import { StoreReads } from '../store-reads'
import { damageGaps, namesOf, storeGap } from './list-gaps'
import { gapsInWords, isAttemptOver, joinSummary, type SummaryFacts } from './view'
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

/** Workflows without a record that are passed over at most, in search of jobs. */
const OTHERS_MAX = 500
/** Number of workflows whose records are read at a time, once some were not jobs of this deployment. */
const PAGE = 50

/** Jobs, and what is missing of them. */
export interface JobList {
  jobs: JobSummary[]
  /** Number of workflows that look like jobs and are not in the store, as anybody who reaches Temporal can start them; `OTHERS_MAX` at most. */
  others: number
  /** A sentence that names the unknown parts and the cause; null if the list is complete. Unknown values are null in the jobs. */
  incomplete: string | null
}

/**
 * The jobs that match, newest first, from Temporal's search attributes, each joined with a few of its documents. Finished jobs
 * that Temporal has forgotten follow, from the record. Workflows that the store does not know are counted, and not listed. If the store
 * does not answer in time, its data is missing.
 * Throws `unavailable` if the server does not answer, and `usage` if it belongs to another deployment.
 */
export async function listWithGaps(context: Context, filter: ListFilter = {}): Promise<JobList> {
  const reads = new StoreReads(STORE_LIMIT_MS)
  const client = await context.temporal()
  const own = await reads.tryRead(() => readDeployment(context.store))
  // An empty place is not a store without jobs, so every match counts.
  if (own === undefined) reads.fail(unmarkedStore(context.store.url))
  const { read, others } = await knownJobs(context, { client, filter, reads })
  if (own !== undefined && read.length === 0 && others > 0) await refuseForeign(context, { client, own })
  const isAnyOpen = read.some(({ execution }) => isOpenStatus(execution.status.name))
  const line = isAnyOpen ? await reads.tryRead(() => readLine(context.store)) : undefined
  let asked: Promise<AttemptStates> | undefined
  const attempts = (): Promise<AttemptStates> => (asked ??= attemptStates(client))
  const all = await eachOf(read, (one) =>
    summarise(context, one, { reads, attempts, waiters: line?.waiters ?? [] }),
  )
  const jobs = all.filter(({ state }) => isWanted(filter, state))
  const recorded = await listRecorded(context, { client, filter, reads, jobs: all })
  const gaps = [
    ...(reads.trouble === undefined ? [] : [storeGap(context, reads)]),
    ...(recorded.undecided.length === 0
      ? []
      : [`Temporal did not say whether it knows ${namesOf(recorded.undecided)}.`]),
    ...(recorded.lost.length === 0
      ? []
      : [
          `No longer known to Temporal, and their machines may still run: ${namesOf(recorded.lost)}. See \`crucible show JOB\`.`,
        ]),
    ...damageGaps([...jobs, ...recorded.jobs], recorded.unreadable),
  ]
  return { jobs: [...jobs, ...recorded.jobs], others, incomplete: gaps.length === 0 ? null : gaps.join(' ') }
}

/** The search attributes decide which open jobs match; those of a workflow that was ended from outside are not its state. */
function isWanted({ states = [] }: ListFilter, state: JobState | null): boolean {
  if (states.length === 0) return true
  if (state === null) return false
  return states.includes(state) || (!isFinal(state) && !states.every(isFinal))
}

/** The jobs alone; a remark says what is missing. */
export async function listJobs(context: Context, filter: ListFilter = {}): Promise<JobSummary[]> {
  const { jobs, incomplete } = await listWithGaps(context, filter)
  if (incomplete !== null) context.note(incomplete)
  return jobs
}

/** A job from Temporal's search attributes with its record, which is missing if the store did not answer. */
interface ListedWorkflow {
  execution: WorkflowExecutionInfo
  survey: RecordSurvey | undefined
}

/**
 * The matches that the store knows, newest first, and the number of the others. The record of a job begins before its workflow, so a
 * workflow without one is not a job of this deployment. While the store does not answer, every match counts.
 */
async function knownJobs(
  context: Context,
  { client, filter, reads }: { client: Client; filter: ListFilter; reads: StoreReads },
): Promise<{ read: ListedWorkflow[]; others: number }> {
  const limit = filter.limit ?? LIST_LIMIT
  const read: ListedWorkflow[] = []
  const seen = new Set<string>()
  let others = 0
  let page: WorkflowExecutionInfo[] = []
  const readPage = async (): Promise<void> => {
    const listed = await eachOf(page, async (execution) => ({
      execution,
      survey: await reads.tryRead(() => readLastEntries(context.store, jobIdOf(execution.workflowId))),
    }))
    const known = listed.filter(({ survey }) => survey === undefined || hasRecordIn(survey))
    others += listed.length - known.length
    read.push(...known)
    page = []
  }
  if (limit > 0)
    for await (const execution of matchesOf(client, filter)) {
      // A closed workflow and a stranger's copy have one id; the server lists the open one first.
      if (seen.has(execution.workflowId)) continue
      seen.add(execution.workflowId)
      page.push(execution)
      if (page.length < (others === 0 ? limit : Math.max(PAGE, limit - read.length))) continue
      await readPage()
      if (read.length >= limit || others >= OTHERS_MAX) break
    }
  await readPage()
  const first = read.slice(0, limit)
  first.sort((a, b) => b.execution.startTime.getTime() - a.execution.startTime.getTime())
  return { read: first, others }
}

/** A record with a damaged entry is one too. */
function hasRecordIn({ entries, unreadable }: RecordSurvey): boolean {
  return entries.length + unreadable.length > 0
}

/** The jobs of the record, for a list that is not full. */
async function listRecorded(
  context: Context,
  at: { client: Client; filter: ListFilter; reads: StoreReads; jobs: JobSummary[] },
): Promise<Pick<RecordedJobs, 'undecided' | 'unreadable'> & { jobs: JobSummary[]; lost: string[] }> {
  const { client, filter, reads, jobs } = at
  const limit = (filter.limit ?? LIST_LIMIT) - jobs.length
  if (limit <= 0) return { jobs: [], undecided: [], unreadable: [], lost: [] }
  const found = await reads.tryRead(() =>
    recordedJobs(context.store, {
      limit,
      known: new Set(jobs.map(({ id }) => id)),
      wants: (job) => matches(filter, summaryOf(context, job)),
      isForgotten: (jobId) => isForgotten(client, jobId).catch(() => undefined),
      nowMs: context.now(),
    }),
  )
  if (found?.isCutShort === true)
    context.note('Older jobs were not searched. Show one by name: `crucible show JOB`.')
  const recorded = (found?.jobs ?? []).map((job) => summaryOf(context, job))
  const lost = (found?.jobs ?? []).filter(({ isUndecided }) => isUndecided).map(({ status }) => status.id)
  const { undecided = [], unreadable = [] } = found ?? {}
  return { jobs: recorded, undecided, unreadable, lost }
}

function summaryOf({ now }: Context, job: RecordedJob): JobSummary {
  const hasGaps = isCutShort(job)
  const summary = joinSummary({
    status: job.status,
    spec: submissionOf(job.entries)?.spec,
    newest: job.newest,
    unsettled: job.unsettled,
    endedAtMs: endedAtMsOf(job),
    unreadable: job.unreadable,
    isCostUnknown: hasGaps,
    nowMs: now(),
  })
  return hasGaps ? unlessOver(summary) : summary
}

/** A state that a record with gaps shows, and nothing else confirms, is only the last one that could be read. */
function unlessOver(summary: JobSummary): JobSummary {
  if (summary.state !== null && isFinal(summary.state)) return summary
  return { ...summary, state: null, reason: null }
}

/** Applies the filter of `queryOf` to jobs that Temporal does not know. */
function matches({ states = [], owner, name, backend }: ListFilter, job: JobSummary): boolean {
  const { placement, state } = job
  const placed = placement === null ? '' : `${placement.backend}:${placement.capacityType}`
  return (
    (states.length === 0 || (state !== null && states.includes(state))) &&
    (owner === undefined || job.owner === owner) &&
    (name === undefined || job.name === name) &&
    (backend === undefined || (backend.includes(':') ? placed === backend : placed.startsWith(`${backend}:`)))
  )
}

/** The matches in Temporal's search attributes, at most the limit of a page at a time. @internal A test asks the index without a store. */
export async function* matchesOf(client: Client, filter: ListFilter): AsyncGenerator<WorkflowExecutionInfo> {
  try {
    const query = queryOf(filter, await underWay(client, filter))
    yield* client.workflow.list({ query, pageSize: filter.limit ?? LIST_LIMIT })
  } catch (error) {
    // A server without any worker so far does not know our search attributes, and has no jobs either.
    if (grpcCodeOf(error) !== GRPC.invalidArgument) throw error
  }
}

/** States in which an attempt is in progress. The job's own search attributes do not distinguish them; those of the attempt do. */
const UNDER_WAY: readonly JobState[] = ['provisioning', 'running']
const isStateOfAttempts = (state: JobState): boolean => UNDER_WAY.includes(state)

/** Returns the jobs whose attempts are in the requested states; undefined if the jobs' own entries answer the query. */
async function underWay(client: Client, filter: ListFilter): Promise<string[] | undefined> {
  const [wanted, ...others] = (filter.states ?? []).filter(isStateOfAttempts)
  if (wanted === undefined || others.length > 0) return undefined
  const ids = new Set<string>()
  const terms = [
    ...commonTerms(WORKFLOW_TYPES.attempt, filter),
    `${SEARCH_ATTRIBUTES.state} IN (${(wanted === 'running' ? ['running', 'stopping'] : [wanted]).map(quoted).join(', ')})`,
  ]
  for await (const { workflowId } of runningAttempts(client, terms)) ids.add(jobPartOf(workflowId))
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
  const final = states.filter(isFinal)
  const open = states.filter((one) => !isFinal(one) && (underWay === undefined || !isStateOfAttempts(one)))
  const terms = [
    // The record knows how those ended.
    ...(final.length === 0 ? [] : [isIn(final), ENDED_FROM_OUTSIDE]),
    ...(open.length === 0 ? [] : [`${isIn(open)} AND ${NOT_ENDED_FROM_OUTSIDE}`]),
    ...(underWay === undefined
      ? []
      : // An id that matches no job, because the query must not be empty.
        [
          `${isIn(UNDER_WAY)} AND WorkflowId IN (${(underWay.length === 0 ? ['none'] : underWay).map(quoted).join(', ')})`,
        ]),
  ]
  return `(${terms.map((term) => `(${term})`).join(' OR ')})`
}

/** Workflows that could not publish their end. */
const ENDED_FROM_OUTSIDE = `ExecutionStatus = 'Terminated' OR ExecutionStatus = 'TimedOut'`
const NOT_ENDED_FROM_OUTSIDE = `ExecutionStatus != 'Terminated' AND ExecutionStatus != 'TimedOut'`

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

/** States of jobs with an attempt in progress, according to the attempts' workflows. */
type AttemptStates = ReadonlyMap<string, StateKnown>

async function attemptStates(client: Client): Promise<AttemptStates> {
  const states = new Map<string, StateKnown>()
  for await (const execution of runningAttempts(client, commonTerms(WORKFLOW_TYPES.attempt, {}))) {
    const known = stateInTemporal(execution)
    const isStarting = known?.state === 'provisioning'
    states.set(
      jobIdOf(jobPartOf(execution.workflowId)),
      isStarting ? known : { state: 'running', reason: 'training' },
    )
  }
  return states
}

/** The workflow of an attempt's job. */
function jobPartOf(attemptWorkflowId: string): string {
  return attemptWorkflowId.replace(/\/\d+$/, '')
}

/** The attempts in progress that match, up to a limit. */
async function* runningAttempts(
  client: Client,
  terms: readonly string[],
): AsyncGenerator<WorkflowExecutionInfo> {
  const query = [...terms, `ExecutionStatus = 'Running'`].join(' AND ')
  let count = 0
  for await (const execution of client.workflow.list({ query, pageSize: ATTEMPTS_ASKED_MAX })) {
    yield execution
    if (++count === ATTEMPTS_ASKED_MAX) return
  }
}

interface Surroundings {
  reads: StoreReads
  attempts: () => Promise<AttemptStates>
  waiters: readonly Waiter[]
}

async function summarise(
  context: Context,
  { execution, survey }: ListedWorkflow,
  { reads, attempts, waiters }: Surroundings,
): Promise<JobSummary> {
  const recorded = survey && statusFromRecord(survey.entries)
  const judged =
    survey === undefined || recorded === undefined
      ? undefined
      : await reads.tryRead(() => joined(context, { execution, survey, recorded }))
  if (judged === undefined || survey === undefined)
    return { ...(await fromTemporal(execution, attempts)), incomplete: gapsInWords(survey?.unreadable ?? []) }
  const isOpen = isOpenStatus(execution.status.name)
  const summary = joinSummary({
    ...judged,
    trouble: isOpen ? await troubleNow(context, judged.status) : null,
    spec: submissionOf(survey.entries)?.spec,
    unreadable: survey.unreadable,
    isCostUnknown: isCutShort(survey),
    waiters,
    nowMs: context.now(),
  })
  return judged.isUndecided === true && isCutShort(survey) ? unlessOver(summary) : summary
}

/** Joins the record of a job with what Temporal knows, and with the documents of an attempt in progress. */
async function joined(
  { store, now }: Context,
  {
    execution,
    survey,
    recorded,
  }: { execution: WorkflowExecutionInfo; survey: RecordSurvey; recorded: JobStatus },
): Promise<Pick<SummaryFacts, 'status' | 'newest' | 'unsettled' | 'endedAtMs'> & Partial<Judged>> {
  const { entries } = survey
  const result = resultOf(entries)
  const closedAtMs = execution.closeTime?.getTime()
  if (result !== undefined) return { status: recorded, newest: undefined, endedAtMs: result.finishedAtMs }
  if (!isOpenStatus(execution.status.name)) {
    const seen = {
      closed: execution.status.name,
      closedState: stateInTemporal(execution),
      // The attempt of a workflow that was ended from outside is asked to stop.
      attemptClosedAtMs: closedAtMs,
    }
    const hasGaps = isCutShort(survey)
    const judged = await judgeClosed(store, { recorded, entries, seen, nowMs: now(), hasGaps })
    return { ...judged, endedAtMs: closedAtMs }
  }
  const last = recorded.attempts.at(-1)
  const isRunning = last !== undefined && !isAttemptOver(last) && !isFinal(recorded.state)
  const shown = stateInTemporal(execution)
  const status = withShown(recorded, { shown, isRunning, hasGaps: isCutShort(survey) })
  return {
    status,
    newest: isRunning ? await readAttempt(store, recorded.id, last.number) : undefined,
    endedAtMs: closedAtMs,
  }
}

/**
 * Search attributes are not signed. They only add to the record of an open job what it lacks: how far an attempt is, or any state if entries
 * cannot be read.
 */
function withShown(
  recorded: JobStatus,
  { shown, isRunning, hasGaps }: { shown: StateKnown | undefined; isRunning: boolean; hasGaps: boolean },
): JobStatus {
  if (shown === undefined || isFinal(shown.state)) return recorded
  const isMore = hasGaps || (isRunning && (isStateOfAttempts(shown.state) || shown.state === 'stopping'))
  return isMore ? { ...recorded, state: shown.state, reason: shown.reason ?? recorded.reason } : recorded
}

/** The obstacle of an open job. */
async function troubleNow(context: Context, status: JobStatus): Promise<TroubleView | null> {
  try {
    return (await describeJob(await context.temporal(), status.id, status.attemptsTotal)).trouble
  } catch {
    return null
  }
}

/** A job as Temporal alone knows it: without progress and cost, which are in the store. */
async function fromTemporal(
  execution: WorkflowExecutionInfo,
  attempts: Surroundings['attempts'],
): Promise<JobSummary> {
  const id = jobIdOf(execution.workflowId)
  const own = stateInTemporal(execution)
  const isUnderWay = own !== undefined && isStateOfAttempts(own.state)
  const known = isUnderWay ? (await attempts()).get(id) : own
  const { state, reason } = known ?? { state: null, reason: null }
  return {
    id,
    name: attributeOf(execution, 'name'),
    owner: attributeOf(execution, 'owner'),
    workflowId: execution.workflowId,
    state,
    reason,
    isRehearsal: false,
    submittedAtMs: execution.startTime.getTime(),
    endedAtMs: execution.closeTime?.getTime() ?? null,
    progress: null,
    cost: {
      spentMicroUsd: null,
      estimatedRemainingMicroUsd: null,
      remainingBasis: null,
      budgetMicroUsd: null,
    },
    deadlineAtMs: null,
    trouble: null,
    waiting: null,
    queuedSinceMs: null,
    phase: null,
    retrying: null,
    placement: null,
    attemptsTotal: null,
    warning: null,
    incomplete: null,
  }
}

export function jobIdOf(workflowId: string): string {
  return workflowId.replace(/^job\//, '')
}
