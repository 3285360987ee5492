import type { PriceStep } from '../../core/meter'

/** A machine as its provider bills it. */
export interface BilledTime {
  /** When it came to run; it is missing of one that never did. */
  fromMs?: number
  toMs: number
  prices: readonly PriceStep[]
}

const HOUR = 3_600_000n

/**
 * The provider's bill in micro-dollars, worked out without Crucible's code: a minute at least, then each started second, second by
 * second at the price that is in force when it begins or, should that change within it, for each millisecond its own; rounded up.
 */
export function billOf({ fromMs, toMs, prices }: BilledTime): number {
  if (fromMs === undefined || toMs <= fromMs) return 0
  const seconds = Math.max(60, Math.ceil((toMs - fromMs) / 1_000))
  const endMs = fromMs + seconds * 1_000
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
