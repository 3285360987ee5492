/** The sign-in of this process at AWS: which session signs, when it ends, and the one command that renews it. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type * as SdkConfig from '@smithy/core/config'
import { formatInstant, HOUR_MS } from '../core/time/time'
import { ownEnvironment, type Environment } from './config'

/** A session or keys with which requests are signed. */
interface SignIn {
  kind:
    /** Keys in variables. */
    | 'environment'
    /** Keys in a file, with a session token or without. */
    | 'keys'
    | 'identity-center'
    | 'aws-login'
    | 'process'
    /** A role that needs no person: of a machine, a container or a token file. */
    | 'machine'
    /** No profile of that name, or a profile without keys. */
    | 'none'
  /** The profile of the session, at the end of a chain of roles; missing if no profile is involved. */
  profile?: string
  /** The profile that was asked for, if its role is taken with the session of `profile`. */
  askedProfile?: string
  /** End of the session, or of its newest keys if it renews them on its own; missing if unknown. */
  endsAtMs?: number
  /** Whether the SDK replaces its keys without a person, until the session ends. */
  renewsKeys?: boolean
}

/** The longest session of `aws login` ("Sign in for AWS local development", AWS CLI user guide). */
const LOGIN_MS_MAX = 12 * HOUR_MS

/** Names of the SDK for credentials that no source gave. */
const UNAVAILABLE = ['CredentialsProviderError', 'TokenProviderError']
/** Codes of AWS for a session that has ended. EC2 uses the last one for a wrong clock too. */
const ENDED = ['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired', 'RequestExpired']
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
/** EC2 refuses other things with the code `AuthFailure`, and a wrong clock with the codes of signatures. */
const OTHER_REFUSALS =
  /not authorized|service.linked role|^Signature (?:expired|not yet current)|validate the request/i
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|TimeoutError)\b/
/** Wordings of the SDK for a session of IAM Identity Center, or of `aws login`, that has ended or never began. */
const SESSION_LOST =
  /expired|To refresh this SSO session|UnauthorizedException|re-?authenticate|load token from/i

/** A failed request of the SDK whose cause is the sign-in: `message` says what has ended, `remedy` how to renew it. */
interface SignInFailure extends Error {
  remedy: string
  $metadata?: { httpStatusCode?: number }
}

/** Returns the remedy of an error that `explainingSignIn` has explained; `undefined` for other errors. */
export function signInRemedyOf(error: unknown): string | undefined {
  return EXPLAINED.has(error as object) ? (error as SignInFailure).remedy : undefined
}

export function isEndedSession(code: string | undefined): boolean {
  return code !== undefined && ENDED.includes(code)
}

const EXPLAINED = new WeakSet<object>()

interface SdkClient {
  middlewareStack: {
    add: (
      step: (next: (args: never) => Promise<never>) => (args: never) => Promise<never>,
      options: { step: 'initialize'; priority: 'high'; name: string },
    ) => void
  }
}

/**
 * Lets the errors of a client say which session has ended and which command renews it. For clients that sign with the credentials of this
 * process, not for those with keys of their own. Errors with another cause pass unchanged.
 */
export function explainingSignIn<C extends object>(client: C, profile?: string): C {
  const { middlewareStack } = client as C & SdkClient
  middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args)
      } catch (error) {
        throw await explained(error, profile, Date.now())
      }
    },
    { step: 'initialize', priority: 'high', name: 'explainingSignIn' },
  )
  return client
}

/** A session that ended keeps or gets the code `ExpiredToken`, because a person renews it while work waits. */
async function explained(error: unknown, asked: string | undefined, nowMs: number): Promise<unknown> {
  if (!(error instanceof Error)) return error
  const { $metadata } = error as Error & { $metadata?: { clockSkewCorrected?: boolean } }
  const isUnavailable = UNAVAILABLE.includes(error.name)
  const isEnded = ENDED.includes(error.name) && $metadata?.clockSkewCorrected !== true
  const isRefused = REFUSED.includes(error.name) && !OTHER_REFUSALS.test(error.message)
  if (!isUnavailable && !isEnded && !isRefused) return error
  if (isUnavailable && UNREACHABLE.test(error.message)) return error
  // A file that cannot be read leaves the SDK's own words.
  const signIn = await readSignIn(asked).catch(() => undefined)
  if (signIn === undefined) return error
  const found = isRefused
    ? refusalOf(signIn, error.name)
    : isEnded
      ? endingOf(signIn, nowMs)
      : absenceOf(signIn, error.message, nowMs)
  if (found === undefined) return error
  const { message, remedy, hasEnded = false } = found
  const failure = Object.assign(new Error(message, { cause: error }), { remedy, $metadata })
  failure.name = isUnavailable && hasEnded ? 'ExpiredToken' : error.name
  EXPLAINED.add(failure)
  return failure
}

interface Explanation {
  message: string
  remedy: string
  hasEnded?: boolean
}

/** Why no source gave credentials; `undefined` if the SDK's words are better. */
function absenceOf(signIn: SignIn, message: string, nowMs: number): Explanation | undefined {
  const { kind, profile } = signIn
  if (/multi-factor/.test(message))
    return {
      message: `The AWS profile ${signIn.askedProfile ?? profile} needs a code of its MFA device.`,
      remedy: `Run \`eval "$(aws configure export-credentials${option(signIn.askedProfile ?? profile)} --format env)"\`, which asks for it.`,
    }
  if (/CreateOAuth2Token/.test(message))
    return {
      message: `AWS does not let the session of the profile ${profile ?? 'default'} renew its keys.`,
      remedy: `Have the policy SignInLocalDevelopmentAccess attached to this identity, then run \`aws login${option(profile)}\`.`,
    }
  if (kind === 'none')
    return profile === undefined
      ? {
          message: 'No AWS credentials were found.',
          remedy: 'Run `aws login`; for IAM Identity Center `aws configure sso`, for keys `aws configure`.',
        }
      : {
          message: `The AWS profile ${profile} has no usable credentials.`,
          remedy: `Run \`aws configure${option(profile)}\`; \`aws configure list-profiles\` shows the profiles that exist.`,
        }
  // The SDK tries other sources after a failed command or renewal, and then reports only that none has credentials.
  const isLost = SESSION_LOST.test(message) || /from any providers|metadata service/i.test(message)
  if (kind === 'process' || (isLost && (kind === 'identity-center' || kind === 'aws-login')))
    return endingOf(signIn, nowMs)
  return undefined
}

const SESSIONS: Readonly<Partial<Record<SignIn['kind'], string>>> = {
  'identity-center': ' (IAM Identity Center)',
  'aws-login': ' (aws login)',
}

function endingOf(signIn: SignIn, nowMs: number): Explanation {
  const { kind, profile = 'default', endsAtMs } = signIn
  const remedy = renewalOf(signIn)
  if (kind === 'machine' || kind === 'none')
    return { message: 'The AWS session of this machine or container has ended.', remedy, hasEnded: true }
  // Keys that would still be valid say nothing about a session that was ended early.
  const when = endsAtMs === undefined || endsAtMs > nowMs ? '' : ` at ${formatInstant(endsAtMs)}`
  const role = signIn.askedProfile === undefined ? '' : `, with which ${signIn.askedProfile} takes its role,`
  const whose =
    kind === 'environment'
      ? 'The AWS session in AWS_SESSION_TOKEN'
      : `The session of the AWS profile ${profile}${SESSIONS[kind] ?? ''}${role}`
  if (kind === 'process')
    return {
      message: `The credential_process of the AWS profile ${profile}${role} gives no valid keys.`,
      remedy,
      hasEnded: true,
    }
  const isMissing = endsAtMs === undefined && SESSIONS[kind] !== undefined
  return {
    message: isMissing ? `${whose} does not exist.` : `${whose} has ended${when}.`,
    remedy,
    hasEnded: true,
  }
}

/** The one command that renews a session. Keys that a process has read from variables or a file stay until it ends. */
function renewalOf({ kind, profile }: SignIn): string {
  switch (kind) {
    case 'identity-center':
      return `Run \`aws sso login${option(profile)}\`.`
    case 'aws-login':
      return `Run \`aws login${option(profile)}\`.`
    case 'process':
      return `Sign in with the program that it runs; \`aws sts get-caller-identity${option(profile)}\` shows its error.`
    case 'environment':
      return 'Run `eval "$(aws configure export-credentials --profile NAME --format env)"`, and restart workers that have the old keys.'
    case 'keys':
      return `Run \`aws configure${option(profile)}\`, and restart workers that have the old keys.`
    case 'machine':
    case 'none':
      return 'Check the role of the machine or container.'
  }
}

function refusalOf(signIn: SignIn, code: string): Explanation {
  const { kind, profile } = signIn
  const where = kind === 'environment' ? ' in AWS_ACCESS_KEY_ID' : profile && ` of the profile ${profile}`
  const option_ = option(profile)
  const remedy =
    kind === 'environment'
      ? 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to valid keys, or AWS_PROFILE; `aws sts get-caller-identity` tests them.'
      : kind === 'keys' || kind === 'none'
        ? `Run \`aws configure${option_}\` with valid keys; \`aws sts get-caller-identity${option_}\` tests them.`
        : renewalOf(signIn)
  return { message: `AWS refuses the credentials${where ?? ''} (${code}).`, remedy }
}

function option(profile: string | undefined): string {
  return profile === undefined || profile === 'default' ? '' : ` --profile ${profile}`
}

/**
 * Returns when the sign-in of this process ends at the latest, so that a person must renew it; `undefined` if none is needed, or if it is
 * unknown.
 */
export async function readSignInEnd(nowMs: number, asked?: string): Promise<number | undefined> {
  const signIn = await readSignIn(asked).catch(() => undefined)
  if (signIn === undefined) return undefined
  if (signIn.kind === 'aws-login') return nowMs + LOGIN_MS_MAX
  return signIn.renewsKeys === true ? undefined : signIn.endsAtMs
}

/** Finds the session in the order of the SDK (`resolveProfileData` of its package `credential-provider-ini`). Throws for unreadable files. */
async function readSignIn(asked: string | undefined): Promise<SignIn> {
  const environment = ownEnvironment()
  const named = asked ?? environment['AWS_PROFILE']
  if (!named && environment['AWS_ACCESS_KEY_ID'] && environment['AWS_SECRET_ACCESS_KEY'])
    return inEnvironment(environment)
  // Commands that never fail to sign do not wait for this package.
  const sdk = require('@smithy/core/config') as typeof SdkConfig
  const profiles = await sdk.parseKnownFiles(named ? { profile: named } : {})
  const first = named || 'default'
  const passed = new Set<string>()
  for (let profile = first; ;) {
    const data = profiles[profile] ?? {}
    const hasKeys = data['aws_access_key_id'] !== undefined && data['aws_secret_access_key'] !== undefined
    const at = { profile, ...(profile !== first && { askedProfile: first }) }
    const source = data['source_profile']
    if (passed.size > 0 && hasKeys) return { kind: 'keys', ...at }
    if (data['credential_source'] !== undefined)
      return data['credential_source'] === 'Environment' ? inEnvironment(environment) : { kind: 'machine' }
    if (data['role_arn'] !== undefined && source !== undefined && !passed.has(source)) {
      passed.add(source)
      profile = source
    } else if (hasKeys) return { kind: 'keys', ...at }
    else if (data['web_identity_token_file'] !== undefined) return { kind: 'machine' }
    else if (data['credential_process'] !== undefined) return { kind: 'process', ...at }
    else if (data['sso_session'] !== undefined || data['sso_start_url'] !== undefined) {
      const token = (await sdk
        .getSSOTokenFromFile(data['sso_session'] ?? data['sso_start_url'] ?? '')
        .catch(() => undefined)) as { expiresAt?: string; refreshToken?: string } | undefined
      return {
        kind: 'identity-center',
        ...at,
        ...endOf(token?.expiresAt),
        renewsKeys: token?.refreshToken !== undefined,
      }
    } else if (data['login_session'] !== undefined) {
      const end = await endOfLogin(data['login_session'], environment)
      return { kind: 'aws-login', ...at, ...end, renewsKeys: true }
    } else return named || profile !== first ? { kind: 'none', ...at } : { kind: 'none' }
  }
}

function inEnvironment(environment: Environment): SignIn {
  return { kind: 'environment', ...endOf(environment['AWS_CREDENTIAL_EXPIRATION']) }
}

/** The end of the newest keys of `aws login`, from the file in which the AWS CLI and the SDK keep them. */
async function endOfLogin(session: string, environment: Environment): Promise<Pick<SignIn, 'endsAtMs'>> {
  const folder = environment['AWS_LOGIN_CACHE_DIRECTORY'] ?? join(homedir(), '.aws', 'login', 'cache')
  const file = join(folder, `${createHash('sha256').update(session).digest('hex')}.json`)
  try {
    const { accessToken } = JSON.parse(await readFile(file, 'utf8')) as {
      accessToken?: { expiresAt?: string }
    }
    return endOf(accessToken?.expiresAt)
  } catch {
    return {}
  }
}

function endOf(instant: string | undefined): Pick<SignIn, 'endsAtMs'> {
  const endsAtMs = Date.parse(instant ?? '')
  return Number.isNaN(endsAtMs) ? {} : { endsAtMs }
}
