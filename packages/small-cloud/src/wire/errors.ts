/** An error answer of a service. */
export class ApiError extends Error {
  /**
   * @param code the error code for clients
   * @param status the HTTP status, if it is documented and is not 400
   */
  constructor(
    readonly code: string,
    message: string,
    readonly status = 400,
  ) {
    super(message)
    this.name = 'ApiError'
  }
}

/** Problems with the identity of a request; each service has its own code for them. */
export type IdentityFault =
  | 'missing'
  | 'incomplete'
  | 'unknown-key'
  | 'wrong-token'
  | 'wrong-signature'
  | 'clock-skew'
  | 'expired-session'

/** The wire format of a service's answers. */
export type Style = 'ec2' | 'query' | 'json'

type Words = Record<IdentityFault, readonly [code: string, status: number, message: string]>

const NOT_VALIDATED = 'AWS was not able to validate the provided access credentials'
const MISMATCH =
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.'
const INVALID_TOKEN = 'The security token included in the request is invalid.'
const EXPIRED_TOKEN = 'The security token included in the request is expired'
const SKEWED =
  'Signature expired: the date of the request is more than 5 minutes away from the clock of the service.'

const WORDS: Record<Style, Words> = {
  ec2: {
    missing: ['MissingAuthenticationToken', 403, 'Request is missing Authentication Token'],
    incomplete: ['IncompleteSignature', 400, 'The request signature does not conform to AWS standards.'],
    'unknown-key': ['AuthFailure', 401, NOT_VALIDATED],
    'wrong-token': ['AuthFailure', 401, NOT_VALIDATED],
    'wrong-signature': ['AuthFailure', 401, NOT_VALIDATED],
    'clock-skew': ['RequestExpired', 400, 'Request has expired.'],
    'expired-session': ['RequestExpired', 400, 'Request has expired.'],
  },
  query: {
    missing: ['MissingAuthenticationToken', 403, 'Request is missing Authentication Token'],
    incomplete: ['IncompleteSignature', 400, 'The request signature does not conform to AWS standards.'],
    'unknown-key': ['InvalidClientTokenId', 403, INVALID_TOKEN],
    'wrong-token': ['InvalidClientTokenId', 403, INVALID_TOKEN],
    'wrong-signature': ['SignatureDoesNotMatch', 403, MISMATCH],
    'clock-skew': ['SignatureDoesNotMatch', 403, SKEWED],
    'expired-session': ['ExpiredToken', 403, EXPIRED_TOKEN],
  },
  json: {
    missing: ['MissingAuthenticationTokenException', 400, 'Missing Authentication Token'],
    incomplete: [
      'IncompleteSignatureException',
      400,
      'The request signature does not conform to AWS standards.',
    ],
    'unknown-key': ['UnrecognizedClientException', 400, INVALID_TOKEN],
    'wrong-token': ['UnrecognizedClientException', 400, INVALID_TOKEN],
    'wrong-signature': ['InvalidSignatureException', 400, MISMATCH],
    'clock-skew': ['InvalidSignatureException', 400, SKEWED],
    'expired-session': ['ExpiredTokenException', 400, EXPIRED_TOKEN],
  },
}

export function identityError(fault: IdentityFault, style: Style): ApiError {
  const [code, status, message] = WORDS[style][fault]
  return new ApiError(code, message, status)
}

/** Thrown by signature checks; the caller that knows the service converts it to the service's error. */
export class IdentityProblem extends Error {
  constructor(readonly fault: IdentityFault) {
    super(`the identity of the request is not accepted: ${fault}`)
    this.name = 'IdentityProblem'
  }
}
