import * as iam from '@aws-sdk/client-iam'
import { defined } from '../../../core/defined'
import { AwsError } from '../sdk/api'
import { hasCode } from '../errors'
import { call } from '../sdk/errors'
import { insist, repeat, settle, STILL_IN_USE } from './clients'
import { isOurs, isSame, ours, tagsFor, type Driver, type Found, type Site } from './driver'
import { MACHINE_DESCRIPTION, roleName, ROLES, spotDescription } from './description'
import { formerOf } from './former'
import { policyText, type LinkedRolePiece, type ProfilePiece, type RolePiece } from './pieces'

const MANAGED_ARN = 'arn:aws:iam::aws:policy/'
const isAbsent = (error: unknown): boolean => hasCode(error, 'NoSuchEntity', 'NoSuchEntityException')
const NOT_MADE_HERE = 'is there already, and was not made by this set-up: choose another --prefix'

/** The result of a read, or nothing if it does not exist. */
async function orNothing<T>(read: Promise<T>): Promise<T | undefined> {
  return read.catch((error: unknown) => {
    if (isAbsent(error)) return undefined
    throw error
  })
}

function roleNamed({ clients, signal }: Site, RoleName: string): Promise<iam.Role | undefined> {
  const read = repeat(
    () => clients.iam.send(new iam.GetRoleCommand({ RoleName }), { abortSignal: signal }),
    signal,
  )
  return orNothing(read.then(({ Role }) => Role!))
}

const documentOf = (text: string | undefined): unknown => JSON.parse(decodeURIComponent(text ?? '{}'))

type Send = (client: iam.IAMClient, options: { abortSignal: AbortSignal }) => Promise<unknown>

export const roles: Driver<RolePiece> = {
  async read(piece, site) {
    const role = await roleNamed(site, piece.name)
    if (role === undefined) return undefined
    if (!isOurs(site, role.Tags)) return { ...ours(piece.name, [NOT_MADE_HERE]), owner: 'taken' }
    const { inline, managed } = await policiesOf(site, piece.name)
    const wanted = Object.entries(piece.policies)
    const former = await formerOf(piece, inline, site)
    const trust = documentOf(role.AssumeRolePolicyDocument)
    const remarks = [
      ...(isSame(trust, JSON.parse(policyText([piece.trust]))) ? [] : ['trusts others than it should']),
      ...wanted
        .filter(([name, statements]) => !isSame(inline.get(name), JSON.parse(policyText(statements))))
        .map(([name]) => `its policy "${name}" ${inline.has(name) ? 'says something else' : 'is missing'}`),
      ...[...inline.keys()]
        .filter((name) => piece.policies[name] === undefined && !former.kept.includes(name))
        .map((name) => `has a policy "${name}" that it should not`),
      ...piece.managed.filter((name) => !managed.includes(name)).map((name) => `lacks the policy ${name}`),
      ...managed
        .filter((name) => !piece.managed.includes(name))
        .map((name) => `has the policy ${name}, which it should not`),
      ...Object.entries(piece.tags)
        .filter(([key, value]) => !role.Tags?.some((tag) => tag.Key === key && tag.Value === value))
        .map(([key]) => `its tag ${key} is another`),
      ...(isSessionAsWished(piece, role) ? [] : ['its sessions are shorter or longer than they should be']),
    ]
    return { ...ours(piece.name, remarks), notes: former.notes }
  },
  async make({ name, description, trust, tags, sessionSecondsMax }, site) {
    const { clients, signal } = site
    const AssumeRolePolicyDocument = policyText([trust])
    const wish = {
      RoleName: name,
      Description: description,
      AssumeRolePolicyDocument,
      Tags: tagsFor(site, tags),
      ...defined({ MaxSessionDuration: sessionSecondsMax }),
    }
    await insist(() => clients.iam.send(new iam.CreateRoleCommand(wish), { abortSignal: signal }), { signal })
    return name
  },
  async mend(piece, RoleName, site) {
    const { clients, signal } = site
    const put = async (send: Send): Promise<void> => {
      await settle(() => send(clients.iam, { abortSignal: signal }), signal)
    }
    await put((client, options) =>
      client.send(
        new iam.UpdateAssumeRolePolicyCommand({ RoleName, PolicyDocument: policyText([piece.trust]) }),
        options,
      ),
    )
    const role = await settle(() => roleNamed(site, RoleName), signal)
    if (role !== undefined && !isSessionAsWished(piece, role))
      await put((client, options) =>
        client.send(
          new iam.UpdateRoleCommand({ RoleName, MaxSessionDuration: piece.sessionSecondsMax }),
          options,
        ),
      )
    const { inline, managed } = await policiesOf(site, RoleName)
    const { kept } = await formerOf(piece, inline, site)
    for (const PolicyName of inline.keys())
      if (piece.policies[PolicyName] === undefined && !kept.includes(PolicyName))
        await put((client, options) =>
          client.send(new iam.DeleteRolePolicyCommand({ RoleName, PolicyName }), options),
        )
    for (const [PolicyName, statements] of Object.entries(piece.policies))
      await put((client, options) =>
        client.send(
          new iam.PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument: policyText(statements) }),
          options,
        ),
      )
    for (const name of managed.filter((each) => !piece.managed.includes(each)))
      await put((client, options) =>
        client.send(
          new iam.DetachRolePolicyCommand({ RoleName, PolicyArn: `${MANAGED_ARN}${name}` }),
          options,
        ),
      )
    for (const name of piece.managed)
      await put((client, options) =>
        client.send(
          new iam.AttachRolePolicyCommand({ RoleName, PolicyArn: `${MANAGED_ARN}${name}` }),
          options,
        ),
      )
    await put((client, options) =>
      client.send(new iam.TagRoleCommand({ RoleName, Tags: tagsFor(site, piece.tags) }), options),
    )
  },
  async all(_, site) {
    const { prefix } = site.choices
    const names = ROLES.map((of) => roleName(prefix, of))
    const found = await Promise.all(names.map((name) => roleNamed(site, name)))
    return names.filter((_name, at) => isOurs(site, found[at]?.Tags)).map((name) => ({ id: name, name }))
  },
  async remove(RoleName, site) {
    const { clients, signal } = site
    const drop = (send: Send): Promise<unknown> =>
      orNothing(
        insist(() => send(clients.iam, { abortSignal: signal }), {
          ...{ signal, isRepeatable: true, until: STILL_IN_USE },
        }),
      )
    const { inline, managed } = await policiesOf(site, RoleName)
    for (const PolicyName of inline.keys())
      await drop((client, options) =>
        client.send(new iam.DeleteRolePolicyCommand({ RoleName, PolicyName }), options),
      )
    for (const name of managed)
      await drop((client, options) =>
        client.send(
          new iam.DetachRolePolicyCommand({ RoleName, PolicyArn: `${MANAGED_ARN}${name}` }),
          options,
        ),
      )
    await drop((client, options) => client.send(new iam.DeleteRoleCommand({ RoleName }), options))
    return undefined
  },
}

function isSessionAsWished({ sessionSecondsMax }: RolePiece, role: iam.Role): boolean {
  return sessionSecondsMax === undefined || role.MaxSessionDuration === sessionSecondsMax
}

async function policiesOf(
  { clients, signal }: Site,
  RoleName: string,
): Promise<{ inline: Map<string, unknown>; managed: string[] }> {
  return settle(async () => {
    const inline = new Map<string, unknown>()
    for await (const { PolicyNames } of iam.paginateListRolePolicies({ client: clients.iam }, { RoleName }))
      for (const PolicyName of PolicyNames ?? []) {
        const { PolicyDocument } = await clients.iam.send(
          new iam.GetRolePolicyCommand({ RoleName, PolicyName }),
          { abortSignal: signal },
        )
        inline.set(PolicyName, documentOf(PolicyDocument))
      }
    const managed: string[] = []
    for await (const { AttachedPolicies } of iam.paginateListAttachedRolePolicies(
      { client: clients.iam },
      { RoleName },
    ))
      managed.push(...(AttachedPolicies ?? []).map(({ PolicyName = '' }) => PolicyName))
    return { inline, managed }
  }, signal)
}

function profileNamed({ clients, signal }: Site, name: string): Promise<iam.InstanceProfile | undefined> {
  const command = new iam.GetInstanceProfileCommand({ InstanceProfileName: name })
  const read = repeat(() => clients.iam.send(command, { abortSignal: signal }), signal)
  return orNothing(read.then(({ InstanceProfile }) => InstanceProfile!))
}

export const profiles: Driver<ProfilePiece> = {
  async read({ name, role }, site) {
    const profile = await profileNamed(site, name)
    if (profile === undefined) return undefined
    if (!isOurs(site, profile.Tags)) return { ...ours(name, [NOT_MADE_HERE]), owner: 'taken' }
    const has = profile.Roles?.[0]?.RoleName
    if (has === role) return ours(name)
    return ours(name, [has === undefined ? 'has no role' : `has the role ${has}`])
  },
  async make({ name }, site) {
    const { clients, signal } = site
    const wish = { InstanceProfileName: name, Tags: tagsFor(site) }
    const command = new iam.CreateInstanceProfileCommand(wish)
    await insist(() => clients.iam.send(command, { abortSignal: signal }), { signal })
    return name
  },
  async mend({ role }, InstanceProfileName, site) {
    const { clients, signal } = site
    const has = (await profileNamed(site, InstanceProfileName))?.Roles?.[0]?.RoleName
    if (has === role) return
    if (has !== undefined) await dropRole(site, InstanceProfileName, has)
    const command = new iam.AddRoleToInstanceProfileCommand({ InstanceProfileName, RoleName: role })
    await settle(() => clients.iam.send(command, { abortSignal: signal }), signal).catch(async (error) => {
      // The answer was lost, and the second request finds it done.
      if ((await profileNamed(site, InstanceProfileName))?.Roles?.[0]?.RoleName !== role) throw error
    })
  },
  async all(_, site) {
    const name = roleName(site.choices.prefix, 'machine')
    return isOurs(site, (await profileNamed(site, name))?.Tags) ? [{ id: name, name }] : []
  },
  async remove(InstanceProfileName, site) {
    const { clients, signal } = site
    const role = (await profileNamed(site, InstanceProfileName))?.Roles?.[0]?.RoleName
    if (role !== undefined) await dropRole(site, InstanceProfileName, role)
    const command = new iam.DeleteInstanceProfileCommand({ InstanceProfileName })
    await orNothing(repeat(() => clients.iam.send(command, { abortSignal: signal }), signal))
    return undefined
  },
}

async function dropRole(
  { clients, signal }: Site,
  InstanceProfileName: string,
  RoleName: string,
): Promise<void> {
  const command = new iam.RemoveRoleFromInstanceProfileCommand({ InstanceProfileName, RoleName })
  await orNothing(repeat(() => clients.iam.send(command, { abortSignal: signal }), signal))
}

const SPOT_ROLE = 'AWSServiceRoleForEC2Spot'
const isTaken = (error: unknown): boolean => /has been taken/.test((error as Error).message)

export const linkedRoles: Driver<LinkedRolePiece> = {
  async read({ name }, site): Promise<Found | undefined> {
    const role = await roleNamed(site, name)
    return (
      role && {
        ...ours(name),
        owner: role.Description === spotDescription(site.choices.prefix) ? 'ours' : 'theirs',
      }
    )
  },
  async make({ service, name, description }, { clients, signal }) {
    const wish = { AWSServiceName: service, Description: description }
    const command = new iam.CreateServiceLinkedRoleCommand(wish)
    try {
      await insist(() => clients.iam.send(command, { abortSignal: signal }), { signal })
    } catch (error) {
      // Another set-up created it meanwhile, or it was not visible: it is one per account.
      if (!(hasCode(error, 'InvalidInput', 'InvalidInputException') && isTaken(error))) throw error
    }
    return name
  },
  mend: async () => {},
  async all(_, site) {
    const role = await roleNamed(site, SPOT_ROLE)
    const isMade = role?.Description === spotDescription(site.choices.prefix)
    return isMade ? [{ id: SPOT_ROLE, name: SPOT_ROLE }] : []
  },
  async remove(RoleName, { clients, signal }) {
    const command = new iam.DeleteServiceLinkedRoleCommand({ RoleName })
    try {
      const other = await repeat(async () => {
        for await (const { Roles } of iam.paginateListRoles({ client: clients.iam }, {})) {
          const found = Roles?.find(({ Description }) => Description === MACHINE_DESCRIPTION)
          if (found !== undefined) return found
        }
        return undefined
      }, signal)
      if (other !== undefined) return { kept: `${other.RoleName} of another set-up needs it, too` }
      await call(signal, () => clients.iam.send(command, { abortSignal: signal }))
    } catch (error) {
      if (isAbsent(error)) return undefined
      if (error instanceof AwsError && STILL_IN_USE.test(error.code)) return { kept: error.message }
      throw error
    }
    return undefined
  },
}
