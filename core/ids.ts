/** Crockford's base 32: no letter is mistaken for a digit; lower case, as providers want it in names. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
/** Fifty bits: enough that two made at random never meet. */
const LENGTH = 10

/**
 * A new id, such as `job-0r5k2m9x4c`.
 *
 * @param randomBelow a random whole number from 0 up to, but without, its argument
 */
export function makeId(prefix: 'job' | 'dep', randomBelow: (limit: number) => number): string {
  const digits = Array.from({ length: LENGTH }, () => DIGITS[randomBelow(DIGITS.length)])
  return `${prefix}-${digits.join('')}`
}
