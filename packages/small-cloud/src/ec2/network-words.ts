/** The XML description of a network. */
import type { Xml } from '../wire/xml'
import type { Call } from '../wire/service'
import type { Ec2 } from './ec2'
import type { Endpoint, Gateway, Region, RouteTable, Rule, SecurityGroup, Subnet, Vpc } from './model'
import { tagWords } from './tags'

export function vpcWords(ec2: Ec2, { id, cidr, isDefault, tags }: Vpc): Xml {
  return {
    vpcId: id,
    ownerId: ec2.account,
    state: 'available',
    cidrBlock: cidr,
    dhcpOptionsId: 'dopt-0a1b2c3d4e5f60718',
    instanceTenancy: 'default',
    isDefault,
    tagSet: tagWords(tags),
  }
}

export function subnetWords(ec2: Ec2, subnet: Subnet): Xml {
  const { id, vpcId, zone, cidr, addresses, used, isDefault, hasPublicAddresses, tags } = subnet
  return {
    subnetId: id,
    subnetArn: `arn:aws:ec2:${zone.name.slice(0, -1)}:${ec2.account}:subnet/${id}`,
    state: 'available',
    ownerId: ec2.account,
    vpcId,
    cidrBlock: cidr,
    availableIpAddressCount: addresses - used,
    availabilityZone: zone.name,
    availabilityZoneId: zone.id,
    defaultForAz: isDefault,
    mapPublicIpOnLaunch: hasPublicAddresses,
    assignIpv6AddressOnCreation: false,
    tagSet: tagWords(tags),
  }
}

function ruleWords(ec2: Ec2, { protocol, fromPort, toPort, cidrs, groupIds }: Rule): Xml {
  return {
    ipProtocol: protocol,
    fromPort,
    toPort,
    groups: groupIds.map((groupId) => ({ groupId, userId: ec2.account })),
    ipRanges: cidrs.map((cidrIp) => ({ cidrIp })),
    ipv6Ranges: [],
    prefixListIds: [],
  }
}

export function groupWords(ec2: Ec2, group: SecurityGroup): Xml {
  const { id, name, description, vpcId, ingress, egress, tags } = group
  return {
    groupId: id,
    groupName: name,
    groupDescription: description,
    ownerId: ec2.account,
    vpcId,
    ipPermissions: ingress.map((rule) => ruleWords(ec2, rule)),
    ipPermissionsEgress: egress.map((rule) => ruleWords(ec2, rule)),
    tagSet: tagWords(tags),
  }
}

export function gatewayWords(ec2: Ec2, { id, vpcId, tags }: Gateway): Xml {
  return {
    internetGatewayId: id,
    ownerId: ec2.account,
    attachmentSet: vpcId === undefined ? [] : [{ vpcId, state: 'available' }],
    tagSet: tagWords(tags),
  }
}

export function tableWords(ec2: Ec2, region: Region, table: RouteTable): Xml {
  const { id, vpcId, isMain, associations, routes, tags } = table
  const associated = { state: 'associated' }
  const own = associations.map(({ id: routeTableAssociationId, subnetId }) => ({
    routeTableAssociationId,
    routeTableId: id,
    subnetId,
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
    destinationCidrBlock: region.vpcs.find((vpc) => vpc.id === vpcId)?.cidr,
    gatewayId: 'local',
    state: 'active',
    origin: 'CreateRouteTable',
  }
  return {
    routeTableId: id,
    vpcId,
    ownerId: ec2.account,
    associationSet: isMain ? [main, ...own] : own,
    propagatingVgwSet: [],
    routeSet: [
      local,
      ...routes.map(({ cidr, gatewayId, natGatewayId }) => {
        const isThere =
          natGatewayId !== undefined ||
          region.gateways.some((gateway) => gateway.id === gatewayId && gateway.vpcId === vpcId)
        const state = isThere ? 'active' : 'blackhole'
        return { destinationCidrBlock: cidr, gatewayId, natGatewayId, state, origin: 'CreateRoute' }
      }),
    ],
    tagSet: tagWords(tags),
  }
}

export function endpointWords(ec2: Ec2, endpoint: Endpoint): Xml {
  const { id, service, type, vpcId, subnetIds, routeTableIds, createdAtMs, tags } = endpoint
  return {
    vpcEndpointId: id,
    vpcEndpointType: type,
    vpcId,
    serviceName: service,
    state: 'available',
    routeTableIdSet: routeTableIds,
    subnetIdSet: subnetIds,
    privateDnsEnabled: type === 'Interface',
    creationTimestamp: new Date(createdAtMs),
    ownerId: ec2.account,
    tagSet: tagWords(tags),
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
