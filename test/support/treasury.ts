import {
  applyAnswer,
  isGranted,
  questionOf,
  type BudgetAnswer,
  type BudgetRequest,
  type TreasuryState,
} from '../../core/money/treasury'
import { admit } from '../../planner/plan/monthly-budget'

/** A request with the policy's answer applied, as the workflow does it. */
export function promise(
  state: TreasuryState,
  request: BudgetRequest,
): { state: TreasuryState; answer: BudgetAnswer } {
  if (isGranted(state, request)) return { state, answer: { kind: 'promised' } }
  const answer = admit(questionOf(state, request))
  return { state: applyAnswer(state, request, answer), answer }
}
