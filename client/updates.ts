import { withLimit } from './deadline'
import { randomUUID } from 'node:crypto'
import { failureFrom } from '../core/failure'
import { isFinal } from '../core/job/job'
import {
  CANCEL_NOW_UPDATE,
  EXTEND_UPDATE,
  INTERRUPT_UPDATE,
  MIGRATE_UPDATE,
  type ExtendUpdate,
  type InterruptUpdate,
  type MigrateUpdate,
  type UpdateReceipt,
} from '../core/messages'
import { jobWorkflowId } from '../core/queues'
import { SECOND_MS } from '../core/time/time'
import { withoutEnd } from '../core/trim'
import { isOpenStatus } from '../core/workflow-status'
import { readDeployment } from '../storage/deployment'
import { formatBackendChoice, type BackendChoice } from '../core/offer'
import { stateInTemporal } from './attributes'
import type { Context } from './context'
import { CrucibleError, isTemporals, toCrucibleError } from './errors'
import { submissionWithId } from './job/find-job'
import { describeWorkflow } from './job/find-open'
import type { JobView } from './job/job-view'
import { readView } from './job/read-view'
import { planThroughWorkers } from './job/plan'
import { isAttemptOver } from './job/view'
import { StoreReads } from './store-reads'

/** A running worker answers quickly; after this time, the caller must check the answer later. */
export const UPDATE_LIMIT_MS = 10 * SECOND_MS
/** Limit on the time that a store without an answer delays a cancellation that is already sent. */
const STORE_LIMIT_MS = 2 * SECOND_MS

/**
 * Moves a running job, after a checkpoint, to the best other place, or to `to`. Throws `capacity` if the job could never run there, so that
 * a typo does not stop it.
 */
export async function migrate(
  context: Context,
  jobId: string,
  update: MigrateUpdate = {},
): Promise<UpdateReceipt> {
  if (update.to !== undefined) await checkTarget(context, jobId, update.to)
  return tell(context, jobId, { name: MIGRATE_UPDATE, args: [update] })
}

async function checkTarget(context: Context, jobId: string, to: BackendChoice): Promise<void> {
  // If the store does not tell what the job needs, the job itself decides.
  const input = await submissionWithId(context, jobId).catch(() => undefined)
  if (input === undefined) return
  const plan = await planThroughWorkers(context, { ...input.spec, backends: [to] }).catch(
    (error: unknown) => {
      // If no worker answers, the job itself decides when a worker runs again.
      if (toCrucibleError(error).kind === 'unavailable') return undefined
      throw error
    },
  )
  if (plan === undefined) return
  const { placements, silentBackends } = plan
  // Rejections because of the requested target are not informative.
  const meant = `${[to.backend, ...(to.capacityType === undefined ? [] : [to.capacityType])].join('/')}/`
  const rejections = plan.rejections.filter(({ offerKeys }) =>
    offerKeys.some((offerKey) => offerKey.startsWith(meant)),
  )
  const isPossible = placements.length + silentBackends.length > 0
  if (isPossible || rejections.some(({ why }) => why === 'unavailable')) return
  const reasons = [...new Set(rejections.map(({ reason }) => reason))]
  throw new CrucibleError(
    'capacity',
    `${jobId} does not move: ${formatBackendChoice(to)} ${reasons.length === 0 ? 'is not configured in this deployment' : `is unsuitable (${reasons.join('; ')})`}.`,
    { hint: `\`crucible plan --from ${jobId}\` shows where it could run.` },
  )
}

/** Gives a job a new deadline, a new budget or both; they reach the machine that runs it. */
export function extend(context: Context, jobId: string, update: ExtendUpdate): Promise<UpdateReceipt> {
  return tell(context, jobId, { name: EXTEND_UPDATE, args: [update] })
}

/** Interrupts the machine of a rehearsal's job as the provider would. Any other job refuses. */
export function interruptRehearsal(
  context: Context,
  jobId: string,
  update: InterruptUpdate,
): Promise<UpdateReceipt> {
  return tell(context, jobId, { name: INTERRUPT_UPDATE, args: [update] })
}

/**
 * Cancels a job, which saves and stops first: within the usual time through Temporal's own cancellation, or within seconds if `isNow`.
 * Cancelling a cancelled job has no effect and is not an error.
 */
export async function cancel(
  context: Context,
  jobId: string,
  { isNow = false }: { isNow?: boolean } = {},
): Promise<UpdateReceipt> {
  const client = await context.temporal()
  const known = await describeWorkflow(client, jobId)
  // Temporal alone knows an open job: a store that is away or damaged must not keep it running.
  if (known === undefined || !isOpenStatus(known.status.name)) {
    const state = (known && stateInTemporal(known)?.state) ?? (await recordedView(context, jobId))?.state
    if (state === undefined) throw gone(jobId, undefined)
    if (state === 'cancelled') return { message: 'It is already cancelled.' }
    if (isFinal(state))
      throw new CrucibleError('failed', `${jobId} cannot be cancelled: it is already over (${state}).`, {
        hint: `See \`crucible show ${jobId}\`.`,
      })
  }
  const hurried = isNow ? await tell(context, jobId, { name: CANCEL_NOW_UPDATE, args: [] }) : undefined
  try {
    // Temporal closes a workflow as cancelled only if it was asked to cancel it.
    await client.workflow.getHandle(jobWorkflowId(jobId)).cancel()
  } catch (error) {
    if (!isTemporals(error, 'WorkflowNotFoundError')) throw error
    if (hurried === undefined) throw gone(jobId, await recordedView(context, jobId))
  }
  await noteOutage(context, jobId)
  return hurried ?? { message: 'Cancelling; the workload gets time to save.' }
}

/** A machine hears of a cancellation through the store; while that is away, its provider ends it after the window, and it saves nothing. */
async function noteOutage(context: Context, jobId: string): Promise<void> {
  const reads = new StoreReads(STORE_LIMIT_MS)
  await reads.tryRead(() => readDeployment(context.store)).catch((error: Error) => reads.fail(error))
  if (reads.trouble === undefined) return
  const why = withoutEnd(reads.trouble, '.')
  context.note(
    `The object store does not answer, so the machine of ${jobId} cannot be asked to save, and is ended after its window: ${why}.`,
  )
}

/**
 * The view of a job that is not open in Temporal; nothing if the store cannot be read. Throws `not-found` for an unknown job, and `usage` if
 * the server belongs to another deployment.
 */
async function recordedView(context: Context, jobId: string): Promise<JobView | undefined> {
  try {
    return await readView(context, jobId)
  } catch (error) {
    if (error instanceof CrucibleError && ['not-found', 'usage'].includes(error.kind)) throw error
    return undefined
  }
}

/**
 * Sends an update and waits for its answer. Throws `failed` if the job refuses, and `unconfirmed` without an answer in time: the server
 * keeps an update that no worker has taken in its memory, and may forget it.
 */
async function tell(
  context: Context,
  jobId: string,
  { name, args }: { name: string; args: [] | [object] },
): Promise<UpdateReceipt> {
  const client = await context.temporal()
  const handle = client.workflow.getHandle(jobWorkflowId(jobId))
  try {
    return await withLimit(client, UPDATE_LIMIT_MS, () =>
      handle.executeUpdate<UpdateReceipt, [object]>(name, { updateId: randomUUID(), args: args as [object] }),
    )
  } catch (error) {
    if (isTemporals(error, 'WorkflowUpdateFailedError')) {
      throw new CrucibleError('failed', failureFrom(error).message, { cause: error })
    }
    if (isTemporals(error, 'WorkflowUpdateRPCTimeoutOrCancelledError')) throw unconfirmed(jobId, error)
    if (isTemporals(error, 'WorkflowNotFoundError')) throw await whyUnknown(context, jobId)
    throw error
  }
}

function unconfirmed(jobId: string, cause: unknown): CrucibleError {
  const message = `Request accepted, but no worker acknowledged it for ${jobId} within ${UPDATE_LIMIT_MS / SECOND_MS} s.`
  return new CrucibleError('unconfirmed', message, {
    hint: `Start workers (\`crucible doctor\` reports whether any run), check with \`crucible show ${jobId}\`, and ask again if nothing has changed.`,
    cause,
  })
}

/** The error of a request to a job that is not open in Temporal. */
export async function whyUnknown(context: Context, jobId: string): Promise<CrucibleError> {
  const view = await recordedView(context, jobId)
  return view !== undefined && isFinal(view.state)
    ? new CrucibleError('failed', `${jobId} is already over (${view.state}).`, {
        hint: `To run it again: \`crucible submit --from ${jobId}\`.`,
      })
    : gone(jobId, view)
}

/** The error of a job that Temporal does not know. Its view, if there is one, says which machine may still run, and how to end it. */
function gone(jobId: string, view: JobView | undefined): CrucibleError {
  const isOver = view === undefined || view.attempts.every(isAttemptOver)
  return new CrucibleError(
    'not-found',
    `The Temporal server does not know ${jobId}, or has closed it.${isOver ? '' : ` ${view.message}`}`,
    {
      hint: `It may have been reset, or TEMPORAL_ADDRESS names the wrong one. Submit again with --from ${jobId}.`,
    },
  )
}
