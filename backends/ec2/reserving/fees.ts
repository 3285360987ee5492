import { withoutEnd } from '../../../core/trim'
import type { MicroUsd } from '../../../core/money/money'

const DIGITS = 6

/**
 * A decimal number as AWS writes fees, in millionths; exact, because it never becomes a fraction. Digits after the sixth count as one
 * more millionth. Undefined for anything but a decimal number, and beyond the safe integers.
 */
export function microOf(decimal: string): MicroUsd | undefined {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  if (whole === undefined) return undefined
  const rest = /[1-9]/.test(fraction.slice(DIGITS)) ? 1 : 0
  const micro = Number(`${whole}${fraction.slice(0, DIGITS).padEnd(DIGITS, '0')}`) + rest
  return Number.isSafeInteger(micro) ? micro : undefined
}

/** The reverse: `1234.5`. */
export function decimalOf(micro: MicroUsd): string {
  const digits = String(micro).padStart(DIGITS + 1, '0')
  const fraction = withoutEnd(digits.slice(-DIGITS), '0')
  return `${digits.slice(0, -DIGITS)}${fraction === '' ? '' : `.${fraction}`}`
}
