import { CODES } from './errors'
import { refusalOfArguments } from './stamps'

/**
 * Classes of failures, named for the next step. `throttled` and `transient` are retried in place and reach a decision only when retrying
 * ran out of time. docs/reference/failures.md has a line for each.
 * @internal Tests go over all of them.
 */
export const FAILURE_CLASSES = [
  /** The provider asks to slow down. Retry later; nothing happened. */
  'throttled',
  /** Fails now; the same request may succeed soon. Certainly nothing happened. */
  'transient',
  /** The offer has no machine now, or its backend has no worker. Another offer may have one. */
  'capacity',
  /** The account's quota is used up. Another backend or region may do; a person can raise the quota. */
  'quota',
  /** A machine was bought but is unreachable. Try once more in another place, then stop and say what to check. */
  'unreachable',
  /** Our machine was taken back or died. The job resumes from the newest checkpoint, within a separate allowance. */
  'interrupted',
  /** The user's program failed. Policy decides whether to try again. */
  'workload',
  /** The reservation is over or missing. Another offer may work. */
  'expired',
  /** Credentials or permissions. Stop and say which. */
  'auth',
  /** The request can never work. Stop and say which field. */
  'invalid',
  /** A document of the attempt is damaged, and what only it contains is lost. Tried again a few times, from the newest checkpoint. */
  'damaged',
  /** An unclassified failure is retried a few times; then the job stops and shows the raw code. */
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

/** Whether a call with this failure has certainly bought nothing. */
export function isWithoutEffect({ class: failureClass }: Pick<Failure, 'class'>): boolean {
  return WITHOUT_EFFECT.includes(failureClass)
}

export interface Failure {
  class: FailureClass
  /** The event, in one sentence for a person, without a stack. */
  message: string
  /** Remedy, if one exists. */
  hint?: string
  /** Verbatim code of the provider or the operating system. */
  code?: string
  /** Time after which the other side asked for a retry. */
  retryAfterMs?: number
}

/** Returns the message of a failure with its remedy. */
export function inWords({ message, hint }: Pick<Failure, 'message' | 'hint'>): string {
  return hint === undefined ? message : `${message} ${hint}`
}

function isFailureClass(value: unknown): value is FailureClass {
  return (FAILURE_CLASSES as readonly unknown[]).includes(value)
}

/** Arguments for `ApplicationFailure.create` that carry a failure across Temporal; `failureFrom` reads them. */
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
 * Reads a failure back from any error of an activity or a child: the nearest cause whose `type` is a failure class. Any other error is
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

/**
 * Why the failure of an activity or a child does not come from this deployment: its details are not signed, or it names a class without any,
 * as anybody who reaches the server can answer.
 */
export function refusalOfFailure(error: unknown): string | undefined {
  let at = error as FailureCarrier | undefined
  for (let depth = 0; at !== undefined && at !== null && depth < CAUSES_MAX; depth++) {
    const details = Array.isArray(at.details) ? at.details : []
    const problem = refusalOfArguments(details)
    if (problem !== undefined) return problem
    if (isFailureClass(at.type)) return details.length === 0 ? 'it is not signed' : undefined
    at = at.cause as FailureCarrier | undefined
  }
  return undefined
}

/** Whether an activity refused the whole workflow, because the permission in its signed input has ended or is used up. */
export function isNotAllowed(error: unknown): boolean {
  return failureFrom(error).code === CODES.notAllowed
}

/** Whether a step is not that of the job's record, because a reset of its workflow has led to other steps. */
export function isOfOtherHistory(error: unknown): boolean {
  return failureFrom(error).code === CODES.otherHistory
}

/**
 * Classes that Temporal may retry: those that guarantee that nothing happened, and the unclassified, as often as the retry policies of
 * `workflows/activities.ts` allow.
 */
export const RETRIED_IN_PLACE: readonly FailureClass[] = ['throttled', 'transient', 'unclassified']

/**
 * The failure that a machine's end shows. An end is final, so a class that asks to repeat the call becomes `unreachable`: only another machine
 * can do, and after a second one a person must look.
 */
export function failureOfEnd(failure: Failure): Failure {
  return RETRIED_IN_PLACE.includes(failure.class) ? { ...failure, class: 'unreachable' } : failure
}

/** Chains of causes are three or four long (child, activity, application); the bound guards against a cycle. */
const CAUSES_MAX = 10
