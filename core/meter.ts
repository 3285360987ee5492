import type { MicroUsd } from './money'
import { DAY_MS, HOUR_MS, SECOND_MS } from './time'

const SECONDS_PER_HOUR = HOUR_MS / SECOND_MS

/** Ten years, the longest that anything is said to be affordable: within every timer's range and every number's precision. */
export const AFFORDABLE_MAX_MS = 3_650 * DAY_MS

/** A stretch of time at one price. An open stretch (`toAtMs` missing) still costs. */
export interface Usage {
  fromAtMs: number
  toAtMs?: number
  priceMicroUsdPerHour: MicroUsd
}

/**
 * What a stretch costs until `nowMs`: by the started second, as providers bill, rounded up to the next micro-dollar.
 * This file holds the only spend arithmetic.
 */
export function spend(usage: Usage, nowMs: number): MicroUsd {
  const durationMs = Math.max(0, (usage.toAtMs ?? nowMs) - usage.fromAtMs)
  return spendOver(durationMs, usage.priceMicroUsdPerHour)
}

/** What a duration costs at a price. */
export function spendOver(durationMs: number, priceMicroUsdPerHour: MicroUsd): MicroUsd {
  const billedSeconds = Math.ceil(durationMs / SECOND_MS)
  return Math.ceil((billedSeconds * priceMicroUsdPerHour) / SECONDS_PER_HOUR)
}

/**
 * How long a machine may be billed for what is left, in whole billed seconds; `null` when it costs nothing. Never so long
 * that `spendOver` of it exceeds `remainingMicroUsd`.
 */
export function affordableMs(remainingMicroUsd: MicroUsd, priceMicroUsdPerHour: MicroUsd): number | null {
  if (priceMicroUsdPerHour <= 0) return null
  const seconds = Math.floor((Math.max(0, remainingMicroUsd) * SECONDS_PER_HOUR) / priceMicroUsdPerHour)
  return Math.min(seconds * SECOND_MS, AFFORDABLE_MAX_MS)
}
