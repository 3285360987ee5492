import type { Failure } from './failure'

/** Codes of our own errors, for rooms that cannot import their classes. */
interface CodedErrors {
  /** A backend call that failed. */
  backend: { readonly failure: Failure }
  /** A folder that cannot be packed. */
  bundle: object
  /** Settings that cannot be used. */
  config: object
  /** A text that is not the expected document. */
  document: object
  /** Sealed secrets or a key that cannot be used. */
  secrets: object
  /** A payload that was not signed by this deployment. */
  seal: { readonly unverified: unknown }
  /** The object store. */
  store: { readonly isTransient: boolean; readonly code: string | undefined }
  /** The development server of Temporal. */
  temporal: { readonly code: string }
  /** A quantity that cannot be read; the remedy is in the imperative. */
  unit: { readonly remedy: string }
}
export type ErrorCode = keyof CodedErrors

/**
 * An error that other rooms recognise by its code and never by its class: import laws, late loading and the bundle of the quick commands
 * keep classes out of reach. `isCoded` reads the code.
 */
export abstract class CodedError<Code extends ErrorCode> extends Error {
  constructor(
    readonly errorCode: Code,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
    this.name = new.target.name
  }
}

export function isCoded<Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is CodedError<Code> & CodedErrors[Code] {
  return (error as { errorCode?: unknown } | null | undefined)?.errorCode === code
}

/** Values of `code` in our own store errors and failures. Other values come verbatim from a provider or the operating system. */
export const CODES = {
  /** A stored document has the wrong form. */
  badDocument: 'BAD_DOCUMENT',
  /** A name that cannot be a key of the store. */
  badKey: 'BAD_KEY',
  /** The URL of a store cannot be used; the message says what to write. */
  badUrl: 'BAD_URL',
  /** A job's source has no usable checkpoint left. */
  noCheckpoint: 'NO_CHECKPOINT',
  /** The root folder of a store is missing. */
  noRoot: 'NO_ROOT',
  /** A store has no mark of a deployment: an empty mount point, or an emptied bucket. */
  noMark: 'NO_MARK',
  /** A store has the mark of another deployment. */
  foreignStore: 'FOREIGN_STORE',
  /** A store lets two writers create one key: it must not be used. */
  noPutIfAbsent: 'NO_PUT_IF_ABSENT',
  /** A job's record has another step under the same number: a reset of its workflow has led to other steps. */
  otherHistory: 'OTHER_HISTORY',
  /**
   * Code of a `capacity` failure of a backend that counts its places exactly: another job took the place first. The order has priority for
   * the next place, so it is sent again.
   */
  placeTaken: 'PLACE_TAKEN',
  /** A signed input whose permission has ended or is used up: its workflow ends at once, without any effect. */
  notAllowed: 'NOT_ALLOWED',
} as const

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
