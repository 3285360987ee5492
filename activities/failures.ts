import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity'
import { failureOf } from '../backends/errors'
import type { Failure, FailureClass } from '../core/failure'
import { PERSISTENT_ACTIVITIES } from '../core/persistent-activities'
import { StoreError } from '../storage/store'

/**
 * The only place that converts errors to what Temporal carries: an `ApplicationFailure` whose type is the failure class and whose
 * first detail is the failure. An inbound interceptor of every activity worker.
 */
export const failureInterceptor = {
  async execute<Input>(input: Input, next: (input: Input) => Promise<unknown>): Promise<unknown> {
    try {
      return await next(input)
    } catch (error) {
      if (isTemporals(error)) throw error
      const { activityType } = Context.current().info
      throw toApplicationFailure(error, {
        isPersistent: (PERSISTENT_ACTIVITIES as readonly string[]).includes(activityType),
      })
    }
  },
}

/**
 * The classes that Temporal may retry: those that guarantee that nothing happened, and the unclassified, as often as the retry
 * policies of `workflows/activities.ts` allow. For `PERSISTENT_ACTIVITIES` it may retry every class.
 */
const RETRIED: readonly FailureClass[] = ['throttled', 'transient', 'unclassified']

/** A store that lets two writers create one key never becomes usable: nothing may rely on it. */
const UNFIT_STORE = 'NO_PUT_IF_ABSENT'

export function toApplicationFailure(
  error: unknown,
  { isPersistent = false }: { isPersistent?: boolean } = {},
): ApplicationFailure {
  const failure = classify(error)
  return ApplicationFailure.create({
    type: failure.class,
    message: failure.message,
    details: [failure],
    nonRetryable: failure.code === UNFIT_STORE || (!isPersistent && !RETRIED.includes(failure.class)),
    ...(failure.retryAfterMs === undefined ? {} : { nextRetryDelay: failure.retryAfterMs }),
    // Waiting for a slow step is no reason for a warning.
    ...(failure.class === 'transient' && failure.retryAfterMs !== undefined ? { category: 'BENIGN' } : {}),
    ...(error instanceof Error ? { cause: error } : {}),
  })
}

function classify(error: unknown): Failure {
  if (!(error instanceof StoreError)) return failureOf(error)
  // Also if only a person can fix it, such as a store mounted read-only: that is our trouble, and never a fact about the job.
  return {
    class: error.code === UNFIT_STORE ? 'invalid' : 'transient',
    message: error.message,
    ...(error.code === undefined ? {} : { code: error.code }),
  }
}

/** Matched by name as well: `instanceof` does not recognise errors of a second copy of the SDK. */
function isTemporals(error: unknown): boolean {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return true
  const name = (error as { name?: unknown } | null)?.name
  return name === 'ApplicationFailure' || name === 'CancelledFailure'
}
