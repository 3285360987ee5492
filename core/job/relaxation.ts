import type { MicroUsd } from '../money/money'
import type { RejectionCode } from './plan'

/** The plan if the job had one requirement less. @experimental */
export interface Relaxation {
  /** The relaxed requirement. */
  wish: RejectionCode
  /** The change, as the job file or an option would say it: `deadline: 14h`, `interruptible: true`. */
  change: string
  /** The offer that would then be first, and its medians. */
  offerKey: string
  costMicroUsd: MicroUsd
  durationMs: number
  /** Sentence for people with the change and the figures before and after. */
  sentence: string
}
