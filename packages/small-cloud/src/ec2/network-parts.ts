/** Kinds of network parts, and which of them lists already show. */
import type { Ec2 } from './ec2'
import type { NetworkPart } from './model'

/** Returns the parts that lists already show. */
export function visible<T extends NetworkPart>(ec2: Ec2, parts: readonly T[]): T[] {
  return parts.filter(({ visibleAtMs }) => visibleAtMs <= ec2.nowMs)
}

export const KINDS = {
  vpc: { prefix: 'vpc', code: 'InvalidVpcID.NotFound', what: 'vpc ID' },
  subnet: { prefix: 'subnet', code: 'InvalidSubnetID.NotFound', what: 'subnet ID' },
  gateway: { prefix: 'igw', code: 'InvalidInternetGatewayID.NotFound', what: 'internetGateway ID' },
  table: { prefix: 'rtb', code: 'InvalidRouteTableID.NotFound', what: 'routeTable ID' },
  endpoint: { prefix: 'vpce', code: 'InvalidVpcEndpointId.NotFound', what: 'Vpc Endpoint Id' },
  group: { prefix: 'sg', code: 'InvalidGroup.NotFound', what: 'security group' },
} as const
