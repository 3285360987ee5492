import type { Avoidance } from '../core/ledger'
import type { JobSpec } from '../core/job'
import type { MicroUsd } from '../core/money'
import type { BackendChoice } from '../core/offer'
import type { BackendAnswer, SilentBackend } from '../core/plan'
import type { SavedBefore } from '../core/saving'
import type { Timing } from '../core/timing'
import type { InputSize } from './input-transfer'

/** Everything that a plan depends on. The same request gives the same plan, on any day. */
export interface PlanRequest {
  spec: JobSpec
  /** The newest checkpoint of the job, or of one of its name. */
  savedBefore?: SavedBefore
  /** Of the code that each machine reads, packed. */
  bundleBytes?: number
  /** What is known of its inputs, where that matters; missing inputs are not known. */
  inputSizes?: readonly InputSize[]
  timing: Timing
  answers: BackendAnswer[]
  silentBackends: SilentBackend[]
  avoid: Avoidance[]
  /** Where a migration wants to go; nothing else will do. */
  target?: BackendChoice
  deadlineAtMs?: number
  /** What is left of the budget; missing without one. */
  remainingMicroUsd?: MicroUsd
  nowMs: number
  /** Nothing of the job is done yet. */
  isFirst?: boolean
  /** The order goes out only after so long. */
  startsInMs?: number
}
