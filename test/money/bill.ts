import type { PriceStep } from '../../core/money/meter'

/** A machine as its provider bills it. */
export interface BilledTime {
  /** When it came to run; it is missing of one that never did. */
  fromMs?: number
  toMs: number
  prices: readonly PriceStep[]
  /** What is billed at least, and in which steps. */
  leastMs: number
  stepMs: number
}

const HOUR = 3_600_000n

/**
 * The provider's bill in micro-dollars, worked out without Crucible's code: each started step, and no less than the minimum, for each
 * millisecond at the price that is then in force; rounded up.
 */
export function billOf({ fromMs, toMs, prices, leastMs, stepMs }: BilledTime): number {
  if (fromMs === undefined || toMs <= fromMs) return 0
  const endMs = fromMs + Math.ceil(Math.max(leastMs, toMs - fromMs) / stepMs) * stepMs
  let sum = 0n
  // What is billed beyond the end is billed at its price.
  const last = prices.findLastIndex(({ fromAtMs }) => fromAtMs < toMs)
  for (let i = last, untilMs = endMs; i >= 0 && untilMs > fromMs; i--) {
    const sinceMs = i === 0 ? fromMs : Math.max(fromMs, prices[i]!.fromAtMs)
    if (sinceMs >= untilMs) continue
    sum += BigInt(untilMs - sinceMs) * BigInt(prices[i]!.priceMicroUsdPerHour)
    untilMs = sinceMs
  }
  return Number((sum + HOUR - 1n) / HOUR)
}
