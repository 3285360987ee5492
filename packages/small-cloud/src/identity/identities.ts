/** The identities that may call the cloud: users, roles, and issued sessions. */
import type { Clock } from '../clock'
import type { Ids } from '../ids'
import { isSameSecret, type CloudKeys } from '../keys'
import { IdentityProblem } from '../wire/errors'
import { WorldError } from '../world/load'
import type { RolePlan, UserPlan } from '../world/schema'
import type { World } from '../world/world'
import { MANAGED_NAMES, managedPolicy } from './managed-policies'
import { judge, readPolicy, type Policy, type Verdict, type AuthorizationRequest } from './policy'

interface Credentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiresAtMs?: number
}

/** The authenticated caller of a request. */
export interface Principal {
  arn: string
  /** `AIDA...`, or `AROA...:session`. */
  userId: string
  accessKeyId: string
  /** The role of a session. */
  role?: Role
  isSession: boolean
  /** Policies of the identity and of the session, which must all allow a request. */
  policies: readonly (readonly Policy[])[]
}

export interface Role {
  name: string
  /** Path of the role: `/`, or the one that a service uses: `/aws-service-role/spot.amazonaws.com/`. */
  path: string
  id: string
  arn: string
  description: string
  plan: RolePlan
  /** The permissions in `plan`; every holder of the role sees each change. */
  policies: Policy[]
  /** The permissions boundary of the role; missing if nothing limits its policies. */
  boundary?: Policy
  tags: Map<string, string>
  createdAt: Date
}

/** Policies that must all allow what a holder of the role does. */
export function policiesOfRole({ policies, boundary }: Role): (readonly Policy[])[] {
  return boundary === undefined ? [policies] : [policies, [boundary]]
}

export interface Profile {
  name: string
  id: string
  arn: string
  role?: Role
  /** EC2 does not know it before this instant. */
  visibleAtMs: number
  tags: Map<string, string>
  createdAt: Date
}

export type Session = Credentials & { expiresAtMs: number; principal: Principal }

/** The maximum permissions of a federated user: it cannot create identities. */
const NO_IDENTITIES: Policy = {
  Statement: [{ Effect: 'Allow', NotAction: ['iam:*', 'sts:*'], Resource: ['*'], Condition: {} }],
}

interface Holder {
  credentials: Credentials
  principal: Principal
}

/** The user whose keys are the credentials of the cloud. */
const FIRST_USER = 'test'
/** The user that is the owner of the account. */
const ROOT_USER = 'root'
const HOUR_MS = 3_600_000

/** The roles of a world without a `roles` field: one for machines, and one for jobs. */
const USUAL_ROLES: Record<string, RolePlan> = {
  'crucible-machine': {
    managed: ['AmazonSSMManagedInstanceCore'],
    policies: {},
    trusts: ['ec2.amazonaws.com'],
    sessionMax: HOUR_MS,
    hasProfile: true,
  },
  'crucible-grant': {
    managed: ['AmazonS3FullAccess'],
    policies: {},
    trusts: ['account'],
    sessionMax: 12 * HOUR_MS,
    hasProfile: false,
  },
}

export interface IdentityParts {
  world: World
  clock: Clock
  ids: Ids
  keys: Pick<CloudKeys, 'user'>
}

export class Identities {
  readonly roles = new Map<string, Role>()
  readonly profiles = new Map<string, Profile>()
  /** The keys of the user `test`. */
  readonly credentials: CloudKeys['user']
  private readonly holders = new Map<string, Holder>()
  private readonly world: World
  private readonly clock: Clock
  private readonly ids: Ids

  constructor({ world, clock, ids, keys }: IdentityParts) {
    this.world = world
    this.clock = clock
    this.ids = ids
    const first = { ...keys.user, managed: ['AdministratorAccess'], policies: {} }
    const users: Record<string, UserPlan> = { [FIRST_USER]: first, ...world.users }
    const { accessKeyId, secretAccessKey } = users[FIRST_USER]!
    this.credentials = { accessKeyId, secretAccessKey }
    for (const [name, user] of Object.entries(users)) this.addUser(name, user)
    for (const [name, plan] of Object.entries(world.roles ?? USUAL_ROLES)) {
      const role = this.addRole(name, plan, {
        ...BEFORE,
        ...(plan.path !== undefined && { path: plan.path }),
      })
      if (plan.hasProfile) this.addProfile(name, { ...BEFORE, visibleAtMs: 0 }).role = role
    }
    for (const service of world.linkedRoles) this.addLinkedRole(service, BEFORE)
  }

  /** Returns the secret of a currently valid key. Throws `IdentityProblem` for an unknown key, a wrong token or an expired one. */
  secretOf(
    accessKeyId: string,
    sessionToken: string | undefined,
  ): { secretAccessKey: string; principal: Principal } {
    const holder = this.holders.get(accessKeyId)
    if (holder === undefined) throw new IdentityProblem('unknown-key')
    const { credentials, principal } = holder
    if (!isSameSecret(credentials.sessionToken ?? '', sessionToken ?? ''))
      throw new IdentityProblem('wrong-token')
    if (credentials.expiresAtMs !== undefined && credentials.expiresAtMs <= this.clock.nowMs())
      throw new IdentityProblem('expired-session')
    return { secretAccessKey: credentials.secretAccessKey, principal }
  }

  /** Creates temporary credentials for a session of a role, restricted by the policy, if any. */
  openSession(
    role: Role,
    { name, durationMs, policy }: { name: string; durationMs: number; policy?: Policy },
  ): Session {
    return this.giveOut(durationMs, {
      arn: `arn:aws:sts::${this.world.account}:assumed-role/${role.name}/${name}`,
      userId: `${role.id}:${name}`,
      role,
      policies: [...policiesOfRole(role), ...(policy === undefined ? [] : [[policy]])],
    })
  }

  /** Creates temporary credentials in the name of a user, restricted by a policy; without a policy they allow nothing. */
  openFederated(
    user: Principal,
    { name, durationMs, policy }: { name: string; durationMs: number; policy?: Policy },
  ): Session {
    return this.giveOut(durationMs, {
      arn: `arn:aws:sts::${this.world.account}:federated-user/${name}`,
      userId: `${this.world.account}:${name}`,
      policies: [...user.policies, policy === undefined ? [] : [policy], [NO_IDENTITIES]],
    })
  }

  private giveOut(durationMs: number, who: Omit<Principal, 'accessKeyId' | 'isSession'>): Session {
    const credentials = {
      accessKeyId: this.ids.sessionKey(),
      secretAccessKey: this.ids.secret(),
      sessionToken: this.ids.sessionToken(),
      expiresAtMs: this.clock.nowMs() + durationMs,
    }
    const principal: Principal = { ...who, accessKeyId: credentials.accessKeyId, isSession: true }
    this.holders.set(credentials.accessKeyId, { credentials, principal })
    return { ...credentials, principal }
  }

  /** Decides whether the principal may perform an action. */
  judge(principal: Principal, wish: AuthorizationRequest): Verdict {
    const verdicts = principal.policies.map((policies) => judge(policies, wish))
    return verdicts.find((verdict) => verdict !== 'allowed') ?? 'allowed'
  }

  /** Returns the policies of the user, role or session with this ARN. */
  findByArn(arn: string): readonly (readonly Policy[])[] | undefined {
    const session = /:assumed-role\/([^/]+)\//.exec(arn)?.[1]
    const role = [...this.roles.values()].find((each) => each.arn === arn || each.name === session)
    if (role !== undefined) return policiesOfRole(role)
    return [...this.holders.values()].find(({ principal }) => principal.arn === arn)?.principal.policies
  }

  private addUser(name: string, user: UserPlan): void {
    const where = `users.${name}`
    const { account } = this.world
    const boundary = boundaryOf(user, where)
    const principal: Principal = {
      arn: `arn:aws:iam::${account}:${name === ROOT_USER ? 'root' : `user/${name}`}`,
      userId: name === ROOT_USER ? account : this.ids.iam('AIDA'),
      accessKeyId: user.accessKeyId,
      isSession: false,
      policies: [policiesOf(user, where), ...(boundary === undefined ? [] : [[boundary]])],
    }
    const { accessKeyId, secretAccessKey } = user
    this.holders.set(accessKeyId, { credentials: { accessKeyId, secretAccessKey }, principal })
  }

  /** Throws `WorldError` for an invalid policy. */
  addRole(name: string, plan: RolePlan, facts: RoleFacts): Role {
    const { createdAt, path = '/', description = '', tags = [] } = facts
    const role: Role = {
      name,
      path,
      description,
      plan,
      createdAt,
      tags: new Map(tags),
      policies: [],
      id: this.ids.iam('AROA'),
      arn: `arn:aws:iam::${this.world.account}:role${path}${name}`,
    }
    const boundary = boundaryOf(plan, `roles.${name}`)
    if (boundary !== undefined) role.boundary = boundary
    this.roles.set(name, role)
    this.planned(role)
    return role
  }

  /** Applies a role's plan. */
  planned(role: Role): void {
    role.policies.splice(0, role.policies.length, ...policiesOf(role.plan, `roles.${role.name}`))
  }

  addLinkedRole(service: string, facts: RoleFacts): Role {
    const plan = { managed: [], policies: {}, trusts: [service], sessionMax: HOUR_MS, hasProfile: false }
    return this.addRole(linkedRoleName(service), plan, { ...facts, path: `/aws-service-role/${service}/` })
  }

  addProfile(name: string, facts: Pick<Profile, 'createdAt' | 'visibleAtMs'>): Profile {
    const arn = `arn:aws:iam::${this.world.account}:instance-profile/${name}`
    const profile: Profile = { name, id: this.ids.iam('AIPA'), arn, tags: new Map(), ...facts }
    this.profiles.set(name, profile)
    return profile
  }
}

export interface RoleFacts {
  createdAt: Date
  path?: string
  description?: string
  tags?: Iterable<readonly [string, string]>
}

/** All identities in a world file were created with the account. */
const BEFORE = { createdAt: new Date(Date.UTC(2026, 0, 1)) }

/** The services with service-linked roles that matter here. */
const LINKED: Readonly<Record<string, string>> = { 'spot.amazonaws.com': 'AWSServiceRoleForEC2Spot' }

export function linkedRoleName(service: string): string {
  return LINKED[service] ?? service
}

function policiesOf({ managed, policies }: Pick<UserPlan, 'managed' | 'policies'>, where: string): Policy[] {
  const named = managed.map((name) => {
    const policy = managedPolicy(name)
    if (policy !== undefined) return policy
    throw new WorldError(
      `${where}.managed: there is no policy ${name} here; take one of ${MANAGED_NAMES.join(', ')}, or write it under policies`,
    )
  })
  const written = Object.entries(policies).map(([name, document]) =>
    read(document, `${where}.policies.${name}`),
  )
  return [...named, ...written]
}

function boundaryOf({ boundary }: Pick<UserPlan, 'boundary'>, where: string): Policy | undefined {
  return boundary === undefined ? undefined : read(boundary, `${where}.boundary`)
}

function read(document: unknown, where: string): Policy {
  const policy = readPolicy(document)
  if ('problem' in policy) throw new WorldError(`${where}: ${policy.problem}`)
  return policy
}
