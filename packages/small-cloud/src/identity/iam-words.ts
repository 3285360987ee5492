/** Finds and describes roles and profiles. */
import { ApiError } from '../wire/errors'
import type { Xml } from '../wire/xml'
import type { World } from '../world/world'
import type { Identities, Profile, Role } from './identities'

export function noSuch(message: string): ApiError {
  return new ApiError('NoSuchEntity', message, 404)
}

export function roleOf({ roles }: Identities, name: string): Role {
  const role = roles.get(name)
  if (role === undefined) throw noSuch(`The role with name ${name} cannot be found.`)
  return role
}

export function profileOf({ profiles }: Identities, name: string): Profile {
  const profile = profiles.get(name)
  if (profile === undefined) throw noSuch(`Instance Profile ${name} cannot be found.`)
  return profile
}

function tagWords(tags: ReadonlyMap<string, string>): Xml {
  return [...tags].map(([Key, Value]) => ({ Key, Value }))
}

export function profileWords(world: World, { name, id, arn, role, tags, createdAt }: Profile): Xml {
  return {
    Path: '/',
    InstanceProfileName: name,
    InstanceProfileId: id,
    Arn: arn,
    CreateDate: createdAt,
    Roles: role === undefined ? [] : [roleWords(world, role)],
    Tags: tagWords(tags),
  }
}

export function roleWords(world: World, role: Role): Xml {
  const { name, path, id, arn, plan, description, tags, createdAt } = role
  const statements = plan.trusts.map((who) => ({
    Effect: 'Allow',
    Principal: who.includes('.')
      ? { Service: who }
      : { AWS: who === 'account' ? `arn:aws:iam::${world.account}:root` : who },
    Action: 'sts:AssumeRole',
  }))
  return {
    Path: path,
    RoleName: name,
    RoleId: id,
    Arn: arn,
    CreateDate: createdAt,
    AssumeRolePolicyDocument: encodeURIComponent(
      JSON.stringify({ Version: '2012-10-17', Statement: statements }),
    ),
    ...(description === '' ? {} : { Description: description }),
    MaxSessionDuration: plan.sessionMax / 1000,
    Tags: tagWords(tags),
  }
}
