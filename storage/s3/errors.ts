import type { S3ServiceException } from '@aws-sdk/client-s3'
import { withoutEnd } from '../../core/trim'
import { trustRemedyOf } from '../../network/config'
import { signInRemedyOf } from '../../network/sign-in'
import { StoreError } from '../store'

/** Transient error codes, in addition to every status from 500 up and every network failure. */
const TRANSIENT = [
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'OperationAborted',
  'ConditionalRequestConflict',
  'BadDigest',
  'XAmzContentSHA256Mismatch',
]

/** The remedy for each code. People renew credentials while everything waits, so these errors may be transient too. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  ExpiredToken: 'the credentials have expired: renew them',
  ExpiredTokenException: 'the credentials have expired: renew them',
  TokenRefreshRequired: 'the credentials have expired: renew them',
  CredentialsProviderError:
    'there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role',
}

const REMEDIES: Readonly<Record<string, string>> = {
  AccessDenied: 'permission denied: allow s3:GetObject, PutObject, DeleteObject and ListBucket there',
  Forbidden: 'permission denied: allow s3:GetObject, PutObject, DeleteObject and ListBucket there',
  NoSuchBucket: 'the bucket does not exist: create it, or correct the URL of the store',
  InvalidAccessKeyId: 'the access key is unknown there: correct AWS_ACCESS_KEY_ID or the profile',
  SignatureDoesNotMatch: 'the secret key is wrong: correct AWS_SECRET_ACCESS_KEY or the profile',
  PermanentRedirect: 'the bucket is in another region: write it into the URL of the store as ?region=...',
  AuthorizationHeaderMalformed:
    'the bucket is in another region: write it into the URL of the store as ?region=...',
  RequestTimeTooSkewed: 'the clocks of this machine and of the store differ: enable NTP',
  InvalidBucketName: 'this is not a valid bucket name: correct the URL of the store',
  EntityTooLarge: 'it is larger than the store accepts',
}

/** Errors without an answer, which may be transient. */
const UNANSWERED: Readonly<Record<string, string>> = {
  ECONNREFUSED:
    'no server listens there: start it, or correct the endpoint (AWS_ENDPOINT_URL, or that in the URL of the store)',
  ENOTFOUND: 'the host does not exist: correct the endpoint or the region, or check the network',
}

/** Converts a failed request to a store error; `doing` completes "Could not ...". */
export function s3ErrorOf(error: unknown, doing: string): StoreError {
  if (error instanceof StoreError) return error
  const { message, code } = error as Error & { code?: string }
  const status = statusOf(error)
  const name = nameOf(error as Error, status)
  // An SDK that wraps an error keeps its message, but not its code.
  const unanswered = Object.keys(UNANSWERED).find((one) => message.includes(one))
  const answered = name === UNNAMED ? `the store answered with status ${status}` : message || name
  const why =
    remedyInWords(message, signInRemedyOf(error) ?? trustRemedyOf(code)) ??
    keyInWords(message) ??
    CREDENTIALS[name] ??
    REMEDIES[name] ??
    UNANSWERED[unanswered ?? ''] ??
    answered
  // A request without a status never got an answer.
  const isTransient =
    name in CREDENTIALS ||
    TRANSIENT.includes(name) ||
    (status === undefined ? !(name in REMEDIES) : status >= 500 || [408, 409, 429].includes(status))
  const told = code ?? unanswered ?? (name === 'Error' || name === UNNAMED ? undefined : name)
  return new StoreError(`Could not ${doing}: ${why}${told === undefined ? '' : ` (${told})`}.`, {
    isTransient,
    code: told,
    cause: error,
  })
}

/** `the session of the AWS profile ml (aws login) has ended: run ...`; undefined without a remedy. */
function remedyInWords(message: string, remedy: string | undefined): string | undefined {
  if (remedy === undefined) return undefined
  const [what, how] = [message, remedy].map((text) =>
    withoutEnd(text, '.').replace(/^(?:The|No|Run|Set)\b/, (word) => word.toLowerCase()),
  )
  return `${what}: ${how}`
}

/** Returns a clause about a message of S3 that names the action which a policy or the key refuses; `undefined` for others. */
function keyInWords(message: string): string | undefined {
  const [action] = /\bkms:\w+/.exec(message) ?? []
  if (action === undefined) return undefined
  return `permission denied: allow ${action} with the KMS key of the bucket, in its key policy and in the role (\`crucible setup aws --kms-key\`)`
}

/** The SDK's name of an error whose answer has no code. */
const UNNAMED = 'Unknown'

/** Answers to HEAD have no body, so that only the status names the error. */
function nameOf({ name }: Error, status: number | undefined): string {
  if (name !== UNNAMED) return name
  return status === 403 ? 'Forbidden' : status === 301 ? 'PermanentRedirect' : name
}

export function statusOf(error: unknown): number | undefined {
  return (error as Partial<S3ServiceException>).$metadata?.httpStatusCode
}

/** Whether the store reports a missing object; a missing bucket is a different error. */
export function isAbsent(error: unknown): boolean {
  const { name } = error as Error
  return (
    name === 'NoSuchKey' || (statusOf(error) === 404 && name !== 'NoSuchBucket' && name !== 'NoSuchUpload')
  )
}
