import type { Checkpoint } from './checkpoint'
import { isFinal, type JobReason, type JobState } from './job'
import { exactUsd, type MicroUsd } from '../money/money'

/** How to continue a job that failed, was cancelled, or reached a limit. @experimental */
export interface Continuation {
  /** Submits a job that continues from the newest checkpoint, or starts over without one. */
  command: string
  /** Step of the checkpoint that it continues from. */
  step: number | null
}

interface Ended {
  id: string
  state: JobState
  reason: JobReason
  checkpoint?: Checkpoint | null
  budgetMicroUsd?: MicroUsd | null
}

/** Returns the continuation; null for a job that is not over, or that succeeded. */
export function continuationOf(job: Ended): Continuation | null {
  const { id, state, reason, checkpoint = null, budgetMicroUsd = null } = job
  if (!isFinal(state) || state === 'succeeded') return null
  const fresh = checkpoint === null ? ' --fresh' : ''
  // The new job may spend the same amount again; the flag shows it, and where to change it.
  const isSpent = reason === 'budget-reached' && budgetMicroUsd !== null
  const budget = isSpent ? ` --budget '${exactUsd(budgetMicroUsd)}'` : ''
  return { command: `crucible submit --from ${id}${fresh}${budget}`, step: checkpoint?.step ?? null }
}
