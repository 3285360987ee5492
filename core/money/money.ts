import { withoutEnd } from '../trim'

/**
 * Money is an integer number of micro-dollars (1 USD = 1_000_000), so that sums over many attempts are exact.
 * `Number.MAX_SAFE_INTEGER` micro-dollars are nine billion dollars: no amount met here comes near it.
 *
 * @public
 */
export type MicroUsd = number

export const MICRO_USD_PER_USD = 1_000_000

/** Dollars as people and price lists write them, to micro-dollars, rounded to the nearest. */
export function microUsd(usd: number): MicroUsd {
  return Math.round(usd * MICRO_USD_PER_USD)
}

/**
 * Micro-dollars for people: two decimals from a cent up, otherwise at most four. `formatUsd(0)` is `$0.00`, `formatUsd(1_500)` is
 * `$0.0015`, `formatUsd(7)` is `<$0.0001`.
 */
export function formatUsd(amount: MicroUsd): string {
  const sign = amount < 0 ? '-' : ''
  const usd = Math.abs(amount) / MICRO_USD_PER_USD
  if (usd === 0 || usd >= 0.01) return `${sign}$${usd.toFixed(2)}`
  if (usd < 0.00005) return amount < 0 ? '>-$0.0001' : '<$0.0001'
  return `${sign}$${withoutEnd(usd.toFixed(4), '0')}`
}

/** A large sum of dollars for people: `$1,849,344` */
export function usdInWords(usd: number): string {
  return `$${usd.toLocaleString('en-US', { maximumFractionDigits: usd < 1_000 ? 2 : 0, minimumFractionDigits: usd < 1_000 ? 2 : 0 })}`
}

/** Micro-dollars as a job file takes them, exactly: `$0.001784`. */
export function exactUsd(amount: MicroUsd): string {
  // Of six decimals, two stay.
  return `$${(amount / MICRO_USD_PER_USD).toFixed(6).replace(/0{1,4}$/, '')}`
}
