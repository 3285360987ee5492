import type { AttemptBudget } from '../core/attempt-money'
import type { Limits } from '../core/documents'
import type { Order } from '../core/plan'
import type { JobRun } from './job-run'

/** The job's deadline as a durable timer, early enough to save and stop by then. */
export function armDeadline(run: JobRun): void {
  const { deadlineAtMs } = run.page.status
  if (deadlineAtMs === undefined) return
  const { drainMs, powerOffMs } = run.resolved.timing
  run.wishes.armDeadline({ inMs: deadlineAtMs - drainMs - powerOffMs - Date.now(), windowMs: drainMs })
}

/** The limits as they stand now, for a machine that runs. */
export function limitsNow(run: JobRun, order: Order, seq: number): Limits {
  return { seq, deadlineAtMs: run.page.status.deadlineAtMs ?? null, budget: budgetNow(run, order) }
}

/** What an attempt of this order may cost: what the ended ones have left. */
function budgetNow({ page: { status } }: JobRun, { priceMaxMicroUsdPerHour }: Order): AttemptBudget | null {
  if (status.budgetMicroUsd === undefined) return null
  return { microUsd: Math.max(0, status.budgetMicroUsd - status.spentMicroUsd), priceMaxMicroUsdPerHour }
}
