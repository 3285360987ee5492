import { trustRemedyOf } from '../../../network/config'
import { signInRemedyOf } from '../../../network/sign-in'
import { AwsError } from './api'

/** Informative parts of the SDK's errors, which have many classes and may come from several copies. */
interface Thrown {
  name?: unknown
  Code?: unknown
  code?: unknown
  message?: unknown
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean }
}

/** Network errors before any byte was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']
const UNSENT_NAMES = ['CredentialsProviderError', 'TokenProviderError']

/** Makes one call of the SDK; an error becomes an `AwsError` that records how far the request got. */
export async function call<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  return callOnce(signal, () =>
    send().catch((error: unknown) => {
      // Refused because of the signing time, which the SDK has corrected since: nothing has happened, and a retry succeeds.
      if ((error as Thrown).$metadata?.clockSkewCorrected !== true) throw error
      return send()
    }),
  )
}

/**
 * Makes a call that must never be sent twice. The SDK marks every first error of a client with clock skew as corrected, also one after
 * which the call may have had its effect; such a call is not sent again.
 */
export async function callOnce<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  if (signal.aborted) throw new AwsError('the caller stopped waiting', { code: 'Aborted', reach: 'unsent' })
  try {
    return await send()
  } catch (error) {
    throw awsError(error)
  }
}

export function awsError(error: unknown): AwsError {
  if (error instanceof AwsError) return error
  const thrown = (error ?? {}) as Thrown
  const name = textOf(thrown.name) ?? NAMELESS
  const system = textOf(thrown.code)
  const httpStatus = thrown.$metadata?.httpStatusCode
  const own = textOf(thrown.message) ?? name
  const message =
    name === NAMELESS
      ? `AWS answered HTTP ${httpStatus} without an error code`
      : isUnreadable(name, httpStatus)
        ? `AWS sent an answer that cannot be read (${own.split('\n')[0]!.trim()})`
        : own
  const remedy = signInRemedyOf(error) ?? trustRemedyOf(system)
  if (httpStatus !== undefined && !isNoAnswer(name, httpStatus)) {
    const code = codeOf(thrown, name)
    return new AwsError(message, { code, httpStatus, reach: 'answered', remedy, cause: error })
  }
  const isUnsent =
    remedy !== undefined ||
    UNSENT_NAMES.includes(name) ||
    UNSENT.includes(system ?? '') ||
    // The SDK's own wording for a connection that was never established.
    /without establishing a connection/i.test(message)
  return new AwsError(message, {
    code: system ?? name,
    reach: isUnsent ? 'unsent' : 'unanswered',
    remedy,
    cause: error,
  })
}

/** The SDK's name for an error whose answer has no code, such as a page of a proxy. An empty code makes its name empty. */
const NAMELESS = 'UnknownError'

/** A truncated answer has a status, but no usable content. */
function isNoAnswer(name: string, httpStatus: number): boolean {
  return name === NAMELESS || isUnreadable(name, httpStatus)
}

function isUnreadable(name: string, httpStatus = 500): boolean {
  return httpStatus < 400 && name !== 'DryRunOperation'
}

/** Returns the code of an error. Some answers name their shape instead of their code, or both. */
function codeOf({ Code }: Thrown, name: string): string {
  return textOf(Code) ?? name
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
