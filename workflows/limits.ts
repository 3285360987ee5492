import type { AttemptBudget } from '../core/attempt-money'
import type { Limits } from '../core/documents'
import type { Order } from '../core/plan'
import type { JobRun } from './job-run'

/** The job's deadline as a durable timer, early enough to save and stop before it. */
export function armDeadline(run: JobRun): void {
  const { deadlineAtMs } = run.page.status
  if (deadlineAtMs === undefined) return
  const { drainMs, powerOffMs } = run.resolved.timing
  run.stopRequests.arm({
    wish: 'deadline',
    inMs: deadlineAtMs - drainMs - powerOffMs - Date.now(),
    windowMs: drainMs,
  })
}

/** The current limits, for a running machine. */
export function limitsNow(run: JobRun, order: Order, seq: number): Limits {
  const budget = budgetNow(run, order)
  return { seq, deadlineAtMs: run.page.status.deadlineAtMs ?? null, budget }
}

/** What the machine of this order may cost: what earlier machines have left, less the cost of moving its data. */
function budgetNow(
  { page: { status } }: JobRun,
  { priceMaxMicroUsdPerHour, transferMicroUsd = 0 }: Order,
): AttemptBudget | null {
  if (status.budgetMicroUsd === undefined) return null
  const leftMicroUsd = status.budgetMicroUsd - status.spentMicroUsd - transferMicroUsd
  return { microUsd: Math.max(0, leftMicroUsd), priceMaxMicroUsdPerHour }
}
