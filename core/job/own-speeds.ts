import type { Pace } from './pace'
import type { WorkFamily } from '../speed'

/** The pace of one job on each of several accelerator types; made from its record when it ends, and kept in the store. */
export interface OwnSpeeds {
  jobId: string
  /** Family of work as in the job; null if unknown. */
  family: WorkFamily | null
  /** Paces on at least two types, with equally many GPUs. */
  paces: (Pace & { accelerator: string })[]
}
