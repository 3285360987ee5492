import type { BackendActivities, OrchestratorActivities, WatchActivities } from './activities'

/**
 * Activities that a job needs to continue, and that are safe to repeat. Their failures (a read-only store, expired credentials)
 * are unrelated to the job: Temporal retries them until the cause is removed, and the status shows the problem meanwhile.
 */
export const PERSISTENT_ACTIVITIES: readonly (
  keyof OrchestratorActivities | keyof BackendActivities | keyof WatchActivities
)[] = [
  'plan',
  'planWhenAvailable',
  'decide',
  'drain',
  'withdraw',
  'extend',
  'finishJob',
  'find',
  'settle',
  'watch',
]
