import { randomUUID } from 'node:crypto'
import { failureFrom } from '../core/failure'
import type { GarbageCollectionInput, GarbageCollectionResult } from '../core/messages'
import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../core/queues'
import type { Context } from './context'
import { scheduledCollection } from './deployment'
import { CrucibleError } from './errors'

export interface GarbageOptions {
  /** Ends nothing; says what would be ended. */
  isDryRun: boolean
  /** How long something must be unowned before it is ended; the schedule's own when missing. */
  graceMs?: number
}

export interface GarbageRun {
  workflowId: string
  /** How long it waits between its two looks, if it finds something. */
  graceMs: number
  result(): Promise<GarbageCollectionResult>
}

/**
 * Starts garbage collection now, as its schedule does. Throws `failed` when Temporal does not know the deployment, so that nothing
 * is ever ended by mistake.
 */
export async function collectGarbage(context: Context, options: GarbageOptions): Promise<GarbageRun> {
  const client = await context.temporal()
  const scheduled = await scheduledInput(context)
  const input = { ...scheduled, ...options }
  const workflowId = `${WORKFLOW_TYPES.garbageCollection}/${randomUUID()}`
  const handle = await client.workflow.start(WORKFLOW_TYPES.garbageCollection, {
    workflowId,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
    staticSummary: options.isDryRun ? 'by hand, ends nothing' : 'by hand',
  })
  const result = (): Promise<GarbageCollectionResult> =>
    handle.result().catch((error: unknown) => {
      throw new CrucibleError('failed', failureFrom(error).message, { cause: error })
    }) as Promise<GarbageCollectionResult>
  return { workflowId, graceMs: input.graceMs, result }
}

async function scheduledInput(context: Context): Promise<GarbageCollectionInput> {
  const input = await scheduledCollection(await context.temporal())
  if (input !== undefined) return input
  throw new CrucibleError(
    'failed',
    'Garbage collection is off: this Temporal server does not know the deployment.',
    {
      hint: 'Start a worker if none ever ran. If the server was reset, run `crucible gc --adopt` once you are sure that it is the right one.',
    },
  )
}
