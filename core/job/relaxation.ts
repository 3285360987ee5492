import type { MicroUsd } from '../money/money'
import type { RejectionCode } from './plan'

/** What a plan would be if the job asked for one thing less. @experimental */
export interface Relaxation {
  /** The wish that is relaxed. */
  wish: RejectionCode
  /** The change, as the job file or an option would say it: `deadline: 14h`, `interruptible: true`. */
  change: string
  /** The offer that would then be first, and its medians. */
  offerKey: string
  costMicroUsd: MicroUsd
  durationMs: number
  /** For people: the change, and the figures before and after. */
  sentence: string
}
