import type { WorkflowExecutionStatusName } from '@temporalio/client'
import type { JobSource } from '../../core/messages'
import { jobWorkflowId } from '../../core/queues'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import { newestGoodCheckpoint } from '../../storage/checkpoints'
import { readRecords } from '../../storage/record'
import type { Context } from '../context'
import { CrucibleError, isTemporals } from '../errors'
import { resultOf, submissionOf } from './history'
import { noSuchJob } from './read-view'

/** States of a workflow that may still give work to its machine. */
const OPEN: readonly WorkflowExecutionStatusName[] = ['RUNNING', 'PAUSED', 'CONTINUED_AS_NEW', 'UNKNOWN']

/**
 * Returns the source of a new job: the newest good checkpoint of a finished job. The record is enough, even if Temporal has forgotten the
 * job. Throws `not-found` for an unknown job or one without a checkpoint, and `usage` for one that may still save more.
 */
export async function sourceOf(context: Context, jobId: string): Promise<JobSource> {
  const entries = await readRecords(context.store, jobId)
  if (submissionOf(entries) === undefined) throw await noSuchJob(context, jobId)
  if (resultOf(entries) === undefined && (await isOpen(context, jobId))) {
    throw new CrucibleError('usage', `${jobId} is still open and may save newer checkpoints.`, {
      hint: `Stop it with \`crucible cancel ${jobId}\`, which saves first, or wait for its end with \`crucible show ${jobId} --watch\`. To start a second copy from the beginning, add --fresh.`,
    })
  }
  const good = await newestGoodCheckpoint(context.store, jobId, CHECKPOINT_PARSERS)
  if (good !== undefined) return { jobId, checkpoint: good.checkpoint }
  throw new CrucibleError('not-found', `${jobId} has no complete checkpoint to resume from.`, {
    hint: `Start the same job over with \`crucible submit --from ${jobId} --fresh\`.`,
  })
}

/** A workflow that the server has forgotten was closed long ago. */
async function isOpen(context: Context, jobId: string): Promise<boolean> {
  const client = await context.temporal()
  try {
    const { status } = await client.workflow.getHandle(jobWorkflowId(jobId)).describe()
    return OPEN.includes(status.name)
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return false
    throw error
  }
}
