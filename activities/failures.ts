import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity'
import { failureOf } from '../backends/errors'
import { CODES } from '../core/errors'
import { carrying, RETRIED_IN_PLACE, type Failure } from '../core/failure'
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
      // The SDK's `instanceof` works by a symbol: it recognises the errors of a second copy of the SDK too.
      if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error
      const { activityType } = Context.current().info
      throw toApplicationFailure(error, {
        isPersistent: (PERSISTENT_ACTIVITIES as readonly string[]).includes(activityType),
      })
    }
  },
}

/** For `PERSISTENT_ACTIVITIES`, Temporal may retry every class. */
function toApplicationFailure(
  error: unknown,
  { isPersistent = false }: { isPersistent?: boolean } = {},
): ApplicationFailure {
  const failure = classify(error)
  return ApplicationFailure.create({
    ...carrying(failure),
    nonRetryable: isFinal(failure.code) || (!isPersistent && !RETRIED_IN_PLACE.includes(failure.class)),
    // Waiting for a slow step is not worth a warning.
    category: failure.class === 'transient' && failure.retryAfterMs !== undefined ? 'BENIGN' : undefined,
    cause: error instanceof Error ? error : undefined,
  })
}

const isFinal = (code: string | undefined): boolean =>
  code === CODES.noPutIfAbsent || code === CODES.otherHistory

function classify(error: unknown): Failure {
  if (!(error instanceof StoreError)) return failureOf(error)
  // Such an activity is retried even if only a person can fix the cause, such as a read-only store, because the cause is unrelated to the
  // job.
  return {
    class: isFinal(error.code) ? 'invalid' : 'transient',
    message: error.message,
    code: error.code,
  }
}
