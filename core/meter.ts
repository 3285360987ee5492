import type { MicroUsd } from './money'
import { HOUR_MS, SECOND_MS } from './time'

const SECONDS_PER_HOUR = HOUR_MS / SECOND_MS

/** A price, and since when it is in force. */
export interface PriceStep {
  fromAtMs: number
  priceMicroUsdPerHour: MicroUsd
}

/** Something that is billed by time. An open one (`toAtMs` missing) still costs. */
export interface Usage {
  fromAtMs: number
  toAtMs?: number
  /** At its beginning. */
  priceMicroUsdPerHour: MicroUsd
  /** What the price became, oldest first. */
  changes?: readonly PriceStep[]
  /** What is billed at least, however soon it ended. */
  billedAtLeastMs?: number
  /** Each begun step is billed in full; `SECOND_MS` if missing. */
  billedInStepsOfMs?: number
}

/** How a provider rounds the time that it bills. */
export type Rounding = Pick<Usage, 'billedAtLeastMs' | 'billedInStepsOfMs'>

/** The billed time of a machine that ran for a duration: whole steps, and no less than the minimum. */
export function billedMs(
  durationMs: number,
  { billedAtLeastMs = 0, billedInStepsOfMs = SECOND_MS }: Rounding,
): number {
  return Math.ceil(Math.max(durationMs, billedAtLeastMs) / billedInStepsOfMs) * billedInStepsOfMs
}

/**
 * What it costs until `nowMs`: by the started step and for no less than the least, as providers bill, each moment at the price then
 * in force, rounded up to the next micro-dollar. This file holds the only spend arithmetic.
 */
export function spend(usage: Usage, nowMs: number): MicroUsd {
  const { fromAtMs, toAtMs = nowMs, priceMicroUsdPerHour, changes = [] } = usage
  const durationMs = toAtMs - fromAtMs
  if (durationMs <= 0) return 0
  const billedToMs = fromAtMs + billedMs(durationMs, usage)
  const sum = new Sum()
  let at: PriceStep = { fromAtMs, priceMicroUsdPerHour }
  for (const change of changes) {
    // What is billed beyond the end is billed at the price of the end, whoever asks when.
    if (change.fromAtMs >= toAtMs) break
    if (change.fromAtMs > at.fromAtMs) sum.add(change.fromAtMs - at.fromAtMs, at)
    at = { ...change, fromAtMs: Math.max(at.fromAtMs, change.fromAtMs) }
  }
  sum.add(billedToMs - at.fromAtMs, at)
  return sum.microUsd
}

/** Adds stretches up without rounding any: a month of milliseconds times a price is more than a number holds exactly. */
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

/** What the cost of an attempt rests on. */
export interface Metering {
  /** `told`: the provider's own prices over time. `fixed`: its price does not change. `dearest`: the most that it can have been, since nobody told. */
  basis: 'told' | 'fixed' | 'dearest'
  /** Oldest first; the first from the beginning. Only the newest of very many. */
  prices: PriceStep[]
}

/** What a machine that still runs has cost. */
export interface Metered {
  toAtMs: number
  costMicroUsd: MicroUsd
  /** The price then in force. */
  priceMicroUsdPerHour: MicroUsd
}

/** What a duration costs at a price. */
export function spendOver(
  durationMs: number,
  priceMicroUsdPerHour: MicroUsd,
  rounding: Rounding = {},
): MicroUsd {
  const billedSeconds = billedMs(durationMs, rounding) / SECOND_MS
  return Math.ceil((billedSeconds * priceMicroUsdPerHour) / SECONDS_PER_HOUR)
}
