import type { Failure, FailureClass } from '../../core/failure'
import { SECOND_MS } from '../../core/time/time'
import { classified, type BackendError } from '../errors'
import { HttpError } from '../http'

export { invalid } from '../errors'

/** Error in the gateway's own form. */
interface Problem {
  code: string
  message: string
  /** The exception of Modal's client. */
  type?: string
}

type Meaning = Pick<Failure, 'class' | 'hint'>

const SET_UP = 'Run `crucible setup modal`.'
const WAIT =
  'Try again in a minute: a gateway without recent calls starts first. If it still fails, read status.modal.com.'
const CAPACITY: Meaning = { class: 'capacity' }
const QUOTA: Meaning = {
  class: 'quota',
  hint: 'Raise the limit of the workspace at modal.com/settings/usage, or wait for other machines to end.',
}
const LATER: Meaning = { class: 'transient' }
const IMAGE: Meaning = {
  class: 'invalid',
  hint: 'Check the name of the image and its requirements. Modal pulls the image itself: for a private one, name a Modal Secret in CRUCIBLE_MODAL_IMAGE_SECRETS (`image_login` is not used).',
}
const ACCOUNT: Meaning = { class: 'auth', hint: `Check the workspace at modal.com. ${SET_UP}` }

const OUTDATED: Meaning = {
  class: 'invalid',
  hint: 'Run `pip install -U "modal>=1.6,<1.7"`, then `crucible setup modal`.',
}

/** Meanings of exceptions of Modal's client 1.6 (`modal/exception.py`, read in November 2026). */
const EXCEPTIONS: Readonly<Record<string, Meaning>> = {
  AuthError: ACCOUNT,
  PermissionDeniedError: ACCOUNT,
  InvalidError: { class: 'invalid', hint: 'Modal refuses the requested resources. Change its resources.' },
  NotFoundError: { class: 'invalid', hint: 'Create it in the workspace at modal.com.' },
  ImageBuildError: IMAGE,
  RemoteError: IMAGE,
  // The container ended before its command began.
  ConflictError: { class: 'transient', hint: 'Read `crucible logs` of the attempt.' },
  ResourceExhaustedError: CAPACITY,
  ServiceError: LATER,
  InternalError: LATER,
  InternalFailure: LATER,
  DataLossError: LATER,
  ClientClosed: LATER,
  ConnectionError: LATER,
  TimeoutError: LATER,
  FunctionTimeoutError: LATER,
  SandboxTimeoutError: LATER,
  SandboxTerminatedError: LATER,
  VersionError: OUTDATED,
  UnimplementedError: OUTDATED,
}

/** Words of Modal's refusals that mean a limit of the workspace rather than missing GPUs. */
const LIMIT_WORDS = /limit|quota|budget|spend/i
/** `workspace billing cycle spend limit reached`, with whichever exception (modal-client, issue 3397). */
const SPEND_WORDS = /spend limit|billing/i

/** Returns the failure of a launch from an exception of Modal's client. */
export function launchFailure({ type, message }: { type: string; message: string }): Failure {
  const isLimit =
    SPEND_WORDS.test(message) ||
    (type === 'ResourceExhaustedError' && LIMIT_WORDS.test(message) && !/rate limit/i.test(message))
  const meaning = isLimit ? QUOTA : EXCEPTIONS[type]
  return {
    class: meaning?.class ?? 'unclassified',
    message: `Modal: ${message}`,
    code: type,
    hint: meaning?.hint,
  }
}

/** Meanings of the gateway's codes (`gateway/crucible_gateway/documents.py`). */
const PROBLEMS: Readonly<Record<string, Meaning>> = {
  invalid: { class: 'invalid', hint: 'Change the job, or report this as an error in Crucible.' },
  'not-allowed': {
    class: 'invalid',
    hint: 'Allow it in CRUCIBLE_GATEWAY_REGISTRIES or CRUCIBLE_GATEWAY_SECRETS, then run `crucible setup modal`.',
  },
  'key-reused': { class: 'invalid', hint: 'Report this: it is an error in Crucible.' },
  'too-late': {
    class: 'transient',
    hint: 'The clocks of this worker and of Modal may differ: run `crucible doctor`.',
  },
  'rate-limited': { class: 'throttled' },
}

/** Code of a failure: the proxy token is wrong, has expired, or is of another workspace. */
export const TOKEN_REFUSED = 'HTTP 401'

const THROTTLED_MS = 5 * SECOND_MS

/** Interprets an answer without a body of the gateway by its status: it comes from Modal's proxy in front of it. */
function ofProxy(status: number, page: string): { class: FailureClass; words: string; hint?: string } {
  if (status === 401)
    return { class: 'auth', words: 'Modal refused the proxy token of the gateway', hint: SET_UP }
  if (status === 404)
    return {
      class: 'auth',
      words: 'the gateway is not deployed in the workspace',
      hint: `${SET_UP} Running jobs continue meanwhile.`,
    }
  if (status >= 300 && status < 400)
    return {
      class: 'transient',
      words: `the gateway took too long and Modal answered ${status}`,
      hint: 'Report this: it is an error in the gateway.',
    }
  if (status === 429) return { class: 'throttled', words: 'Modal asks to slow down' }
  if (status >= 500)
    return {
      class: 'transient',
      hint: WAIT,
      words: `the gateway does not work: Modal answered ${status} ${page}`.trim(),
    }
  return { class: 'unclassified', words: `the gateway answered ${status} ${page}`.trim() }
}

export function problemOf({ facts: { body } }: HttpError): Problem | undefined {
  const { code, message, type } = (body ?? {}) as Partial<Record<keyof Problem, unknown>>
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message, type: typeof type === 'string' ? type : undefined }
}

/** Whether a launch without a usable answer may still have an effect. */
export function mayHaveHappened(error: HttpError): boolean {
  const { reach, status = 0 } = error.facts
  if (reach !== 'answered') return reach === 'unanswered'
  if (problemOf(error)?.code === 'modal') return true
  return status >= 500 || (status >= 300 && status < 400)
}

export function failureOf(error: HttpError): Failure {
  const { reach, status = 0, page = '', retryAfterMs } = error.facts
  if (reach === 'unsent')
    return {
      class: 'transient',
      message: `${error.message}.`,
      hint: 'Check the network and CRUCIBLE_MODAL_URL.',
    }
  if (reach === 'unanswered')
    return {
      class: 'transient',
      message: `${error.message}.`,
      // An answer in another form does not come from a gateway that starts.
      hint: error.facts.status === undefined ? WAIT : `Check CRUCIBLE_MODAL_URL. ${SET_UP}`,
    }
  const problem = problemOf(error)
  if (problem === undefined) {
    const { class: class_, words, hint } = ofProxy(status, page)
    const waitMs = retryAfterMs ?? (class_ === 'throttled' ? THROTTLED_MS : undefined)
    return {
      class: class_,
      message: `${words}.`,
      code: `HTTP ${status}`,
      hint,
      retryAfterMs: waitMs,
    }
  }
  if (problem.type !== undefined && problem.code === 'modal')
    return launchFailure({ type: problem.type, message: problem.message })
  const meaning = PROBLEMS[problem.code]
  return {
    class: meaning?.class ?? 'unclassified',
    message: problem.message,
    code: problem.code,
    hint: meaning?.hint,
    retryAfterMs: retryAfterMs ?? (meaning?.class === 'throttled' ? THROTTLED_MS : undefined),
  }
}

/** Classes whatever a verb met. */
export const modalError = (error: unknown): BackendError => classified(error, HttpError, failureOf)
