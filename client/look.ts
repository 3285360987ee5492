import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkflowExecutionDescription } from '@temporalio/client'
import type { MachineHandle } from '../core/handle'
import { isFinal } from '../core/job'
import { STATUS_QUERY, type JobStatus } from '../core/messages'
import { jobWorkflowId, WORKFLOW_TYPES } from '../core/queues'
import type { RecordEntry } from '../core/record'
import { SECOND_MS } from '../core/time'
import type * as documents from '../intake/documents'
import { listCheckpoints } from '../storage/checkpoints'
import { readDocument } from '../storage/json'
import { layout } from '../storage/layout'
import { readRecords } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import type { Context } from './context'
import { CrucibleError, isNamed } from './errors'
import { resultOf, statusFromRecord, submissionOf } from './history'
import type { JobView } from './job-view'
import { recoveriesOf } from './recovery'
import { joinView, type AttemptDocumentsRead } from './view'

/** Schemas take longer to load than most commands take in all; a job that does not run needs none. */
const lazily = createRequire(__filename)

/** How long the server, and a worker behind it, have to answer before record and beats must do. */
const ANSWER_LIMIT_MS = 2 * SECOND_MS

/**
 * A job as it is now. A finished job's record is the last word; for any other the workflow is asked, and where it does not answer
 * within two seconds the picture is made of record and beats alone. Throws `not-found`.
 */
export async function lookAt(context: Context, jobId: string): Promise<JobView> {
  const { store, config } = context
  const entries = await readRecords(store, jobId)
  const known = statusFromRecord(entries)
  if (known === undefined) throw noSuchJob(context, jobId)
  const live =
    isFinal(known.state) && resultOf(entries) !== undefined ? known : await askWorkflow(context, jobId, known)
  const status = live ?? known
  const [newest, checkpoints] = await Promise.all([readNewest(store, status), listCheckpoints(store, jobId)])
  return joinView({
    status,
    isLive: live !== undefined,
    spec: submissionOf(entries)?.spec,
    newest,
    checkpoints,
    recoveries: recoveriesOf(entries, newest),
    endedAtMs: endOf(entries, status),
    uiUrl: uiUrlOf(config, jobWorkflowId(jobId), status.runId),
    nowMs: context.now(),
  })
}

function endOf(entries: readonly RecordEntry[], { state, attempts }: JobStatus): number | undefined {
  return resultOf(entries)?.finishedAtMs ?? (isFinal(state) ? attempts.at(-1)?.endedAtMs : undefined)
}

/**
 * The page of a workflow in Temporal's Web UI, where that is known: of a run, what the workflow says of itself; else the newest
 * run's timeline, for the UI has no address of the former without a run.
 */
export function uiUrlOf(
  { temporalUiUrl, temporal }: Context['config'],
  workflowId: string,
  runId?: string,
): string | undefined {
  if (temporalUiUrl === undefined) return undefined
  const workflow = `${temporalUiUrl}/namespaces/${encodeURIComponent(temporal.namespace)}/workflows/${encodeURIComponent(workflowId)}`
  return runId === undefined ? workflow : `${workflow}/${runId}/user-metadata`
}

/** The page of Temporal's Web UI that lists jobs, newest first, without their attempts and what Crucible runs for itself. */
export function jobsUiUrl(uiUrl: string, namespace: string): string {
  const query = encodeURIComponent(`WorkflowType="${WORKFLOW_TYPES.job}"`)
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows?query=${query}`
}

/** The workflow's own status, or `undefined` when nobody answers in time. */
async function askWorkflow(
  context: Context,
  jobId: string,
  known: JobStatus,
): Promise<JobStatus | undefined> {
  try {
    const client = await inTime(context.temporal())
    const handle = client.workflow.getHandle(jobWorkflowId(jobId))
    const ask = <T>(question: () => Promise<T>): Promise<T> =>
      client.withDeadline(Date.now() + ANSWER_LIMIT_MS, question)
    const [description, status] = await Promise.all([
      ask(() => handle.describe()),
      ask(() => handle.query<JobStatus>(STATUS_QUERY)).catch(() => undefined),
    ])
    return endedByHand(description, status ?? known) ?? status
  } catch {
    return undefined
  }
}

/** Rejects when there is no answer within the limit. */
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

const CLOSED_BY_HAND: Readonly<Record<string, string>> = {
  TERMINATED: 'Its workflow was terminated by hand.',
  TIMED_OUT: 'Its workflow timed out.',
}

/** A workflow that was terminated could not say so itself. */
function endedByHand({ status }: WorkflowExecutionDescription, last: JobStatus): JobStatus | undefined {
  const how = CLOSED_BY_HAND[status.name]
  if (how === undefined || isFinal(last.state)) return undefined
  const message = `${how} Garbage collection ends what is left of it (\`crucible gc\`); submit it again with \`crucible submit --from ${last.id}\`.`
  return { ...last, state: 'failed', reason: 'unclassified', message }
}

/** What the newest attempt's machine says itself; nothing of it once the attempt is over. */
async function readNewest(store: ObjectStore, status: JobStatus): Promise<AttemptDocumentsRead | undefined> {
  const last = status.attempts.at(-1)
  if (last === undefined || last.endedAtMs !== undefined) return undefined
  return readAttempt(store, status.id, last.number)
}

/** Beat and machine of one attempt, as far as they are there and can be read. */
export async function readAttempt(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<AttemptDocumentsRead> {
  const { parseBeat, parseLease } = lazily('../intake/documents') as typeof documents
  const [beat, machine, lease] = await Promise.all([
    readDocument(store, layout.beat(jobId, attempt), parseBeat).catch(ignoreBadDocument),
    readMachine(store, jobId, attempt),
    readDocument(store, layout.lease(jobId, attempt), parseLease).catch(ignoreBadDocument),
  ])
  return { attempt, beat, machine, metered: lease?.metered }
}

/** The machine of an attempt as its launch answered; written by our own activities only. */
export async function readMachine(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<MachineHandle | undefined> {
  const key = layout.machine(jobId, attempt)
  return readDocument(store, key, (text) => JSON.parse(text) as MachineHandle).catch(ignoreBadDocument)
}

/** What cannot be read tells as little as what is not there. */
export function ignoreBadDocument(error: unknown): undefined {
  if (isNamed(error, 'StoreError') && (error as { code?: unknown }).code === 'BAD_DOCUMENT') return undefined
  throw error
}

export function noSuchJob({ config }: Context, job: string): CrucibleError {
  return new CrucibleError('not-found', `There is no job ${job} in ${config.home.storeUrl}.`, {
    hint: 'See `crucible list`. Another store is named by CRUCIBLE_STORE or CRUCIBLE_HOME.',
  })
}
