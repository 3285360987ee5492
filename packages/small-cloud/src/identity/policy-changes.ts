/** Creates, changes and deletes roles, their policies and their profiles. */
import { z } from 'zod'
import type { Clock } from '../clock'
import { ApiError } from '../wire/errors'
import { integer, members, tag, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import { drawMs, type World } from '../world/world'
import { isLinkable, linkedRoleName, type Identities, type Role } from './identities'
import { noSuch, profileOf, profilesOf, profileWords, roleOf, roleWords } from './iam-words'
import { managedPolicy } from './managed-policies'
import { readPolicy } from './policy'

const NAME = /^[\w+=,.@-]{1,64}$/
const roleName = text.regex(NAME, 'must be 1 to 64 letters, digits or =,.@-_')
const named = z.strictObject({ RoleName: text })
const tags = { Tags: members(tag).default([]) }
const ofPolicy = z.strictObject({ RoleName: text, PolicyName: text })
const ofManaged = z.strictObject({ RoleName: text, PolicyArn: text })
const SESSION_SECONDS = { least: 3600, most: 43_200 }
const MANAGED_ARN = /^arn:aws:iam::aws:policy\/(?:service-role\/)?([\w+=,.@-]+)$/
/** Maximum total length of a role's inline policies, in characters without white space. */
const INLINE_CHARS_MAX = 10_240

const taken = (what: string, name: string): ApiError =>
  new ApiError('EntityAlreadyExists', `${what} with name ${name} already exists.`, 409)
const conflict = (message: string): ApiError => new ApiError('DeleteConflict', message, 409)
const entries = (list: readonly { Key: string; Value: string }[]): [string, string][] =>
  list.map(({ Key, Value }) => [Key, Value])

export function roleChanges(world: World, identities: Identities, clock: Clock): Record<string, Action> {
  return {
    CreateRole: action({
      input: z.strictObject({
        ...{ RoleName: roleName, AssumeRolePolicyDocument: text, Path: z.literal('/').optional(), ...tags },
        ...{ Description: text.default(''), MaxSessionDuration: integer.default(SESSION_SECONDS.least) },
      }),
      isMutating: true,
      run({ RoleName: name, AssumeRolePolicyDocument, Description, MaxSessionDuration, Tags }) {
        if (identities.roles.has(name)) throw taken('Role', name)
        const plan = {
          ...{ managed: [], policies: {}, hasProfile: false },
          trusts: trustsOf(world, AssumeRolePolicyDocument),
          sessionMax: sessionMs(MaxSessionDuration),
        }
        const facts = { createdAt: new Date(clock.nowMs()), description: Description, tags: entries(Tags) }
        return { Role: roleWords(world, identities.addRole(name, plan, facts)) }
      },
    }),
    UpdateAssumeRolePolicy: action({
      input: z.strictObject({ RoleName: text, PolicyDocument: text }),
      isMutating: true,
      run({ RoleName, PolicyDocument }) {
        roleOf(identities, RoleName).plan.trusts = trustsOf(world, PolicyDocument)
      },
    }),
    UpdateRole: action({
      input: z.strictObject({
        RoleName: text,
        Description: text.optional(),
        MaxSessionDuration: integer.optional(),
      }),
      isMutating: true,
      run({ RoleName, Description, MaxSessionDuration }) {
        const role = roleOf(identities, RoleName)
        if (Description !== undefined) role.description = Description
        // An omitted value is reset to its default, as in IAM.
        role.plan.sessionMax = sessionMs(MaxSessionDuration ?? SESSION_SECONDS.least)
      },
    }),
    TagRole: action({
      input: z.strictObject({ RoleName: text, ...tags }),
      isMutating: true,
      run({ RoleName, Tags }) {
        const role = roleOf(identities, RoleName)
        for (const [key, value] of entries(Tags)) role.tags.set(key, value)
      },
    }),
    DeleteRole: action({
      input: named,
      isMutating: true,
      run({ RoleName }) {
        const role = roleOf(identities, RoleName)
        if (role.path.startsWith('/aws-service-role/'))
          throw new ApiError('UnmodifiableEntity', `Cannot perform the operation on the protected role`)
        if (profilesOf(identities, role).length > 0)
          throw conflict('Cannot delete entity, must remove roles from instance profile first.')
        if (role.plan.managed.length > 0)
          throw conflict('Cannot delete entity, must detach all policies first.')
        if (Object.keys(role.plan.policies).length > 0)
          throw conflict('Cannot delete entity, must delete policies first.')
        identities.roles.delete(RoleName)
      },
    }),
    ...policyChanges(identities),
  }
}

function policyChanges(identities: Identities): Record<string, Action> {
  const change = (role: Role): void => identities.planned(role)
  return {
    PutRolePolicy: action({
      input: ofPolicy.extend({ PolicyDocument: text }),
      isMutating: true,
      run({ RoleName, PolicyName, PolicyDocument }) {
        const role = roleOf(identities, RoleName)
        const document = parsed(PolicyDocument)
        const read = readPolicy(document)
        if ('problem' in read) throw malformed(read.problem)
        const policies = { ...role.plan.policies, [PolicyName]: document as Role['plan']['policies'][string] }
        const chars = Object.values(policies).reduce((sum, each) => sum + JSON.stringify(each).length, 0)
        if (chars > INLINE_CHARS_MAX)
          throw new ApiError(
            'LimitExceeded',
            `Maximum policy size of ${INLINE_CHARS_MAX} bytes exceeded for role ${RoleName}`,
            409,
          )
        role.plan.policies = policies
        change(role)
      },
    }),
    DeleteRolePolicy: action({
      input: ofPolicy,
      isMutating: true,
      run({ RoleName, PolicyName }) {
        const role = roleOf(identities, RoleName)
        const { [PolicyName]: gone, ...kept } = role.plan.policies
        if (gone === undefined) throw noSuch(`The role policy with name ${PolicyName} cannot be found.`)
        role.plan.policies = kept
        change(role)
      },
    }),
    AttachRolePolicy: action({
      input: ofManaged,
      isMutating: true,
      run({ RoleName, PolicyArn }) {
        const role = roleOf(identities, RoleName)
        const name = MANAGED_ARN.exec(PolicyArn)?.[1] ?? ''
        if (managedPolicy(name) === undefined)
          throw noSuch(`Policy ${PolicyArn} does not exist or is not attachable.`)
        role.plan.managed = [...new Set([...role.plan.managed, name])]
        change(role)
      },
    }),
    DetachRolePolicy: action({
      input: ofManaged,
      isMutating: true,
      run({ RoleName, PolicyArn }) {
        const role = roleOf(identities, RoleName)
        const name = MANAGED_ARN.exec(PolicyArn)?.[1] ?? ''
        if (!role.plan.managed.includes(name)) throw noSuch(`Policy ${PolicyArn} was not found.`)
        role.plan.managed = role.plan.managed.filter((each) => each !== name)
        change(role)
      },
    }),
  }
}

export function profileChanges(world: World, identities: Identities, clock: Clock): Record<string, Action> {
  const both = z.strictObject({ InstanceProfileName: text, RoleName: text })
  return {
    CreateInstanceProfile: action({
      input: z.strictObject({ InstanceProfileName: roleName, ...tags }),
      isMutating: true,
      run({ InstanceProfileName: name, Tags }) {
        if (identities.profiles.has(name)) throw taken('Instance Profile', name)
        const nowMs = clock.nowMs()
        const profile = identities.addProfile(name, {
          createdAt: new Date(nowMs),
          visibleAtMs: nowMs + drawMs(world, 'objectHidden'),
        })
        for (const [key, value] of entries(Tags)) profile.tags.set(key, value)
        return { InstanceProfile: profileWords(world, profile) }
      },
    }),
    AddRoleToInstanceProfile: action({
      input: both,
      isMutating: true,
      run({ InstanceProfileName, RoleName }) {
        const profile = profileOf(identities, InstanceProfileName)
        const role = roleOf(identities, RoleName)
        if (profile.role !== undefined)
          throw new ApiError(
            'LimitExceeded',
            'Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1',
            409,
          )
        profile.role = role
      },
    }),
    RemoveRoleFromInstanceProfile: action({
      input: both,
      isMutating: true,
      run({ InstanceProfileName, RoleName }) {
        const profile = profileOf(identities, InstanceProfileName)
        if (profile.role?.name !== RoleName)
          throw noSuch(`Role ${RoleName} is not in instance profile ${InstanceProfileName}.`)
        delete profile.role
      },
    }),
    DeleteInstanceProfile: action({
      input: z.strictObject({ InstanceProfileName: text }),
      isMutating: true,
      run({ InstanceProfileName }) {
        const profile = profileOf(identities, InstanceProfileName)
        if (profile.role !== undefined)
          throw conflict('Cannot delete entity, must remove roles from instance profile first.')
        identities.profiles.delete(profile.name)
      },
    }),
  }
}

export function linkedRoleActions(identities: Identities, clock: Clock): Record<string, Action> {
  return {
    CreateServiceLinkedRole: action({
      input: z.strictObject({ AWSServiceName: text, Description: text.optional() }),
      isMutating: true,
      run({ AWSServiceName: service, Description: description = '' }) {
        if (!isLinkable(service))
          throw new ApiError('InvalidInput', `Service ${service} has no role here that is linked to it`)
        const name = linkedRoleName(service)
        if (identities.roles.has(name))
          throw new ApiError(
            'InvalidInput',
            `Service role name ${name} has been taken in this account, please try a different suffix.`,
          )
        const { path, arn } = identities.addLinkedRole(service, {
          createdAt: new Date(clock.nowMs()),
          description,
        })
        return { Role: { Path: path, RoleName: name, Arn: arn } }
      },
    }),
    DeleteServiceLinkedRole: action({
      input: named,
      isMutating: true,
      run({ RoleName }) {
        const { name, path } = roleOf(identities, RoleName)
        identities.roles.delete(name)
        return { DeletionTaskId: `task${path}${name}/${clock.nowMs()}` }
      },
    }),
  }
}

function sessionMs(seconds: number): number {
  if (seconds < SESSION_SECONDS.least || seconds > SESSION_SECONDS.most)
    throw new ApiError(
      'ValidationError',
      `MaxSessionDuration must be ${SESSION_SECONDS.least} to ${SESSION_SECONDS.most}`,
    )
  return seconds * 1000
}

const trust = z.object({
  Statement: z.array(
    z.object({
      Effect: z.literal('Allow'),
      Principal: z.object({ Service: z.string().optional(), AWS: z.string().optional() }),
      Action: z.literal('sts:AssumeRole'),
    }),
  ),
})

/** Returns the principals that a document trusts. */
function trustsOf(world: World, text: string): string[] {
  const read = trust.safeParse(parsed(text))
  if (!read.success) throw malformed(read.error.issues[0]!.message)
  return read.data.Statement.flatMap(({ Principal: { Service, AWS } }) =>
    [Service, AWS === `arn:aws:iam::${world.account}:root` ? 'account' : AWS].filter(
      (who) => who !== undefined,
    ),
  )
}

function parsed(document: string): unknown {
  try {
    return JSON.parse(document)
  } catch {
    throw malformed('This policy contains invalid Json')
  }
}

function malformed(message: string): ApiError {
  return new ApiError('MalformedPolicyDocument', message)
}
