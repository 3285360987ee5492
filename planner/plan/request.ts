import type { PlanInput } from '../../core/activities'
import { leftOfBudget } from '../../core/money/budget'
import type { Avoidance } from '../../core/job/ledger'
import type { JobSpec } from '../../core/job/job'
import type { MicroUsd } from '../../core/money/money'
import type { BackendChoice } from '../../core/offer'
import type { PlanFacts } from '../../core/job/plan'
import type { Timing } from '../../core/time/timing'
import { stillAvoided } from './avoidance'

/** Everything that a plan depends on. The same request always gives the same plan. */
export interface PlanRequest extends Omit<PlanFacts, 'inputSizes'>, Partial<Pick<PlanFacts, 'inputSizes'>> {
  spec: JobSpec
  /** Whose job it is; missing for a plan without one. */
  owner?: string
  /** Size of the packed code that each machine reads. */
  bundleBytes?: number
  timing: Timing
  avoid: Avoidance[]
  /** The only allowed target of a migration. */
  target?: BackendChoice
  deadlineAtMs?: number
  /** The remaining budget; missing without one. */
  remainingMicroUsd?: MicroUsd
  /** Whether no work of the job is done yet. */
  isFirst?: boolean
  /** Delay before the order goes out. */
  startsInMs?: number
}

/** The request for a plan of a job, from the job's input and what its worker found out. */
export function requestFor(input: PlanInput, facts: PlanFacts): PlanRequest {
  const { avoid, startsInMs = 0, resolved, bundle, budgetMicroUsd, ledger } = input
  const { spec, timing } = resolved
  return {
    spec,
    timing,
    ...facts,
    startsInMs,
    isFirst: input.attempt === 1,
    // The situation at the time of the order.
    avoid: stillAvoided(avoid, startsInMs),
    owner: resolved.owner,
    target: input.target,
    deadlineAtMs: input.deadlineAtMs,
    remainingMicroUsd: leftOfBudget(budgetMicroUsd, ledger.spentMicroUsd),
    bundleBytes: bundle === null ? undefined : bundle.sizeBytes,
  }
}
