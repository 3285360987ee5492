import type { Failure, FailureClass } from '../../core/failure'
import { SECOND_MS } from '../../core/time/time'
import { classified, type BackendError } from '../errors'
import { HttpError } from '../http'

export { invalid } from '../errors'

/** Meaning of a code of the API: the possible next step. */
interface Meaning {
  class: FailureClass
  hint?: string
  /** A launch may have had its effect. */
  isUncertain?: true
}

const KEY_HINT =
  'Make a key at cloud.lambda.ai/api-keys and set LAMBDA_API_KEY, or write it to ~/.lambda_cloud.'
const ACCOUNT_HINT =
  'Complete the account at cloud.lambda.ai: email address, payment method, billing address.'
const NAMES_HINT =
  'Check CRUCIBLE_LAMBDA_SSH_KEY and CRUCIBLE_LAMBDA_CACHE; `crucible setup lambda` makes the SSH key.'

/**
 * Documented codes with their meanings (OpenAPI 1.10.0 and 1.5.3, read in November 2026). Codes that begin with `provider/` come from
 * services behind the API, and are in the prefix table.
 * @internal Tests compare its codes with the published ones.
 */
export const MEANINGS: Readonly<Record<string, Meaning>> = {
  'global/invalid-api-key': { class: 'auth', hint: KEY_HINT },
  'global/account-inactive': { class: 'auth', hint: ACCOUNT_HINT },
  'global/invalid-address': { class: 'auth', hint: ACCOUNT_HINT },
  'global/forbidden': { class: 'auth', hint: 'Use the key of an account that may do this.' },
  'global/quota-exceeded': {
    class: 'quota',
    hint: 'Ask Lambda for a higher quota, or allow another backend.',
  },
  'global/invalid-parameters': {
    class: 'invalid',
    hint: 'This is an error in the order or in Crucible: check the settings CRUCIBLE_LAMBDA_*.',
  },
  'global/object-does-not-exist': { class: 'invalid', hint: NAMES_HINT },
  'global/not-found': { class: 'invalid', hint: 'Check CRUCIBLE_LAMBDA_ENDPOINT.' },
  'global/duplicate': { class: 'invalid', hint: 'Choose another name.' },
  'global/conflict': { class: 'transient' },
  'global/internal-error': { class: 'transient', isUncertain: true },
  'global/unknown': { class: 'transient', isUncertain: true },
  'instance-operations/launch/insufficient-capacity': { class: 'capacity' },
  'instance-operations/launch/file-system-in-wrong-region': { class: 'invalid', hint: NAMES_HINT },
  'instance-operations/launch/file-systems-not-supported': {
    class: 'capacity',
    hint: 'Unset CRUCIBLE_LAMBDA_CACHE to use this type.',
  },
  'filesystems/filesystem-in-use': { class: 'transient' },
  'firewall-rulesets/firewall-ruleset-in-use': { class: 'invalid' },
  'ssh-keys/key-in-use': { class: 'transient', hint: 'End the machines that were launched with it first.' },
}

/** Meaning of codes from services behind the API: outages, and limits of Lambda itself. */
const OF_PROVIDERS: Meaning = { class: 'transient', isUncertain: true }
const THROTTLED: Meaning = { class: 'throttled' }
const UNWELL: Meaning = { class: 'transient', isUncertain: true }
/** Meaning of answers without a code of the API, which come from a proxy in front of it. They may pass, so they end no job. */
const BLOCKED: Meaning = {
  class: 'transient',
  hint: 'The firewall in front of Lambda refused the request. Try from another network, or ask Lambda.',
}
const ELSEWHERE: Meaning = { class: 'transient', hint: 'Check CRUCIBLE_LAMBDA_ENDPOINT.' }

/** Launches are allowed every twelve seconds, other requests every second; `Retry-After` is not documented. */
const RETRY_AFTER_MS = 2 * SECOND_MS

function meaningOf(code: string | undefined, status: number): Meaning | undefined {
  if (status === 429) return THROTTLED
  if (code?.startsWith('provider/') === true) return OF_PROVIDERS
  const known = code === undefined ? undefined : MEANINGS[code]
  if (known !== undefined) return known
  // 408: it may have arrived.
  if (status >= 500 || status === 408) return UNWELL
  if (code !== undefined) return undefined
  if (status === 401) return MEANINGS['global/invalid-api-key']
  return status < 400 || status === 404 ? ELSEWHERE : BLOCKED
}

interface ApiErrorBody {
  error?: { code?: unknown; message?: unknown; suggestion?: unknown; request_id?: unknown }
}

/** Returns the code in the API's own form; missing in answers of a proxy in front of it. */
export function codeOf({ facts }: HttpError): string | undefined {
  const code = (facts.body as ApiErrorBody | null | undefined)?.error?.code
  return typeof code === 'string' ? code : undefined
}

/** Whether a launch without a usable answer may have made a machine. */
export function mayHaveHappened(error: HttpError): boolean {
  const { reach, status = 0 } = error.facts
  if (reach !== 'answered') return reach === 'unanswered'
  return meaningOf(codeOf(error), status)?.isUncertain === true
}

const NO_ANSWER_HINT = 'Running jobs continue. If this lasts, check the network and CRUCIBLE_LAMBDA_ENDPOINT.'
const DOWN_HINT = 'Running jobs continue. Try again later; if this lasts, allow another backend.'

export function failureOf(error: HttpError): Failure {
  const { reach, status = 0, page, retryAfterMs, body } = error.facts
  if (reach !== 'answered') return { class: 'transient', message: `${error.message}.`, hint: NO_ANSWER_HINT }
  const code = codeOf(error)
  const meaning = meaningOf(code, status)
  const { message, suggestion, request_id: requestId } = (body as ApiErrorBody | null)?.error ?? {}
  const words = typeof message === 'string' ? message : (page ?? '')
  const request = typeof requestId === 'string' ? ` (request ${requestId})` : ''
  const ofApi = typeof suggestion === 'string' ? suggestion : undefined
  const isThrottled = meaning?.class === 'throttled'
  return {
    class: meaning?.class ?? 'unclassified',
    message: `Lambda answered ${status}${words === '' ? '' : `: ${words}`}${request}`,
    code: code ?? `HTTP ${status}`,
    hint: meaning?.hint ?? ofApi ?? (meaning?.isUncertain === true ? DOWN_HINT : undefined),
    retryAfterMs: retryAfterMs ?? (isThrottled ? RETRY_AFTER_MS : undefined),
  }
}

/** Classes whatever a verb met. */
export const lambdaError = (error: unknown): BackendError => classified(error, HttpError, failureOf)
