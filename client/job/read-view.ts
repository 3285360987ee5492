import { defined } from '../../core/defined'
import { isFinal } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { jobWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import { workflowPage, workflowPages } from '../../core/ui-pages'
import { nearest } from '../../intake/nearest'
import type { RecordEntry } from '../../core/job/record'
import { artifactVersions, lostArtifacts, lostInWords } from '../../storage/artifacts'
import { listCheckpoints } from '../../storage/checkpoints'
import { readDeployment } from '../../storage/deployment'
import { layout } from '../../storage/layout'
import { surveyRecords, type RecordCache, type RecordSurvey } from '../../storage/record'
import { readLine } from '../../storage/waiting-line'
import type { ObjectStore } from '../../storage/store'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { refuseForeign } from '../foreign-server'
import { checkStore, storeTrouble } from '../store-trouble'
import { readAttempt } from './attempt-documents'
import { judgeClosed, type Judged } from './closed'
import { isCutShort, resultOf, statusFromRecord, submissionOf } from './history'
import type { JobView } from './job-view'
import { recoveriesOf } from './recovery'
import { gapsInWords, joinView, type AttemptDocumentsRead } from './view'
import { askWorkflow, mayStart, statusInTemporal, type WorkflowState } from './workflow-state'

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
  const readAll = () => surveyRecords(store, jobId, { known: seenBefore.records })
  const first = await readAll()
  const known = statusFromRecord(first.entries) ?? (await statusWithoutRecord(context, jobId, first))
  const seen = resultOf(first.entries) === undefined ? await ask(context, known, first.entries) : undefined
  // The last entries of a closed workflow may have come after the first read.
  const { entries, unreadable } = seen?.closed === undefined ? first : await readAll()
  const recorded = statusFromRecord(entries) ?? known
  const hasGaps = isCutShort({ entries, unreadable })
  const [{ status, newest, unsettled, isUndecided }, checkpoints] = await Promise.all([
    present(context, { recorded, entries, seen, hasGaps }),
    listCheckpoints(store, jobId, seenBefore.checkpoints),
  ])
  const lost = status.state === 'succeeded' ? await lostOf(store, jobId, entries) : null
  const line = status.reason === 'waiting-for-capacity' ? await readLine(store) : undefined
  const isClosed = seen?.closed !== undefined && !isUndecided
  return joinView({
    status,
    isLive: resultOf(entries) !== undefined || isClosed || seen?.status !== undefined,
    trouble: seen?.trouble ?? null,
    spec: submissionOf(entries)?.spec,
    newest,
    unsettled,
    isUndecided,
    checkpoints,
    recoveries: recoveriesOf(entries, newest),
    endedAtMs: endOf(entries, status) ?? seen?.closedAtMs,
    uiUrl: uiUrlOf(config, jobWorkflowId(jobId), status.runId),
    unreadable,
    lost,
    isCostUnknown: hasGaps && seen?.status === undefined,
    waiters: line === undefined ? undefined : line.waiters,
    nowMs: context.now(),
  })
}

/** Says which artifacts of the record the store does not hold. */
async function lostOf(
  store: ObjectStore,
  jobId: string,
  entries: readonly RecordEntry[],
): Promise<string | null> {
  const hasNamed = entries.some((entry) => entry.kind === 'settled' && entry.data.artifacts.length > 0)
  if (!hasNamed) return null
  return lostInWords(lostArtifacts(entries, await artifactVersions(store, jobId)))
}

/**
 * The state of a job whose submission cannot be read, from Temporal alone. Throws `not-found` for an unknown job, and `unavailable` if
 * nothing describes it, or the place of the store is not this deployment's store.
 */
async function statusWithoutRecord(
  context: Context,
  jobId: string,
  { entries, unreadable }: RecordSurvey,
): Promise<JobStatus> {
  const isWithoutRecord = entries.length === 0 && unreadable.length === 0
  if (isWithoutRecord) await checkStore(context)
  const told = await statusInTemporal(context, jobId)
  if (told !== undefined) return told
  if (isWithoutRecord) throw await noSuchJob(context, jobId)
  const names = unreadable.length === 0 ? ['record/000000.json'] : unreadable
  throw new CrucibleError('unavailable', `${gapsInWords(names)} Temporal does not know ${jobId} either.`, {
    hint: '`crucible logs`, `crucible artifacts` and `crucible checkpoints` show what else is stored.',
  })
}

/** Temporal's data on a job that is not over according to its record. */
async function ask(
  context: Context,
  recorded: JobStatus,
  entries: readonly RecordEntry[],
): Promise<WorkflowState | undefined> {
  const seen = await askWorkflow(context, recorded.id, recorded.attemptsTotal)
  if (seen?.closed !== 'FORGOTTEN') return seen
  if (mayStart(recorded, entries, context.now())) return undefined
  await checkServer(context)
  return seen
}

/** Another deployment's server has forgotten nothing: throws `usage`. */
async function checkServer(context: Context): Promise<void> {
  try {
    const own = await readDeployment(context.store)
    if (own !== undefined) await refuseForeign(context, { client: await context.temporal(), own })
  } catch (error) {
    if (error instanceof CrucibleError && error.kind === 'usage') throw error
  }
}

/** The workflow's own status while it is open and answers; otherwise the record, and how the workflow closed. */
async function present(
  { store, now }: Context,
  {
    recorded,
    entries,
    seen,
    hasGaps,
  }: {
    recorded: JobStatus
    entries: readonly RecordEntry[]
    seen: WorkflowState | undefined
    hasGaps: boolean
  },
): Promise<Judged> {
  const told = seen?.status
  if (
    seen?.closed !== undefined &&
    !(told !== undefined && isFinal(told.state) && !isFinal(recorded.state))
  ) {
    const judged = await judgeClosed(store, { recorded, entries, seen, nowMs: now(), hasGaps })
    return { ...judged, status: { ...judged.status, ...defined({ runId: told?.runId }) } }
  }
  // A final status may be older than the latest records of the attempt.
  const status = told ?? recorded
  return { status, newest: await readNewest(store, status), unsettled: undefined, isUndecided: false }
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

/** The error for an unknown job, or what is wrong with the store in which it was looked for. */
export async function noSuchJob(context: Context, job: string): Promise<CrucibleError> {
  const trouble = await storeTrouble(context)
  if (trouble !== undefined) return trouble
  if (job.trim() === '')
    return new CrucibleError('not-found', 'The name of the job is empty.', { hint: 'See `crucible list`.' })
  const { store, config } = context
  const ids = await store.listFolders(layout.jobs()).catch(() => [])
  const near = nearest(job, [...ids.map((id) => id.replace(/-[^-]+$/, '')), ...ids])
  const meant = near === undefined ? '' : ` Did you mean ${near}?`
  return new CrucibleError('not-found', `No job ${job} in ${config.home.storeUrl}.${meant}`, {
    hint: 'See `crucible list`. To use another store, set CRUCIBLE_STORE or CRUCIBLE_HOME.',
  })
}
