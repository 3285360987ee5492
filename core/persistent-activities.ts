import type { BackendActivities, OrchestratorActivities, WatchActivities } from './activities'

/**
 * Activities that a job cannot go on without, and that are safe to repeat. Whatever stops one of them (a store that is read-only, expired
 * credentials) is no fact about the job: Temporal retries them until the cause is gone, and the trouble is shown meanwhile.
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
