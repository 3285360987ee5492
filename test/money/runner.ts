import { paidForMs, type AttemptBudget } from '../../core/money/budget'
import type { Limits } from '../../core/documents'

/** One answer of the arithmetic, for the runner's own program to give it again. */
export interface Reckoning {
  budget: AttemptBudget
  spentAtMs: number
  spentMicroUsd: number
  stopAtMs: number
}

/**
 * When a runner must have its machine off, by the last report (`limits.py`; that repeats every calculation here).
 * Instants are of the machine's monotonic clock.
 */
export class RunnerLimits {
  private spent: { atMs: number; microUsd: number }

  constructor(
    private limits: Limits,
    orderedMs: number,
    private readonly reckonings: Reckoning[],
  ) {
    this.spent = { atMs: orderedMs, microUsd: 0 }
  }

  get seq(): number {
    return this.limits.seq
  }

  obey(limits: Limits): void {
    if (limits.seq > this.limits.seq) this.limits = limits
  }

  learn(atMs: number, microUsd: number): void {
    if (atMs > this.spent.atMs) this.spent = { atMs, microUsd }
  }

  get stopAtMs(): number {
    const { budget } = this.limits
    if (budget === null) return Infinity
    const stopAtMs = this.spent.atMs + paidForMs(budget, this.spent.microUsd)
    this.reckonings.push({ budget, spentAtMs: this.spent.atMs, spentMicroUsd: this.spent.microUsd, stopAtMs })
    return stopAtMs
  }
}
