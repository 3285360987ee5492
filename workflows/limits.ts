import { attemptBudget, leftOfBudget } from '../core/budget'
import type { Limits } from '../core/documents'
import type { Order } from '../core/plan'
import { stoppingMs } from '../core/timing'
import type { JobRun } from './job-run'

/** The job's deadline as a durable timer, early enough to save and stop before it. */
export function armDeadline(run: JobRun): void {
  const { deadlineAtMs } = run.page.status
  if (deadlineAtMs === undefined) return
  const { timing } = run.resolved
  run.stopRequests.arm({
    wish: 'deadline',
    inMs: deadlineAtMs - stoppingMs(timing) - Date.now(),
    windowMs: timing.drainMs,
  })
}

/** The current limits, for the running machine of this order. */
export function limitsNow({ page: { status } }: JobRun, order: Order, seq: number): Limits {
  const leftMicroUsd = leftOfBudget(status.budgetMicroUsd, status.spentMicroUsd)
  return { seq, deadlineAtMs: status.deadlineAtMs ?? null, budget: attemptBudget(leftMicroUsd, order) }
}
