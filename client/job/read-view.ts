import { defined } from '../../core/defined'
import type { Billing } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { isFinal } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { jobWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import { workflowPage, workflowPages } from '../../core/ui-pages'
import type { RecordEntry } from '../../core/job/record'
import type * as documents from '../../intake/documents'
import { listCheckpoints } from '../../storage/checkpoints'
import { ignoreBadDocument, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readRecords, type RecordCache } from '../../storage/record'
import { readLine } from '../../storage/waiting-line'
import type { ObjectStore } from '../../storage/store'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { resultOf, statusFromRecord, submissionOf } from './history'
import type { JobView } from './job-view'
import { recoveriesOf } from './recovery'
import { joinView, type AttemptDocumentsRead } from './view'
import { askWorkflow, closedWithoutRecord, STARTS_WITHIN_MS, type WorkflowState } from './workflow-state'

/** Facts about a job that one reading keeps for the next. */
export class JobViewCache {
  readonly records: RecordCache = new Map()
  readonly checkpoints = new Set<string>()
}

/**
 * The current state of a job. A finished job's record is final; for any other the workflow is asked, and if it does not answer
 * within two seconds, the view is made from record and beats alone. Throws `not-found`.
 */
export async function readView(
  context: Context,
  jobId: string,
  seenBefore = new JobViewCache(),
): Promise<JobView> {
  const { store, config } = context
  const readAll = () => readRecords(store, jobId, { known: seenBefore.records })
  const first = await readAll()
  const known = statusFromRecord(first)
  if (known === undefined) throw noSuchJob(context, jobId)
  const seen = resultOf(first) === undefined ? await ask(context, known, first) : undefined
  // The last entries of a closed workflow may have come after the first read.
  const entries = seen?.closed === undefined ? first : await readAll()
  const status = present(statusFromRecord(entries) ?? known, seen)
  const [newest, checkpoints, line] = await Promise.all([
    readNewest(store, status),
    listCheckpoints(store, jobId, seenBefore.checkpoints),
    status.reason === 'waiting-for-capacity' ? readLine(store) : undefined,
  ])
  return joinView({
    status,
    isLive: resultOf(entries) !== undefined || seen?.closed !== undefined || seen?.status !== undefined,
    trouble: seen?.trouble ?? null,
    spec: submissionOf(entries)?.spec,
    newest,
    checkpoints,
    recoveries: recoveriesOf(entries, newest),
    endedAtMs: endOf(entries, status) ?? seen?.closedAtMs,
    uiUrl: uiUrlOf(config, jobWorkflowId(jobId), status.runId),
    waiters: line === undefined ? undefined : line.waiters,
    nowMs: context.now(),
  })
}

/** Temporal's data on a job that is not over according to its record. */
async function ask(
  context: Context,
  { id, attemptsTotal, submittedAtMs }: JobStatus,
  entries: readonly RecordEntry[],
): Promise<WorkflowState | undefined> {
  const seen = await askWorkflow(context, id, attemptsTotal)
  if (seen?.closed !== 'FORGOTTEN') return seen
  // A recently submitted job's workflow may be about to start.
  if (context.now() - submittedAtMs <= STARTS_WITHIN_MS) return undefined
  return { ...seen, attemptClosedAtMs: entries.at(-1)?.atMs }
}

/** Returns the workflow's own status while it is open and answers; otherwise the record, and how the workflow closed. */
function present(recorded: JobStatus, seen: WorkflowState | undefined): JobStatus {
  const told = seen?.status
  if (seen?.closed === undefined) return told ?? recorded
  // A final status may be older than the latest records of the attempt.
  return told !== undefined && isFinal(told.state) && !isFinal(recorded.state)
    ? told
    : { ...closedWithoutRecord(recorded, seen), ...defined({ runId: told?.runId }) }
}

function endOf(entries: readonly RecordEntry[], { state, attempts }: JobStatus): number | undefined {
  return resultOf(entries)?.finishedAtMs ?? (isFinal(state) ? attempts.at(-1)?.endedAtMs : undefined)
}

/**
 * The page of a workflow in Temporal's Web UI, if known: of a run, its details; otherwise the newest run's timeline, because the
 * UI has no address for the details without a run.
 */
export function uiUrlOf(config: Context['config'], workflowId: string, runId?: string): string | undefined {
  const pages = workflowPagesOf(config)
  if (pages === undefined) return undefined
  const workflow = workflowPage(pages, workflowId)
  return runId === undefined ? workflow : `${workflow}/${runId}/user-metadata`
}

/** Below it are the pages of all workflows, if known. */
export function workflowPagesOf({
  temporalUiUrl,
  temporal,
}: Pick<Context['config'], 'temporalUiUrl' | 'temporal'>): string | undefined {
  return temporalUiUrl === undefined ? undefined : workflowPages(temporalUiUrl, temporal.namespace)
}

/** Returns the page of Temporal's Web UI that lists jobs, newest first, without their attempts and Crucible's own workflows. */
export function jobsUiUrl(uiUrl: string, namespace: string): string {
  const query = encodeURIComponent(`WorkflowType="${WORKFLOW_TYPES.job}"`)
  return `${workflowPages(uiUrl, namespace)}?query=${query}`
}

/** Reads the reports of the newest attempt's machine; nothing once the attempt is over. */
async function readNewest(store: ObjectStore, status: JobStatus): Promise<AttemptDocumentsRead | undefined> {
  const last = status.attempts.at(-1)
  if (last === undefined || last.endedAtMs !== undefined) return undefined
  return readAttempt(store, status.id, last.number)
}

/** Beat and machine of one attempt, as far as they exist and are readable. */
export async function readAttempt(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<AttemptDocumentsRead> {
  const { parseBeat, parseLease } = require('../../intake/documents') as typeof documents
  const [beat, machine, lease] = await Promise.all([
    readDocument(store, layout.beat(jobId, attempt), parseBeat).catch(ignoreBadDocument),
    readMachine(store, jobId, attempt),
    readDocument(store, layout.lease(jobId, attempt), parseLease).catch(ignoreBadDocument),
  ])
  // Only a machine without a runner can be queued, and its lease does not report its cost yet.
  const billing =
    machine !== undefined && beat === undefined ? await readBilling(store, jobId, attempt) : undefined
  return { attempt, beat, machine, metered: lease?.metered, billing }
}

/** Reads when the billing of an attempt's machine began, for providers with queues. Only our own activities write this document. */
export async function readBilling(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<Billing | undefined> {
  const key = layout.billing(jobId, attempt)
  return readDocument(store, key, (text) => JSON.parse(text) as Billing).catch(ignoreBadDocument)
}

/** Reads the machine of an attempt's launch. Only our own activities write this document. */
export async function readMachine(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<MachineHandle | undefined> {
  const key = layout.machine(jobId, attempt)
  return readDocument(store, key, (text) => JSON.parse(text) as MachineHandle).catch(ignoreBadDocument)
}

export function noSuchJob({ config }: Context, job: string): CrucibleError {
  return new CrucibleError('not-found', `No job ${job} in ${config.home.storeUrl}.`, {
    hint: 'See `crucible list`. To use another store, set CRUCIBLE_STORE or CRUCIBLE_HOME.',
  })
}
