/** The network as EC2 tells of it. */
import type { Xml } from '../wire/xml'
import type { Call } from '../wire/service'
import type { Ec2 } from './ec2'
import type { Region, SecurityGroup, Subnet } from './model'

export function subnetWords(ec2: Ec2, { id, vpcId, zone, cidr, plan, used }: Subnet): Xml {
  return {
    subnetId: id,
    subnetArn: `arn:aws:ec2:${zone.name.slice(0, -1)}:${ec2.account}:subnet/${id}`,
    state: 'available',
    ownerId: ec2.account,
    vpcId,
    cidrBlock: cidr,
    availableIpAddressCount: plan.addresses - used,
    availabilityZone: zone.name,
    availabilityZoneId: zone.id,
    defaultForAz: plan.isDefault,
    mapPublicIpOnLaunch: plan.egress === 'public',
    assignIpv6AddressOnCreation: false,
    tagSet: [],
  }
}

export function groupWords(ec2: Ec2, { id, name, isDefault }: SecurityGroup, vpcId: string): Xml {
  const everywhere = {
    ipProtocol: '-1',
    groups: [],
    ipRanges: [{ cidrIp: '0.0.0.0/0' }],
    ipv6Ranges: [],
    prefixListIds: [],
  }
  return {
    groupId: id,
    groupName: name,
    groupDescription: isDefault ? 'default VPC security group' : name,
    ownerId: ec2.account,
    vpcId,
    ipPermissions: isDefault
      ? [{ ...everywhere, ipRanges: [], groups: [{ groupId: id, userId: ec2.account }] }]
      : [],
    ipPermissionsEgress: [everywhere],
    tagSet: [],
  }
}

interface RouteTable {
  id: string
  vpcId: string
  isMain: boolean
  subnets: Subnet[]
  out: { gatewayId?: string; natGatewayId?: string } | undefined
}

/** One table for each way out; the public one is the main table. */
export function routeTables({ subnets, gatewayId, nat, vpcId }: Region): RouteTable[] {
  const ids = [...new Set(subnets.map(({ routeTableId }) => routeTableId))]
  return ids.map((id, i) => {
    const served = subnets.filter(({ routeTableId }) => routeTableId === id)
    const { egress } = served[0]!.plan
    const ways = {
      public: { gatewayId },
      nat: { natGatewayId: nat?.id ?? '' },
      endpoints: undefined,
      none: undefined,
    }
    const isMain = egress === 'public' || (i === 0 && subnets.every(({ plan }) => plan.egress !== 'public'))
    return { id, vpcId, isMain, subnets: served, out: ways[egress] }
  })
}

export function tableWords(ec2: Ec2, { id, vpcId, isMain, subnets, out }: RouteTable): Xml {
  const associated = { state: 'associated' }
  const own = subnets.map((subnet) => ({
    routeTableAssociationId: subnet.id.replace('subnet', 'rtbassoc'),
    routeTableId: id,
    subnetId: subnet.id,
    main: false,
    associationState: associated,
  }))
  const main = {
    routeTableAssociationId: id.replace('rtb', 'rtbassoc'),
    routeTableId: id,
    main: true,
    associationState: associated,
  }
  const local = {
    destinationCidrBlock: '172.31.0.0/16',
    gatewayId: 'local',
    state: 'active',
    origin: 'CreateRouteTable',
  }
  return {
    routeTableId: id,
    vpcId,
    ownerId: ec2.account,
    // The subnets of the main table follow it without an association of their own.
    associationSet: isMain ? [main] : own,
    propagatingVgwSet: [],
    routeSet: [
      local,
      ...(out === undefined
        ? []
        : [{ destinationCidrBlock: '0.0.0.0/0', ...out, state: 'active', origin: 'CreateRoute' }]),
    ],
    tagSet: [],
  }
}

export function natWords(
  ec2: Ec2,
  { id, subnet, publicIp }: NonNullable<Region['nat']>,
  { region }: Call,
): Xml {
  return {
    natGatewayId: id,
    subnetId: subnet.id,
    vpcId: subnet.vpcId,
    state: 'available',
    connectivityType: 'public',
    createTime: new Date(ec2.region(region).createdAtMs),
    natGatewayAddressSet: [
      { allocationId: id.replace('nat', 'eipalloc'), publicIp, isPrimary: true, status: 'succeeded' },
    ],
    tagSet: [],
  }
}
