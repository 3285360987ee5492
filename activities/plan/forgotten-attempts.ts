import type { Client } from '@temporalio/client'
import { BackendError } from '../../backends/errors'
import type { FinishInput } from '../../core/activities'
import type { JobStatus } from '../../core/messages'
import type { MicroUsd } from '../../core/money/money'
import { attemptWorkflowId } from '../../core/queues'
import { readRecord, readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { AttemptDocuments } from '../documents'
import { cancelAttempt } from '../machine/draining'

interface Deps {
  store: ObjectStore
  now: () => number
  client: Client
}

/** Pause before an attempt is looked at again. */
const AGAIN_MS = 2_000

/**
 * Returns the status with which a job ends. If a reset made the workflow forget attempts that are on record, they are asked to save and stop
 * first, and count: throws `transient` until they are settled. One whose workflow ended without that may have cost the whole budget; garbage
 * collection ends its machine if the runner does not.
 */
export async function withForgottenAttempts(
  { client, store, now }: Deps,
  { jobId, recordSeq, status }: FinishInput,
): Promise<JobStatus> {
  const taken = await readRecord(store, jobId, recordSeq)
  if (taken === undefined || taken.kind === 'finished') return status
  const costs = new Map<number, MicroUsd | undefined>()
  for (const { kind, attempt, data } of await readRecords(store, jobId)) {
    if (attempt === undefined) continue
    if (kind === 'launched' && !costs.has(attempt)) costs.set(attempt, undefined)
    if (kind === 'settled') costs.set(attempt, data.costMicroUsd)
  }
  const unsettled = [...costs.keys()].filter((attempt) => costs.get(attempt) === undefined)
  for (const attempt of unsettled) {
    if (await cancelAttempt(client, { jobId, attempt })) throw stillOpen(attemptWorkflowId(jobId, attempt))
    await new AttemptDocuments(store, { jobId, attempt }, now).putDrain({ reason: 'superseded', windowMs: 0 })
  }
  const settledMicroUsd = [...costs.values()].reduce<MicroUsd>((sum, cost) => sum + (cost ?? 0), 0)
  const unknownMicroUsd = unsettled.length === 0 ? 0 : (status.budgetMicroUsd ?? 0)
  return { ...status, spentMicroUsd: Math.max(status.spentMicroUsd, settledMicroUsd, unknownMicroUsd) }
}

function stillOpen(workflowId: string): BackendError {
  return new BackendError({
    class: 'transient',
    message: `The workflow of the job was reset, and its earlier attempt saves and stops first: ${workflowId}.`,
    retryAfterMs: AGAIN_MS,
  })
}
