/**
 * Why an operation or an attempt failed, named for what may be done next. `throttled` and `transient` are retried where
 * they happen and reach a decision only when retrying ran out of time. docs/reference/failures.md has a line for each.
 */
export const FAILURE_CLASSES = [
  /** The provider asks to slow down. Retry later; nothing happened. */
  'throttled',
  /** Fails now; the same request may succeed soon. Certainly nothing happened. */
  'transient',
  /** This offer has no machine now, or its backend has no worker. Another offer may have one. */
  'capacity',
  /** The account's quota is used up. Another backend or region may do; a person can raise the quota. */
  'quota',
  /** A machine was bought but is unreachable. Try once more in another place, then stop and say what to check. */
  'unreachable',
  /** Our machine was taken back or died. Resume from the newest checkpoint; this has its own allowance. */
  'interrupted',
  /** The user's program failed. Policy decides whether to try again. */
  'workload',
  /** The reservation is over or gone. Another offer may do. */
  'expired',
  /** Credentials or permissions. Stop and say which. */
  'auth',
  /** The request can never work. Stop and say which field. */
  'invalid',
  /** Not classified yet: a few tries, then stop and show the raw code. */
  'unclassified',
] as const
export type FailureClass = (typeof FAILURE_CLASSES)[number]

/** An error of one of these classes guarantees that a mutating call had no effect (`Backend`). */
const WITHOUT_EFFECT: readonly FailureClass[] = [
  'throttled',
  'transient',
  'capacity',
  'quota',
  'expired',
  'auth',
  'invalid',
]

/** Whether a call that failed so has certainly bought nothing. */
export function isWithoutEffect({ class: failureClass }: Pick<Failure, 'class'>): boolean {
  return WITHOUT_EFFECT.includes(failureClass)
}

export interface Failure {
  class: FailureClass
  /** One sentence for a person: what happened, without a stack. */
  message: string
  /** What to do about it, if anything. */
  hint?: string
  /** The provider's or the operating system's own code, verbatim. */
  code?: string
  /** When to try again, if the other side said so. */
  retryAfterMs?: number
}

/** What happened, and what to do about it. */
export function inWords({ message, hint }: Pick<Failure, 'message' | 'hint'>): string {
  return hint === undefined ? message : `${message} ${hint}`
}

export function isFailureClass(value: unknown): value is FailureClass {
  return (FAILURE_CLASSES as readonly unknown[]).includes(value)
}

/** What `ApplicationFailure.create` needs to carry a failure across Temporal; `failureFrom` reads it. */
export function carrying(failure: Failure): {
  type: FailureClass
  message: string
  details: [Failure]
  nextRetryDelay?: number
} {
  const { class: type, message, retryAfterMs } = failure
  const delay = retryAfterMs === undefined ? {} : { nextRetryDelay: retryAfterMs }
  return { type, message, details: [failure], ...delay }
}

/** The parts of Temporal's ApplicationFailure that carry a failure across; matched by shape because classes do not cross. */
interface FailureCarrier {
  type?: unknown
  message?: unknown
  details?: unknown
  cause?: unknown
}

/**
 * Reads a failure back from anything that an activity or a child threw: the nearest cause whose `type` is a failure class. Anything else is
 * `unclassified` with the innermost message.
 */
export function failureFrom(error: unknown): Failure {
  let at = error as FailureCarrier | undefined
  let message = 'unknown error'
  for (let depth = 0; at !== undefined && at !== null && depth < CAUSES_MAX; depth++) {
    if (typeof at.message === 'string' && at.message !== '') message = at.message
    if (isFailureClass(at.type)) {
      const detail = Array.isArray(at.details) ? (at.details[0] as Partial<Failure> | undefined) : undefined
      return { ...detail, class: at.type, message: detail?.message ?? message }
    }
    at = at.cause as FailureCarrier | undefined
  }
  return { class: 'unclassified', message }
}

/** Chains of causes are three or four long (child, activity, application); the bound guards against a cycle. */
const CAUSES_MAX = 10
