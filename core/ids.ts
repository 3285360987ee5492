/** Crockford's base 32: no two letters look alike; lower case, as providers require in names. */
import { withoutEnd } from './trim'

const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const LETTERS = DIGITS.slice(10)

/** A random whole number from 0 up to its argument, exclusive. */
export type RandomBelow = (limit: number) => number

/** Fifty bits: enough that two random ids never collide. */
const DEPLOYMENT_ID_LENGTH = 10

/** A new id of a deployment, such as `dep-0r5k2m9x4c`. */
export function makeDeploymentId(randomBelow: RandomBelow): string {
  return `dep-${digits(DEPLOYMENT_ID_LENGTH, randomBelow)}`
}

/** A new id of a reservation, such as `res-0r5k2m9x4c`. It is the intent under which capacity is bought. */
export function makeReservationId(randomBelow: RandomBelow): string {
  return `res-${digits(DEPLOYMENT_ID_LENGTH, randomBelow)}`
}

/** The longest id of a job (`JOB_ID_PATTERN`). */
const JOB_ID_LENGTH_MAX = 40
/** Length of the suffix: 700 million ids for each name, short enough to read aloud. An id is checked before it is used. */
const JOB_SUFFIX_LENGTH = 6

/**
 * A new id for a job of this name, such as `char-lm-xm8n27`. It begins with a letter, and so does the part after the name: in
 * `char-lm-xm8n27-2` the number is the attempt's.
 */
export function makeJobId(name: string, randomBelow: RandomBelow): string {
  const readable = /^[a-z]/.test(name) ? name : `job-${name}`
  const start = withoutEnd(readable.slice(0, JOB_ID_LENGTH_MAX - JOB_SUFFIX_LENGTH - 1), '-')
  return `${start}-${LETTERS[randomBelow(LETTERS.length)]}${digits(JOB_SUFFIX_LENGTH - 1, randomBelow)}`
}

function digits(count: number, randomBelow: RandomBelow): string {
  return Array.from({ length: count }, () => DIGITS[randomBelow(DIGITS.length)]).join('')
}
