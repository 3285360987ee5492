import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import { failureOf } from '../backends/errors'
import type { Failure, FailureClass } from '../core/failure'
import { StoreError } from '../storage/store'

/**
 * The one place where what went wrong below becomes what Temporal carries: an `ApplicationFailure` whose type is the failure
 * class and whose first detail is the failure. An inbound interceptor of every activity worker.
 */
export const failureInterceptor = {
  async execute<Input>(input: Input, next: (input: Input) => Promise<unknown>): Promise<unknown> {
    try {
      return await next(input)
    } catch (error) {
      throw isTemporals(error) ? error : toApplicationFailure(error)
    }
  },
}

/**
 * The classes that Temporal may try again by itself: those that promise that nothing happened, and the unclassified, as
 * often as the retry policies of `workflows/activities.ts` allow.
 */
const RETRIED: readonly FailureClass[] = ['throttled', 'transient', 'unclassified']

export function toApplicationFailure(error: unknown): ApplicationFailure {
  const failure = classify(error)
  return ApplicationFailure.create({
    type: failure.class,
    message: failure.message,
    details: [failure],
    nonRetryable: !RETRIED.includes(failure.class),
    ...(failure.retryAfterMs === undefined ? {} : { nextRetryDelay: failure.retryAfterMs }),
    // Waiting for what takes its time is nothing to warn of.
    ...(failure.class === 'transient' && failure.retryAfterMs !== undefined ? { category: 'BENIGN' } : {}),
    ...(error instanceof Error ? { cause: error } : {}),
  })
}

function classify(error: unknown): Failure {
  if (!(error instanceof StoreError)) return failureOf(error)
  return {
    class: error.isTransient ? 'transient' : 'invalid',
    message: error.message,
    ...(error.code === undefined ? {} : { code: error.code }),
  }
}

/** Matched by name as well: where a second copy of the SDK is loaded, `instanceof` does not see the other's. */
function isTemporals(error: unknown): boolean {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return true
  const name = (error as { name?: unknown } | null)?.name
  return name === 'ApplicationFailure' || name === 'CancelledFailure'
}
