import { COPIED_BY, parseCheckpointId } from '../core/job/checkpoint'

/** An upload into the store that is neither complete nor removed. */
export interface UnfinishedUpload {
  /** Identifies it for `abandon`. */
  id: string
  /** Target key; missing if unknown. */
  key?: string
  sizeBytes: number
  beganAtMs: number
  /** Cost of the stored part so far; missing if the store has no known price. */
  costMicroUsdPerDay?: number
}

/** Returns the job, and the attempt, for which an object is written; `undefined` for an object without an owner. */
export function ownerOfKey(key: string): { jobId: string; attempt?: number } | undefined {
  const [, jobId, part, name = ''] = /^jobs\/([^/]+)\/([^/]+)(?:\/([^/]+))?/.exec(key) ?? []
  if (jobId === undefined) return undefined
  const attempt =
    part === 'attempts' ? Number(name) : part === 'checkpoints' ? parseCheckpointId(name)?.attempt : undefined
  const isOfAttempt = attempt !== undefined && Number.isInteger(attempt) && attempt !== COPIED_BY
  return isOfAttempt ? { jobId, attempt } : { jobId }
}
