/** Creates, changes and deletes security groups. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, integer, list, text } from '../wire/query'
import { action, type Action, type Call } from '../wire/service'
import type { Ec2 } from './ec2'
import { groupOf } from './first-network'
import { stateOf, type Rule, type SecurityGroup } from './model'
import { done, inUse, KINDS, making, newPart, one, takeAway } from './network-parts'
import { tagWords } from './tags'

const permission = z.strictObject({
  IpProtocol: text,
  FromPort: integer.optional(),
  ToPort: integer.optional(),
  IpRanges: list(z.strictObject({ CidrIp: text, Description: text.optional() })).default([]),
  Groups: list(z.strictObject({ GroupId: text, UserId: text.optional() })).default([]),
})
const changes = z.strictObject({ ...dryRun, GroupId: text, IpPermissions: list(permission) })

export function groupChanges(ec2: Ec2): Record<string, Action> {
  return {
    CreateSecurityGroup: createGroup(ec2),
    DeleteSecurityGroup: action({
      input: z.strictObject({ ...dryRun, GroupId: text }),
      isMutating: true,
      run({ GroupId }, call) {
        const group = groupFor(ec2, GroupId, call)
        const region = ec2.region(call.region)
        if (group.isDefault)
          throw new ApiError(
            'CannotDelete',
            'the specified group: "default" name cannot be deleted by a user',
          )
        const isUsed = [...region.instances.values()].some(
          (each) => each.groupIds.includes(group.id) && stateOf(each) !== 'terminated',
        )
        if (isUsed) throw inUse('security group', group.id)
        takeAway(region.groups, group)
        return done
      },
    }),
    AuthorizeSecurityGroupIngress: authorize(ec2, 'ingress'),
    AuthorizeSecurityGroupEgress: authorize(ec2, 'egress'),
    RevokeSecurityGroupIngress: revoke(ec2, 'ingress'),
    RevokeSecurityGroupEgress: revoke(ec2, 'egress'),
  }
}

function groupFor(ec2: Ec2, id: string, { region }: Call): SecurityGroup {
  return one(ec2, ec2.region(region).groups, { id, ...KINDS.group })
}

function createGroup(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...making, GroupName: text, GroupDescription: text, VpcId: text }),
    isMutating: true,
    run({ GroupName: name, GroupDescription: description, VpcId, TagSpecification: wanted }, call) {
      const region = ec2.region(call.region)
      const vpc = one(ec2, region.vpcs, { id: VpcId, ...KINDS.vpc })
      if (name === 'default' || region.groups.some((each) => each.name === name && each.vpcId === vpc.id))
        throw new ApiError(
          'InvalidGroup.Duplicate',
          `The security group '${name}' already exists for VPC '${vpc.id}'`,
        )
      const part = newPart(ec2, 'sg', { kind: 'security-group', wanted })
      const group = groupOf({ ...part, name, description, vpcId: vpc.id })
      region.groups.push(group)
      return { groupId: group.id, tagSet: tagWords(group.tags), ...done }
    },
  })
}

const authorize = (ec2: Ec2, way: Way): Action =>
  onRules(ec2, way, (rules, rule) => {
    if (rules.some((each) => isSame(each, rule)))
      throw new ApiError('InvalidPermission.Duplicate', 'the specified rule already exists')
    rules.push(rule)
  })

const revoke = (ec2: Ec2, way: Way): Action =>
  onRules(ec2, way, (rules, rule) => {
    const there = rules.find((each) => isSame(each, rule))
    if (there === undefined)
      throw new ApiError(
        'InvalidPermission.NotFound',
        'The specified rule does not exist in this security group.',
      )
    takeAway(rules, there)
  })

type Way = 'ingress' | 'egress'

function onRules(ec2: Ec2, way: Way, apply: (rules: Rule[], rule: Rule) => void): Action {
  return action({
    input: changes,
    isMutating: true,
    run({ GroupId, IpPermissions }, call) {
      const group = groupFor(ec2, GroupId, call)
      for (const rule of IpPermissions.map(ruleOf)) apply(group[way], rule)
      return done
    },
  })
}

function ruleOf({ IpProtocol, FromPort, ToPort, IpRanges, Groups }: z.output<typeof permission>): Rule {
  return {
    protocol: IpProtocol,
    ...(FromPort === undefined || FromPort === -1 ? {} : { fromPort: FromPort }),
    ...(ToPort === undefined || ToPort === -1 ? {} : { toPort: ToPort }),
    cidrs: IpRanges.map(({ CidrIp }) => CidrIp),
    groupIds: Groups.map(({ GroupId }) => GroupId),
  }
}

function isSame(a: Rule, b: Rule): boolean {
  const key = ({ protocol, fromPort, toPort, cidrs, groupIds }: Rule): string =>
    JSON.stringify([protocol, fromPort, toPort, cidrs, groupIds])
  return key(a) === key(b)
}
