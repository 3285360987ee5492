import { CodedError } from '../../../core/errors'

export type TemporalServerErrorCode =
  /** The environment names a server or an executable that cannot be used. */
  | 'configuration'
  /** The server that the environment names does not answer. */
  | 'no-answer'
  /** Every way to find or install an executable failed. */
  | 'not-found'
  /** A requested port is in use. */
  | 'port-taken'
  /** Another dev server has the same data file open. */
  | 'in-use'
  /** The data file cannot be used by this version of the server. */
  | 'data-file'
  /** The server ended, or never answered, before it was ready. */
  | 'start-failed'

/** Thrown by every function here for problems that a person can fix; the message says what happened, why, and what to do. */
export class TemporalServerError extends CodedError<'temporal'> {
  readonly code: TemporalServerErrorCode

  constructor(code: TemporalServerErrorCode, message: string, options?: { cause?: unknown }) {
    super('temporal', message, options)
    this.code = code
  }
}

/** The message of anything thrown; `fetch` hides the real error in its cause. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
