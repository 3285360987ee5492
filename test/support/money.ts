import type { AttemptBudget } from '../../core/money/budget'

/** Money for so much time at the dearest price: a micro-dollar for each second begun. */
export function paidFor(durationMs: number): AttemptBudget {
  return { microUsd: Math.ceil(durationMs / 1_000), priceMaxMicroUsdPerHour: 3_600 }
}
