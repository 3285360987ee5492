import type { AttemptBudget } from '../../core/budget'

/** Money for so much time at the dearest price: a micro-dollar for each second. */
export function paidFor(durationMs: number): AttemptBudget {
  return { microUsd: durationMs / 1_000, priceMaxMicroUsdPerHour: 3_600 }
}
