import type { PlanOutcome } from '../../core/activities'
import type { Verdict } from '../../core/job/ledger'
import { canonicalJson } from '../../core/market'
import { excerptOf, type BackendAnswer, type Plan, type PlanFacts } from '../../core/job/plan'
import type { RecordedPlan, RecordedVerdict } from '../../core/job/record'
import { decide } from '../policy/decide'
import { planFor } from '../policy/outcome'

/** A recorded plan, decided again. */
export interface ReplayedPlan {
  /** Everything, where the record has an excerpt. */
  plan: Plan
  outcome: PlanOutcome
  /** Inputs of the decision. */
  facts: PlanFacts
  /** The result is the recorded one, byte for byte as canonical JSON. */
  isSame: boolean
}

/** Decides a recorded plan again, from its facts and the answers that they name. `undefined` if the job waited in line instead. */
export function replayPlan(
  { inputs, facts: recorded, plan: excerpt, outcome: answered }: RecordedPlan,
  answers: BackendAnswer[],
): ReplayedPlan | undefined {
  if (recorded === undefined) return undefined
  const facts = { ...recorded, answers }
  const { plan, outcome } = planFor(inputs, facts)
  const seen = withToken(inLine(outcome, answered), answered)
  const isSame = canonicalJson([excerptOf(plan), seen]) === canonicalJson([excerpt, answered])
  return { plan, outcome: seen, facts, isSame }
}

/** The token of an order identifies it and is not a decision; in a record of 0.1.0 it lacks the deployment. */
function withToken(outcome: PlanOutcome, recorded: PlanOutcome): PlanOutcome {
  if (outcome.kind !== 'place' || recorded.kind !== 'place') return outcome
  return { ...outcome, order: { ...outcome.order, token: recorded.order.token } }
}

/** The place in line is not the planner's decision: a job behind others waits for its turn, whatever the plan says. */
function inLine(outcome: PlanOutcome, recorded: PlanOutcome): PlanOutcome {
  if (outcome.kind !== 'wait' || recorded.kind !== 'wait' || recorded.position === undefined) return outcome
  return recorded.position === 1 ? { ...outcome, position: 1 } : recorded
}

/** Decides again what follows an attempt. */
export function replayVerdict({ facts, verdict }: RecordedVerdict): { verdict: Verdict; isSame: boolean } {
  const again = decide(facts)
  return { verdict: again, isSame: canonicalJson(again) === canonicalJson(verdict) }
}
