/** The errors of the API (its OpenAPI 1.10.0, read in November 2026). */
import { ApiError } from '../wire/errors'

const STATUSES: Readonly<Record<string, number>> = {
  'global/invalid-api-key': 401,
  'global/account-inactive': 403,
  'global/invalid-address': 403,
  'global/forbidden': 403,
  'global/object-does-not-exist': 404,
  'global/not-found': 404,
  'global/conflict': 409,
  'global/rate-limit-exceeded': 429,
  'global/internal-error': 500,
  'provider/internal-unavailable': 503,
}

/** Errors of which the API gives a suggestion. */
export const SUGGESTIONS: Readonly<Record<string, string>> = {
  'global/invalid-api-key': 'Check the key or make another.',
  'global/account-inactive': 'Verify the email address and the payment method.',
  'global/invalid-address': 'Correct the billing address.',
  'global/quota-exceeded': 'Ask for a higher quota.',
  'global/object-does-not-exist': 'Check the id or the name.',
  'global/internal-error': 'Try again later.',
  'provider/internal-unavailable': 'Try again shortly.',
}

export function lambdaError(code: string, message: string, status = STATUSES[code] ?? 400): ApiError {
  return new ApiError(code, message, status)
}

export const invalidParameters = (message: string): ApiError =>
  lambdaError('global/invalid-parameters', message)

export const noSuch = (what: string): ApiError =>
  lambdaError('global/object-does-not-exist', `Specified ${what} does not exist.`)
