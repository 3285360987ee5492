import { AwsError } from './api'

/** The parts of whatever the SDK throws that tell what happened; its classes are many and its copies may be several. */
interface Thrown {
  name?: unknown
  Code?: unknown
  code?: unknown
  message?: unknown
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean }
}

/** Errors of the network that come before a byte was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']
const UNSENT_NAMES = ['CredentialsProviderError', 'TokenProviderError']

/** Makes one call of the SDK; what it throws becomes an `AwsError` that says how far the request got. */
export async function call<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  if (signal.aborted) throw new AwsError('the caller stopped waiting', { code: 'Aborted', reach: 'unsent' })
  try {
    return await send().catch((error: unknown) => {
      // Refused for the time that it was signed at, which the SDK has learned since: nothing has happened, and now it is right.
      if ((error as Thrown).$metadata?.clockSkewCorrected !== true) throw error
      return send()
    })
  } catch (error) {
    throw awsError(error)
  }
}

export function awsError(error: unknown): AwsError {
  if (error instanceof AwsError) return error
  const thrown = (error ?? {}) as Thrown
  const name = textOf(thrown.name) ?? 'Error'
  const system = textOf(thrown.code)
  const message = textOf(thrown.message) ?? name
  const httpStatus = thrown.$metadata?.httpStatusCode
  if (httpStatus !== undefined && !isNoAnswer(name, httpStatus)) {
    return new AwsError(message, { code: codeOf(thrown, name), httpStatus, reach: 'answered', cause: error })
  }
  const isUnsent =
    UNSENT_NAMES.includes(name) ||
    UNSENT.includes(system ?? '') ||
    // The SDK's own words for a connection that never came about.
    /without establishing a connection/i.test(message)
  return new AwsError(message, {
    code: system ?? name,
    reach: isUnsent ? 'unsent' : 'unanswered',
    cause: error,
  })
}

/** An answer that was cut short carries a status, and says nothing all the same. */
function isNoAnswer(name: string, httpStatus: number): boolean {
  return httpStatus < 400 && name !== 'DryRunOperation'
}

/** Some answers name their shape rather than their code, or both. */
function codeOf({ Code }: Thrown, name: string): string {
  return textOf(Code) ?? name
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
