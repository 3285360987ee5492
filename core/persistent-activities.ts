import type { BackendActivities, OrchestratorActivities, WatchActivities } from './activities'

/**
 * Activities that a job cannot continue without, and that are safe to repeat. Their failures (a read-only store, expired credentials) say
 * nothing about the job: Temporal retries them until the cause is gone, and the status shows the trouble meanwhile.
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
