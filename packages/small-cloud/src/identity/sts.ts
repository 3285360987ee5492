/** STS: the caller's identity, and sessions of roles and of users. */
import { z } from 'zod'
import { drawMs, type World } from '../world/world'
import { ApiError } from '../wire/errors'
import { integer, text } from '../wire/query'
import { action, type Call, type Service } from '../wire/service'
import type { Identities, Principal, Role, Session } from './identities'
import { readPolicy, type Policy } from './policy'

const STS_NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'

/** Maximum length of a session policy. */
const POLICY_CHARS_MAX = 2048
const SESSION_SECONDS_MIN = 900
const SESSION_SECONDS = 3600
const SESSION_SECONDS_MAX = 43_200
const FEDERATION_SECONDS_MAX = 129_600
/** Maximum duration of a session when a role session assumes another role. */
const CHAINED_SECONDS_MAX = 3600

const assumeInput = z.strictObject({
  RoleArn: text.min(20),
  RoleSessionName: text.regex(/^[\w+=,.@-]{2,64}$/, 'must be 2 to 64 letters, digits or =,.@-_'),
  DurationSeconds: integer
    .pipe(z.int().min(SESSION_SECONDS_MIN).max(SESSION_SECONDS_MAX))
    .default(SESSION_SECONDS),
  Policy: text.optional(),
})

const federationInput = z.strictObject({
  Name: text.regex(/^[\w+=,.@-]{2,32}$/, 'must be 2 to 32 letters, digits or =,.@-_'),
  DurationSeconds: integer
    .pipe(z.int().min(SESSION_SECONDS_MIN).max(FEDERATION_SECONDS_MAX))
    .default(SESSION_SECONDS_MAX),
  Policy: text.optional(),
})

export function stsService(world: World, identities: Identities): Service {
  return {
    name: 'sts',
    style: 'query',
    namespace: STS_NAMESPACE,
    actions: {
      GetCallerIdentity: action({
        input: z.strictObject({}),
        run: (_, { principal }) => ({ Arn: principal.arn, UserId: principal.userId, Account: world.account }),
      }),
      AssumeRole: action({
        input: assumeInput,
        run({ RoleArn, RoleSessionName: name, DurationSeconds, Policy: document }, call) {
          const role = roleFor(identities, call, RoleArn)
          checkDuration(role, call, DurationSeconds)
          const session = identities.openSession(role, {
            name,
            durationMs: lasting(world, DurationSeconds),
            ...sessionPolicy(document),
          })
          const { userId: AssumedRoleId, arn: Arn } = session.principal
          return { ...given(session, document), AssumedRoleUser: { AssumedRoleId, Arn } }
        },
      }),
      GetFederationToken: action({
        input: federationInput,
        run({ Name: name, DurationSeconds, Policy: document }, { principal }) {
          checkFederates(world, identities, { principal, name })
          const session = identities.openFederated(principal, {
            name,
            durationMs: lasting(world, DurationSeconds),
            ...sessionPolicy(document),
          })
          const { userId: FederatedUserId, arn: Arn } = session.principal
          return { ...given(session, document), FederatedUser: { FederatedUserId, Arn } }
        },
      }),
    },
  }
}

/** The world may shorten sessions to seconds, so that a test outlives several. */
function lasting(world: World, seconds: number): number {
  return Math.min(seconds * 1000, drawMs(world, 'session'))
}

function given(session: Session, document: string | undefined): object {
  return {
    Credentials: {
      AccessKeyId: session.accessKeyId,
      SecretAccessKey: session.secretAccessKey,
      SessionToken: session.sessionToken,
      Expiration: new Date(session.expiresAtMs),
    },
    ...(document === undefined
      ? {}
      : { PackedPolicySize: Math.ceil((100 * document.length) / POLICY_CHARS_MAX) }),
  }
}

/** Checks the caller, because only long-term keys may federate. */
function checkFederates(
  world: World,
  identities: Identities,
  { principal, name }: { principal: Principal; name: string },
): void {
  if (principal.isSession)
    throw new ApiError('AccessDenied', 'Cannot call GetFederationToken with session credentials', 403)
  const resource = `arn:aws:sts::${world.account}:federated-user/${name}`
  if (identities.judge(principal, { action: 'sts:GetFederationToken', resource }) === 'allowed') return
  throw new ApiError(
    'AccessDenied',
    `User: ${principal.arn} is not authorized to perform: sts:GetFederationToken on resource: ${resource}`,
    403,
  )
}

/** A missing role, an untrusted caller and a missing permission give the same answer: access denied. */
function roleFor(identities: Identities, { principal }: Call, arn: string): Role {
  if (principal.arn.endsWith(':root'))
    throw new ApiError('AccessDenied', 'Roles may not be assumed by root accounts.', 403)
  const role = [...identities.roles.values()].find((each) => each.arn === arn)
  const isTrusted = role?.plan.trusts.some((who) => who === 'account' || who === principal.arn) ?? false
  const isAllowed = identities.judge(principal, { action: 'sts:AssumeRole', resource: arn }) === 'allowed'
  if (role === undefined || !isTrusted || !isAllowed)
    throw new ApiError(
      'AccessDenied',
      `User: ${principal.arn} is not authorized to perform: sts:AssumeRole on resource: ${arn}`,
      403,
    )
  return role
}

function checkDuration(role: Role, { principal }: Call, seconds: number): void {
  if (principal.isSession && seconds > CHAINED_SECONDS_MAX)
    throw new ApiError(
      'ValidationError',
      'The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining',
    )
  if (seconds * 1000 > role.plan.sessionMax)
    throw new ApiError(
      'ValidationError',
      'The requested DurationSeconds exceeds the MaxSessionDuration set for this role.',
    )
}

function sessionPolicy(document: string | undefined): { policy?: Policy } {
  if (document === undefined) return {}
  if (document.length > POLICY_CHARS_MAX)
    throw new ApiError(
      'ValidationError',
      `1 validation error detected: Value at 'policy' failed to satisfy constraint: Member must have length less than or equal to ${POLICY_CHARS_MAX}`,
    )
  const policy = readPolicy(parsed(document))
  if ('problem' in policy)
    throw new ApiError('MalformedPolicyDocument', `Syntax errors in policy: ${policy.problem}`)
  return { policy }
}

function parsed(document: string): unknown {
  try {
    return JSON.parse(document)
  } catch {
    return undefined
  }
}
