import { CodedError } from '../core/errors'
import type { Failure, FailureClass } from '../core/failure'
import { isMachine, type ResourceHandle } from '../core/handle'

/**
 * Error of a verb that cannot answer. Its class determines the next step (`core/failure.ts`): `throttled` and `transient` guarantee that
 * nothing happened and that the same call may be sent again. A mutating verb whose effect is unknown never throws: it answers
 * `unconfirmed`.
 */
export class BackendError extends CodedError<'backend'> {
  readonly failure: Failure

  constructor(failure: Failure, options?: { cause?: unknown }) {
    super('backend', failure.message, options)
    this.failure = failure
  }

  get class(): FailureClass {
    return this.failure.class
  }
}

/** Converts any error thrown below to a failure; anything but a `BackendError` is `unclassified`, with the raw text kept. */
export function failureOf(error: unknown): Failure {
  if (error instanceof BackendError) return error.failure
  const { message, code } = error as { message?: unknown; code?: unknown }
  return {
    class: 'unclassified',
    message: typeof message === 'string' ? message : String(error),
    code: typeof code === 'string' ? code : undefined,
  }
}

/**
 * Converts an error of a verb to a `BackendError`, and passes such an error unchanged. An error of the class that the backend knows has the
 * failure that it represents.
 */
export function classified<Known extends Error>(
  error: unknown,
  known: abstract new (...args: never[]) => Known,
  meaningOf: (error: Known) => Failure,
): BackendError {
  if (error instanceof BackendError) return error
  const failure = error instanceof known ? meaningOf(error) : failureOf(error)
  return new BackendError(failure, { cause: error })
}

/** A request that can never work. */
export function invalid(message: string, hint: string): BackendError {
  return new BackendError({ class: 'invalid', message, hint })
}

/** Throws for a machine whose provider shows another attempt than its handle: a record can be forged. A lost tag shows none. */
export function assertOfAttempt(resource: ResourceHandle, attemptId: string): void {
  if (!isMachine(resource) || attemptId === '' || resource.attemptId === attemptId) return
  throw invalid(
    `machine ${resource.id} is of attempt ${attemptId}, not of ${resource.attemptId}`,
    'Nothing was ended. Check who can write to the object store.',
  )
}
