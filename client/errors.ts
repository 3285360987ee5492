import { tmpdir } from 'node:os'
import type * as temporal from '@temporalio/client'
import { GRPC } from '../core/grpc'
import { CODES, isCoded, messageOf } from '../core/errors'
import type { Failure, FailureClass } from '../core/failure'
import { fileErrorInWords, wordsOfFileError } from '../core/file-error'
import type { StoreError } from '../storage/store'

/** The kind of an error, by the caller's possible reaction; each kind has one exit code of the command line. @public */
export const EXIT_CODES = {
  /** The job failed, or something unexpected happened. */
  failed: 1,
  /** Invalid request: a bad flag, job file or name. */
  usage: 2,
  /** No machine is available. */
  capacity: 3,
  /** Credentials, permissions or keys. */
  permission: 4,
  /** No such job, checkpoint or file. */
  'not-found': 5,
  /** The request was accepted, but its outcome is still unknown. */
  unconfirmed: 6,
  /** The Temporal server, its workers or the object store do not answer. */
  unavailable: 7,
  /** A rehearsal shows that the job does not survive an interruption. */
  'not-survived': 8,
  /** Capacity exists, under conditions that `truffle validate` lists. */
  conditional: 9,
  /** Ended by Ctrl-C or SIGTERM. */
  interrupted: 130,
} as const
/** @public */
export type ErrorKind = keyof typeof EXIT_CODES

/** Thrown by everything in `client/`: the problem and its reason in the message, the remedy in the hint. @public */
export class CrucibleError extends Error {
  readonly hint: string | undefined
  /** Details for programs, such as the problems of a job file. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    readonly kind: ErrorKind,
    message: string,
    options: { hint?: string; details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'CrucibleError'
    this.hint = options.hint
    this.details = options.details ?? {}
  }

  get exitCode(): number {
    return EXIT_CODES[this.kind]
  }
}

/** The remedy for a server and a store of two deployments. */
export const SAME_DEPLOYMENT_HINT =
  'Use the server and the store of one deployment (TEMPORAL_ADDRESS, CRUCIBLE_HOME, CRUCIBLE_STORE), a namespace of your own (TEMPORAL_NAMESPACE), or your own server (`crucible dev`).'

/** Errors that the SDK's client exports. */
type TemporalErrorName = Extract<keyof typeof temporal, `${string}Error`>

/** Whether an error comes from Temporal's SDK, without loading the SDK, which takes longer than most commands. */
export function isTemporals(error: unknown, name: TemporalErrorName): boolean {
  return error instanceof Error && error.name === name
}

/** Returns the gRPC status code from anywhere in a chain of causes. */
export function grpcCodeOf(error: unknown): number | undefined {
  let at: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && at !== null && typeof at === 'object'; depth++) {
    const { code, cause } = at as { code?: unknown; cause?: unknown }
    if (typeof code === 'number') return code
    at = cause
  }
  return undefined
}

const CAUSES_MAX = 5

/** The kind of error for a failure class of a backend. */
const KIND_OF_CLASS: Partial<Record<FailureClass, ErrorKind>> = {
  capacity: 'capacity',
  quota: 'capacity',
  auth: 'permission',
  invalid: 'usage',
  transient: 'unavailable',
  throttled: 'unavailable',
}

/** A failure of an activity or of a backend as a `CrucibleError`. */
export function errorFromFailure(
  { class: failureClass, message, hint }: Failure,
  cause: unknown,
): CrucibleError {
  const kind = KIND_OF_CLASS[failureClass] ?? 'failed'
  return new CrucibleError(kind, sentence(message), { hint, cause })
}

/** A message as a sentence; a name at its beginning, such as `i-0abc`, stays. */
function sentence(message: string): string {
  const text = message.replace(/^[a-z]+(?= )/, (word) => word.charAt(0).toUpperCase() + word.slice(1))
  return /[.!?\n]$/.test(text) ? text : `${text}.`
}

const DENIED_CODES = ['EACCES', 'EPERM', 'EROFS']

/** Any error as a `CrucibleError`. */
export function toCrucibleError(error: unknown): CrucibleError {
  if (error instanceof CrucibleError) return error
  const message = messageOf(error)
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (syscall === 'uv_cwd')
    return new CrucibleError('usage', 'The current folder no longer exists.', {
      hint: 'Change to another folder, then try again.',
      cause: error,
    })
  if (isCoded(error, 'bundle') || isCoded(error, 'config'))
    return new CrucibleError('usage', message, { cause: error })
  const isDenied = typeof code === 'string' && DENIED_CODES.includes(code)
  if (isCoded(error, 'secrets') || (isCoded(error, 'store') && isDenied))
    return new CrucibleError('permission', message, { cause: error })
  if (isCoded(error, 'seal')) {
    return new CrucibleError('permission', `The answer of the Temporal server was refused: ${message}.`, {
      hint: 'Use the same CRUCIBLE_SECRET_KEY_FILE for all clients and workers of a deployment.',
      cause: error,
    })
  }
  if (isCoded(error, 'store')) return storeError(error)
  if (isCoded(error, 'backend')) return errorFromFailure(error.failure, error)
  const namespace = /Namespace not found: '([^']+)'|Namespace (\S+) is not found/.exec(message)
  if (namespace !== null) {
    return new CrucibleError(
      'usage',
      `The Temporal server has no namespace "${namespace[1] ?? namespace[2]}".`,
      {
        hint: 'Correct TEMPORAL_NAMESPACE or temporal.toml, or create the namespace.',
        cause: error,
      },
    )
  }
  if (syscall === 'mkdtemp' && String((error as { path?: unknown }).path).startsWith(tmpdir())) {
    const why = wordsOfFileError(error)
    return new CrucibleError(
      'usage',
      `The folder for temporary files, ${tmpdir()}, cannot be used: ${why}.`,
      { hint: 'Set TMPDIR to a folder in which you may write, such as /tmp.', cause: error },
    )
  }
  const aboutFile = fileErrorInWords(error)
  if (aboutFile !== undefined)
    return new CrucibleError(isDenied ? 'permission' : 'failed', `${aboutFile}.`, { cause: error })
  const grpcCode = grpcCodeOf(error)
  if (grpcCode === GRPC.permissionDenied || grpcCode === GRPC.unauthenticated) {
    return new CrucibleError('permission', `The Temporal server refused the request: ${message}`, {
      hint: 'Check TEMPORAL_API_KEY, TEMPORAL_TLS_* or temporal.toml.',
      cause: error,
    })
  }
  if (grpcCode === GRPC.unavailable || grpcCode === GRPC.deadlineExceeded || grpcCode === GRPC.cancelled) {
    return new CrucibleError('unavailable', `The Temporal server does not answer: ${message}`, {
      cause: error,
    })
  }
  return new CrucibleError('failed', message, { cause: error })
}

function storeError(error: StoreError): CrucibleError {
  // The error's message already contains the correction.
  if (error.code === CODES.badUrl) return new CrucibleError('usage', error.message, { cause: error })
  return new CrucibleError(error.isTransient ? 'unavailable' : 'failed', error.message, { cause: error })
}
