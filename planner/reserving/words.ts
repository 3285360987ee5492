import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { CapacityQuote } from '../../core/reservation/reservation'
import type { JudgedQuote } from '../../core/reservation/reserving'
import { formatInstant } from '../../core/time/time'

/** `8 × p5.48xlarge in us-east-1a, 2027-01-04T11:30:00Z to 2027-01-11T11:30:00Z`. */
export function quoteInWords({ type, count, zone, startsAtMs, endsAtMs }: CapacityQuote): string {
  const end = endsAtMs === undefined ? 'until it is released' : `to ${formatInstant(endsAtMs)}`
  return `${count} × ${type} in ${zone}, ${formatInstant(startsAtMs)} ${end}`
}

export function priceInWords({ quote, machineHourMicro }: JudgedQuote): string {
  const each = `${formatUsd(machineHourMicro)} per machine and hour`
  return quote.kind === 'prepaid'
    ? `${formatUsd(quote.upfrontMicro)} upfront, ${each}`
    : `${each}, used or not`
}

export function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? capital(text) : `${capital(text)}.`
}

/** Describes payments for lost capacity of the same request; empty for none. */
export function lostInWords(microUsd: MicroUsd): string {
  return microUsd === 0 ? '' : `${formatUsd(microUsd)} were paid before, for capacity that was lost. `
}
