import { COPIED_BY, parseCheckpointId } from '../core/checkpoint'

/** What was begun to be written into the store, and is neither an object nor gone. */
export interface UnfinishedUpload {
  /** Names it to `abandon`. */
  id: string
  /** Where it would have been put; missing where nothing tells. */
  key?: string
  sizeBytes: number
  beganAtMs: number
  /** Of what lies there so far; missing where the store has no price, or none that is known. */
  costMicroUsdPerDay?: number
}

/** For which job, and which of its attempts, an object is written; `undefined` for what is nobody's in particular. */
export function ownerOfKey(key: string): { jobId: string; attempt?: number } | undefined {
  const [, jobId, part, name = ''] = /^jobs\/([^/]+)\/([^/]+)(?:\/([^/]+))?/.exec(key) ?? []
  if (jobId === undefined) return undefined
  const attempt =
    part === 'attempts' ? Number(name) : part === 'checkpoints' ? parseCheckpointId(name)?.attempt : undefined
  const isOfAttempt = attempt !== undefined && Number.isInteger(attempt) && attempt !== COPIED_BY
  return isOfAttempt ? { jobId, attempt } : { jobId }
}
