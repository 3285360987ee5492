import type { Failure } from '../../core/failure'
import { BackendError, classified } from '../errors'
import { AwsError } from './sdk/api'
import { meaningOf, meaningOfState, type Meaning } from './meanings'

export { invalid } from '../errors'

/** Returns the failure for a code, with its raw text. */
export function failureOfCode(code: string, message: string): Failure {
  return toFailure(meaningOf(code, message), { code, message })
}

/** The failure of a machine that never reached the running state. */
export function failureOfState(code: string, message: string): Failure | undefined {
  const known = meaningOfState(code)
  return known && toFailure(known, { code, message: message === '' ? code : message })
}

function toFailure(known: Meaning | undefined, facts: { code: string; message: string }): Failure {
  return {
    class: known?.class ?? 'unclassified',
    ...facts,
    hint: known?.hint,
    retryAfterMs: known?.retryAfterMs,
  }
}

/** Whether a mutating call that failed this way may have had an effect. */
export function mayHaveHappened(error: AwsError): boolean {
  if (error.reach !== 'answered') return error.reach === 'unanswered'
  const known = meaningOf(error.code, error.message)
  return known?.isUncertain ?? (known === undefined && (error.httpStatus ?? 0) >= 500)
}

/** Converts every error of a verb to a `BackendError`. */
export const ec2Error = (error: unknown): BackendError =>
  classified(error, AwsError, ({ code, message, reach, httpStatus, remedy }) => {
    const known = failureOfCode(code, message)
    const failure = remedy === undefined ? known : { ...known, hint: remedy }
    // An overloaded server, or no answer, gives no code to classify.
    const isPassing = failure.class === 'unclassified' && (reach !== 'answered' || (httpStatus ?? 0) >= 500)
    return isPassing ? { ...failure, class: 'transient' } : failure
  })

export function transient(message: string, retryAfterMs?: number): BackendError {
  const later = retryAfterMs === undefined ? {} : { retryAfterMs }
  return new BackendError({ class: 'transient', message, ...later })
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof AwsError && codes.includes(error.code)
}
