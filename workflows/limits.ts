import type { Limits } from '../core/documents'
import { affordableMs } from '../core/meter'
import type { Order } from '../core/plan'
import type { JobRun } from './job-run'

/** The job's deadline as a durable timer, early enough to save and stop by then. */
export function armDeadline(run: JobRun): void {
  const { deadlineAtMs } = run.page.status
  if (deadlineAtMs === undefined) return
  const { drainMs, powerOffMs } = run.resolved.timing
  run.wishes.arm({
    wish: 'deadline',
    inMs: deadlineAtMs - drainMs - powerOffMs - Date.now(),
    windowMs: drainMs,
  })
}

/**
 * The money left as a durable timer of the running attempt, counted from its order as its runner counts it; the runner's own hard
 * stop holds it while we are away.
 */
export function armBudget(run: JobRun, order: Order): void {
  const runMs = affordable(run, order)
  if (runMs === null) return
  const { drainMs, powerOffMs } = run.resolved.timing
  const stopAtMs = run.orderAtMs + runMs - drainMs - powerOffMs
  run.wishes.arm({ wish: 'budget', inMs: stopAtMs - Date.now(), windowMs: drainMs })
}

/** The limits as they stand now, for a machine that runs. */
export function limitsNow(run: JobRun, order: Order, seq: number): Limits {
  return { seq, deadlineAtMs: run.page.status.deadlineAtMs ?? null, runMs: affordable(run, order) }
}

/** How long a machine of this order may be billed in all for what the ended attempts have left. */
function affordable({ page: { status } }: JobRun, order: Order): number | null {
  if (status.budgetMicroUsd === undefined) return null
  return affordableMs(status.budgetMicroUsd - status.spentMicroUsd, order.priceMaxMicroUsdPerHour)
}
