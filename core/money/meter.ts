import type { MicroUsd } from './money'
import { HOUR_MS, SECOND_MS } from '../time/time'

const SECONDS_PER_HOUR = HOUR_MS / SECOND_MS

/** A price, and since when it applies. */
export interface PriceStep {
  fromAtMs: number
  priceMicroUsdPerHour: MicroUsd
}

/** Usage billed by time. An open one (`toAtMs` missing) still costs. */
export interface Usage {
  fromAtMs: number
  toAtMs?: number
  /** Price at its beginning. */
  priceMicroUsdPerHour: MicroUsd
  /** Later prices, oldest first. */
  changes?: readonly PriceStep[]
  /** Minimum billed duration. */
  billedAtLeastMs?: number
  /** Each begun step is billed in full; `SECOND_MS` if missing. */
  billedInStepsOfMs?: number
}

/** Rounding of billed time by a provider. */
export type Rounding = Pick<Usage, 'billedAtLeastMs' | 'billedInStepsOfMs'>

/** The billed time of a machine that ran for a duration: whole steps, and no less than the minimum. */
export function billedMs(
  durationMs: number,
  { billedAtLeastMs = 0, billedInStepsOfMs = SECOND_MS }: Rounding,
): number {
  return Math.ceil(Math.max(durationMs, billedAtLeastMs) / billedInStepsOfMs) * billedInStepsOfMs
}

/**
 * Cost until `nowMs`: by the started step and at least the minimum duration, as providers bill, each moment at the price then in force,
 * rounded up to the next micro-dollar. This file holds the only spend arithmetic.
 */
export function spend(usage: Usage, nowMs: number): MicroUsd {
  const { fromAtMs, toAtMs = nowMs, priceMicroUsdPerHour, changes = [] } = usage
  const durationMs = toAtMs - fromAtMs
  if (durationMs <= 0) return 0
  const billedToMs = fromAtMs + billedMs(durationMs, usage)
  const sum = new Sum()
  let at: PriceStep = { fromAtMs, priceMicroUsdPerHour }
  for (const change of changes) {
    // Time billed beyond the end has the price of the end, so that the result does not depend on when it is computed.
    if (change.fromAtMs >= toAtMs) break
    if (change.fromAtMs > at.fromAtMs) sum.add(change.fromAtMs - at.fromAtMs, at)
    at = { ...change, fromAtMs: Math.max(at.fromAtMs, change.fromAtMs) }
  }
  sum.add(billedToMs - at.fromAtMs, at)
  return sum.microUsd
}

/** Sums products without rounding each stretch, because a month of milliseconds times a price exceeds the exact range of a number. */
class Sum {
  private whole = 0
  private rest = 0

  add(durationMs: number, { priceMicroUsdPerHour: price }: PriceStep): void {
    const hours = Math.floor(durationMs / HOUR_MS)
    this.rest += (durationMs - hours * HOUR_MS) * price
    this.whole += hours * price + Math.floor(this.rest / HOUR_MS)
    this.rest %= HOUR_MS
  }

  get microUsd(): MicroUsd {
    return this.whole + (this.rest > 0 ? 1 : 0)
  }
}

/** Basis and prices of an attempt's cost. */
export interface Metering {
  /**
   * Basis of the price: the provider's price history (`told`), a constant price (`fixed`), or an upper bound for an unknown price
   * (`dearest`).
   */
  basis: 'told' | 'fixed' | 'dearest'
  /** Price steps, oldest first, beginning with the first price; only the newest ones of very many. */
  prices: PriceStep[]
}

/** Cost so far of a running machine. */
export interface Metered {
  toAtMs: number
  costMicroUsd: MicroUsd
  /** The price then in force. */
  priceMicroUsdPerHour: MicroUsd
}

/** Facts about the bill of a running machine. */
export interface RunningBill extends Rounding {
  fromAtMs: number
  /** Price of its launch. */
  priceMicroUsdPerHour: MicroUsd
  /** The watch's last report; missing before the first one. */
  metered?: Metered | undefined
}

/**
 * Cost of a running machine so far, for every view. It never falls while the machine runs: the minimum billed duration counts from the
 * first moment, and a report is continued by whole billing steps at its price.
 */
export function costSoFar({ metered, ...launched }: RunningBill, nowMs: number): MicroUsd {
  if (metered === undefined) return spend(launched, nowMs)
  const stepMs = launched.billedInStepsOfMs ?? SECOND_MS
  const wholeMs = Math.floor(Math.max(0, nowMs - metered.toAtMs) / stepMs) * stepMs
  const minimum = spend({ ...launched, toAtMs: launched.fromAtMs + 1 }, nowMs)
  return Math.max(minimum, metered.costMicroUsd + floorOver(wholeMs, metered.priceMicroUsdPerHour))
}

/** Cost of a duration, rounded down, so that the next report is not lower. */
function floorOver(durationMs: number, priceMicroUsdPerHour: MicroUsd): MicroUsd {
  return Math.floor((durationMs / SECOND_MS / SECONDS_PER_HOUR) * priceMicroUsdPerHour)
}

/** Returns the cost of a duration at a price. */
export function spendOver(
  durationMs: number,
  priceMicroUsdPerHour: MicroUsd,
  rounding: Rounding = {},
): MicroUsd {
  const billedSeconds = billedMs(durationMs, rounding) / SECOND_MS
  return Math.ceil((billedSeconds * priceMicroUsdPerHour) / SECONDS_PER_HOUR)
}
