import { formatUsd } from '../../core/money/money'
import {
  leftOfLimit,
  ownerLimit,
  parseReservationBudgetId,
  type BudgetAnswer,
  type BudgetQuestion,
} from '../../core/money/treasury'

/** Whether a job may reserve its budget: it must fit the rest of its owner's and the month's limits. */
export function admit(question: BudgetQuestion): BudgetAnswer {
  const { owner, month, microUsd, limits, byOwner, byAll } = question
  const limited = [
    { name: `the budget of ${owner} for ${month}`, limitMicroUsd: ownerLimit(limits, owner), ...byOwner },
    { name: `the budget for ${month}`, limitMicroUsd: limits.monthMicroUsd, ...byAll },
  ]
  for (const { name, limitMicroUsd, ...committed } of limited) {
    const leftMicroUsd = leftOfLimit(limitMicroUsd, committed)
    if (leftMicroUsd === undefined || microUsd <= leftMicroUsd) continue
    const { spentMicroUsd, promisedMicroUsd } = committed
    const [limit, spent, others, left] = [
      limitMicroUsd!,
      spentMicroUsd,
      promisedMicroUsd,
      Math.max(0, leftMicroUsd),
    ].map(formatUsd)
    const purchase = parseReservationBudgetId(question.jobId)
    const who = purchase === undefined ? 'The job' : `The reservation ${purchase.reservationId}`
    const smaller =
      purchase === undefined ? `Give it a budget of at most ${left}` : `Reserve for at most ${left}`
    return {
      kind: 'refused',
      message: `${who} may cost ${formatUsd(microUsd)}, and ${name} has ${left} left: of ${limit}, ${spent} are spent and ${others} are reserved for jobs and reservations.`,
      hint: `${smaller}, wait for a job to end (crucible budget shows them), or have the limit raised.`,
    }
  }
  return { kind: 'promised' }
}
