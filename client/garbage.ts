import { randomUUID } from 'node:crypto'
import { defined } from '../core/defined'
import { failureFrom } from '../core/failure'
import type { GarbageCollectionInput, GarbageCollectionResult, GarbageVerdict } from '../core/messages'
import { GARBAGE_COLLECTION_SCHEDULE_ID, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../core/queues'
import type * as serviceConfig from '../service/config'
import type * as serviceGarbage from '../service/garbage'
import type { ExpiredRun } from '../service/garbage'

export type { ExpiredRun } from '../service/garbage'
import type { Context } from './context'
import { checkSameDeployment, scheduledCollection } from './deployment'
import { CrucibleError, isTemporals } from './errors'

/** @experimental */
export interface GarbageOptions {
  /** Removes nothing; reports the resources that would be removed. */
  isDryRun: boolean
  /** Time for which a resource must be unowned before it is ended; the schedule's default if missing. */
  graceMs?: number
}

/** @experimental */
export interface GarbageRun {
  workflowId: string
  /** Wait between the two scans, if the first one finds something. */
  graceMs: number
  result(): Promise<GarbageCollectionResult>
}

/**
 * Starts garbage collection now, as its schedule does. Throws `failed` if Temporal does not know the deployment, so that nothing
 * is ended by mistake, and `usage` if it belongs to another deployment than the store.
 */
export async function collectGarbage(context: Context, options: GarbageOptions): Promise<GarbageRun> {
  const client = await context.temporal()
  const scheduled = await scheduledInput(context)
  await checkSameDeployment(context, client)
  const input = { ...scheduled, ...defined(options) }
  const workflowId = `${WORKFLOW_TYPES.garbageCollection}/${randomUUID()}`
  const handle = await client.workflow.start(WORKFLOW_TYPES.garbageCollection, {
    workflowId,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
    staticSummary: options.isDryRun ? 'by hand, removes nothing' : 'by hand',
  })
  const result = (): Promise<GarbageCollectionResult> =>
    handle.result().catch((error: unknown) => {
      throw new CrucibleError('failed', failureFrom(error).message, { cause: error })
    }) as Promise<GarbageCollectionResult>
  return { workflowId, graceMs: input.graceMs, result }
}

/** The result of the schedule's last run. @experimental */
export interface LastCollection {
  workflowId: string
  startedAtMs: number
  /** Verdicts; missing if the pass failed for the reason in `problem`. */
  verdicts?: GarbageVerdict[]
  problem?: string
}

/**
 * The newest finished collection of the schedule; `undefined` before the first one, or if the server no longer keeps it. Throws as
 * `collectGarbage` does without a schedule.
 */
export async function lastCollection(context: Context): Promise<LastCollection | undefined> {
  const client = await context.temporal()
  await scheduledInput(context)
  const { info } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
  const newestFirst = [...info.recentActions].sort((a, b) => b.takenAt.getTime() - a.takenAt.getTime())
  for (const { action, takenAt } of newestFirst) {
    const { workflowId, firstExecutionRunId } = action.workflow
    const told = { workflowId, startedAtMs: takenAt.getTime() }
    const handle = client.workflow.getHandle(workflowId, firstExecutionRunId)
    try {
      if ((await handle.describe()).status.name === 'RUNNING') continue
      const { verdicts } = (await handle.result()) as GarbageCollectionResult
      return { ...told, verdicts }
    } catch (error) {
      if (isTemporals(error, 'WorkflowNotFoundError')) continue
      if (!isTemporals(error, 'WorkflowFailedError')) throw error
      return { ...told, problem: failureFrom(error).message }
    }
  }
  return undefined
}

async function scheduledInput(context: Context): Promise<GarbageCollectionInput> {
  const input = await scheduledCollection(await context.temporal())
  if (input !== undefined) return input
  throw new CrucibleError(
    'failed',
    'Garbage collection is off: this Temporal server does not know the deployment.',
    {
      hint: 'If no worker ever ran, start one. If the server was reset, run `crucible gc --adopt` once you are sure that it is the right one.',
    },
  )
}

/**
 * Ends the machines of this deployment whose lease has certainly expired, without a Temporal server or a worker, with the backends of this
 * process's settings. Throws, and ends nothing, when the store does not answer or belongs to no deployment.
 *
 * @experimental
 */
export function endExpiredMachines(
  { config, store }: Context,
  options: { isDryRun: boolean; signal: AbortSignal },
): Promise<ExpiredRun> {
  const { readWorkerConfig } = require('../service/config') as typeof serviceConfig
  const { endExpiredMachines: end } = require('../service/garbage') as typeof serviceGarbage
  return end(readWorkerConfig(config.environment), { store, ...options })
}
