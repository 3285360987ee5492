import type { Checkpoint } from './checkpoint'
import { isFinal, type JobReason, type JobState } from './job'
import { formatUsd, type MicroUsd } from './money'

/** How the work of a job goes on that failed, was cancelled, or reached a limit. @experimental */
export interface Continuation {
  /** Submits a job that goes on from the newest checkpoint, or that starts over where there is none. */
  command: string
  /** Step of the checkpoint that it goes on from. */
  step: number | null
}

interface Ended {
  id: string
  state: JobState
  reason: JobReason
  checkpoint?: Checkpoint | null
  budgetMicroUsd?: MicroUsd | null
}

/** Null for a job that is not over, or that succeeded. */
export function continuationOf(job: Ended): Continuation | null {
  const { id, state, reason, checkpoint = null, budgetMicroUsd = null } = job
  if (!isFinal(state) || state === 'succeeded') return null
  const fresh = checkpoint === null ? ' --fresh' : ''
  // The new job may spend as much once more; the flag shows how much that is, and where to change it.
  const isSpent = reason === 'budget-reached' && budgetMicroUsd !== null
  const budget = isSpent ? ` --budget '${formatUsd(budgetMicroUsd)}'` : ''
  return { command: `crucible submit --from ${id}${fresh}${budget}`, step: checkpoint?.step ?? null }
}
