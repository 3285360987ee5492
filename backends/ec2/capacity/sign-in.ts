import type { Failure } from '../../../core/failure'
import { BackendError } from '../../errors'
import { ec2Error } from '../errors'

interface SignIn {
  profile?: string | undefined
  /** Temporary keys are in the environment. */
  hasSessionInEnvironment: boolean
}

/** Codes of keys that AWS does not know, or whose signature does not fit. */
const REFUSED = [
  'AuthFailure',
  'InvalidClientTokenId',
  'UnrecognizedClientException',
  'SignatureDoesNotMatch',
  'InvalidSignatureException',
  'IncompleteSignature',
  'MissingAuthenticationToken',
]
const EXPIRED = ['ExpiredToken', 'ExpiredTokenException', 'RequestExpired']

/** Explains missing, expired or refused credentials in one sentence with the command that helps; other errors pass unchanged. */
export function withSignInHelp(error: unknown, signIn: SignIn): BackendError {
  const known = ec2Error(error)
  const { code = '', message } = known.failure
  const help = helpFor(code, message, signIn)
  if (help === undefined) return known
  const failure: Failure = { ...known.failure, class: 'auth', message: help.message, hint: help.hint }
  return new BackendError(failure, { cause: error })
}

function helpFor(
  code: string,
  message: string,
  { profile, hasSessionInEnvironment }: SignIn,
): { message: string; hint: string } | undefined {
  const named = profile === undefined ? '' : ` --profile ${profile}`
  const [, ...afterSso] = message.split(/sso/i)
  if (/aws sso login|SSO (?:session|token)/i.test(message) || /expired|invalid/i.test(afterSso.join(' ')))
    return { message: 'The AWS single sign-on session has expired.', hint: `Run \`aws sso login${named}\`.` }
  if (code === 'CredentialsProviderError' || code === 'TokenProviderError')
    return profile === undefined
      ? { message: 'No AWS credentials were found.', hint: 'Run `aws configure`, or `aws sso login`.' }
      : {
          message: `The AWS profile ${profile} has no usable credentials.`,
          hint: `Run \`aws configure${named}\`; \`aws configure list-profiles\` shows the profiles that exist.`,
        }
  if (EXPIRED.includes(code))
    return {
      message: 'The AWS session has expired.',
      hint: hasSessionInEnvironment
        ? 'Renew the keys in the environment: `eval "$(aws configure export-credentials --format env)"`.'
        : `Run \`aws sso login${named}\`, or renew the keys of the profile with \`aws configure${named}\`.`,
    }
  if (REFUSED.includes(code))
    return {
      message: `AWS refuses the credentials (${code}).`,
      hint: `Run \`aws configure${named}\` with valid keys; \`aws sts get-caller-identity${named}\` tests them.`,
    }
  return undefined
}
