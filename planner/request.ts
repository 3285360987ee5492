import type { Avoidance } from '../core/ledger'
import type { JobSpec } from '../core/job'
import type { MicroUsd } from '../core/money'
import type { BackendChoice } from '../core/offer'
import type { BackendAnswer, SilentBackend } from '../core/plan'
import type { SavedBefore } from '../core/saving'
import type { Timing } from '../core/timing'
import type { InputSize } from './input-transfer'

/** Everything that a plan depends on. The same request always gives the same plan. */
export interface PlanRequest {
  spec: JobSpec
  /** The newest checkpoint of the job, or of one of its name. */
  savedBefore?: SavedBefore
  /** Size of the packed code that each machine reads. */
  bundleBytes?: number
  /** What is known of its inputs, where that matters; missing inputs are not known. */
  inputSizes?: readonly InputSize[]
  timing: Timing
  answers: BackendAnswer[]
  silentBackends: SilentBackend[]
  avoid: Avoidance[]
  /** The only allowed target of a migration. */
  target?: BackendChoice
  deadlineAtMs?: number
  /** The remaining budget; missing without one. */
  remainingMicroUsd?: MicroUsd
  nowMs: number
  /** Whether no work of the job is done yet. */
  isFirst?: boolean
  /** Share of the work that no checkpoint holds yet, from 0 to 1; missing if unknown, as before the first attempt. */
  leftShare?: number
  /** Delay before the order goes out. */
  startsInMs?: number
}
