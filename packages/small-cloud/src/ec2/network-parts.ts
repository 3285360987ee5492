/** Operations shared by all network parts: create, find and delete. */
import type { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, list, tagSpecification } from '../wire/query'
import type { Ec2 } from './ec2'
import { byId, checkForm } from './filters'
import { checkTagList } from './launch-plan'
import type { NetworkPart } from './model'

/** Fields that every create call accepts. */
export const making = { ...dryRun, TagSpecification: list(tagSpecification).default([]) }
export const done = { return: true }

export function newPart(
  ec2: Ec2,
  prefix: string,
  { kind, wanted }: { kind: string; wanted: z.output<(typeof making)['TagSpecification']> },
): NetworkPart {
  const stranger = wanted.find(({ ResourceType }) => ResourceType !== kind)
  if (stranger !== undefined)
    throw new ApiError(
      'InvalidParameterValue',
      `'${stranger.ResourceType}' is not a valid taggable resource type for this operation.`,
    )
  const tags = wanted.flatMap(({ Tag }) => Tag)
  checkTagList(tags)
  return {
    id: ec2.parts.ids.resource(prefix),
    visibleAtMs: ec2.nowMs + ec2.drawMs('objectHidden'),
    tags: new Map(tags.map(({ Key, Value }) => [Key, Value])),
  }
}

/** Returns the parts that lists already show. */
export function visible<T extends NetworkPart>(ec2: Ec2, parts: readonly T[]): T[] {
  return parts.filter(({ visibleAtMs }) => visibleAtMs <= ec2.nowMs)
}

export interface Kind {
  prefix: string
  code: string
  what: string
}

export const KINDS = {
  vpc: { prefix: 'vpc', code: 'InvalidVpcID.NotFound', what: 'vpc ID' },
  subnet: { prefix: 'subnet', code: 'InvalidSubnetID.NotFound', what: 'subnet ID' },
  gateway: { prefix: 'igw', code: 'InvalidInternetGatewayID.NotFound', what: 'internetGateway ID' },
  table: { prefix: 'rtb', code: 'InvalidRouteTableID.NotFound', what: 'routeTable ID' },
  endpoint: { prefix: 'vpce', code: 'InvalidVpcEndpointId.NotFound', what: 'Vpc Endpoint Id' },
  group: { prefix: 'sg', code: 'InvalidGroup.NotFound', what: 'security group' },
} as const satisfies Record<string, Kind>

/** Returns the part with an id. A part created a moment ago may not be found yet. */
export function one<T extends NetworkPart>(ec2: Ec2, parts: readonly T[], wish: Kind & { id: string }): T {
  const { id, prefix, code, what } = wish
  checkForm([id], prefix, code.replace('NotFound', 'Malformed'))
  const there = new Map(visible(ec2, parts).map((part) => [part.id, part]))
  return byId([id], (each) => there.get(each), { code, what })[0]!
}

export function takeAway<T>(from: T[], part: T): void {
  from.splice(from.indexOf(part), 1)
}

export function inUse(what: string, id: string): ApiError {
  return new ApiError('DependencyViolation', `The ${what} '${id}' has dependencies and cannot be deleted.`)
}
