import { formatUsd } from '../money/money'
import type { CapacityQuote } from './reservation'

/** Describes the price of a quote: `$6645.12 upfront`, or `$2.01 per hour, used or not`. */
export function priceInWords({
  kind,
  upfrontMicro,
  perHourMicro,
  currency,
}: Pick<CapacityQuote, 'kind' | 'upfrontMicro' | 'perHourMicro' | 'currency'>): string {
  const amount = (micro: number): string =>
    currency === 'USD' ? formatUsd(micro) : `${(micro / 1e6).toFixed(2)} ${currency}`
  return kind === 'prepaid'
    ? `${amount(upfrontMicro)} upfront`
    : `${amount(perHourMicro)} per hour, used or not`
}
