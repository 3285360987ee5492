import {
  paginateDescribeRouteTables,
  paginateDescribeSecurityGroups,
  paginateDescribeSubnets,
  paginateDescribeVpcEndpoints,
  type EC2Client,
  type Filter,
  type IpPermission,
  type RouteTable,
  type Subnet as SdkSubnet,
} from '@aws-sdk/client-ec2'
import type { NetworkApi, Subnet } from './api'
import { call } from './errors'

const HTTPS = 443

export function createNetworkApi(ec2: EC2Client): NetworkApi {
  return {
    subnets: (wanted, signal) =>
      call(signal, async () => {
        const filter =
          wanted === 'default'
            ? { Name: 'default-for-az', Values: ['true'] }
            : { Name: 'subnet-id', Values: wanted }
        const found = []
        const pages = paginateDescribeSubnets({ client: ec2 }, { Filters: [filter] }, { abortSignal: signal })
        for await (const { Subnets } of pages) found.push(...(Subnets ?? []))
        return found.map(subnetOf)
      }),
    securityGroups: (wanted, signal) =>
      call(signal, async () => {
        const filters: Filter[] =
          'ids' in wanted
            ? [{ Name: 'group-id', Values: wanted.ids }]
            : [
                { Name: 'group-name', Values: [wanted.name] },
                { Name: 'vpc-id', Values: wanted.vpcs },
              ]
        const found = []
        const pages = paginateDescribeSecurityGroups(
          { client: ec2 },
          { Filters: filters },
          { abortSignal: signal },
        )
        for await (const { SecurityGroups } of pages) found.push(...(SecurityGroups ?? []))
        return found.map((group) => ({
          id: group.GroupId!,
          name: group.GroupName ?? '',
          vpc: group.VpcId ?? '',
          inboundRules: group.IpPermissions?.length ?? 0,
          letsOut: (group.IpPermissionsEgress ?? []).some(letsHttpsThrough),
        }))
      }),
    defaultRoute: (subnet, signal) =>
      call(signal, async () => {
        const tables: RouteTable[] = []
        const pages = paginateDescribeRouteTables(
          { client: ec2 },
          { Filters: [{ Name: 'vpc-id', Values: [subnet.vpc] }] },
          { abortSignal: signal },
        )
        for await (const { RouteTables } of pages) tables.push(...(RouteTables ?? []))
        return defaultRouteOf(tables, subnet.id)
      }),
    endpoints: (vpc, signal) =>
      call(signal, async () => {
        const names: string[] = []
        const pages = paginateDescribeVpcEndpoints(
          { client: ec2 },
          { Filters: [{ Name: 'vpc-id', Values: [vpc] }] },
          { abortSignal: signal },
        )
        for await (const { VpcEndpoints } of pages) {
          for (const { ServiceName, State } of VpcEndpoints ?? [])
            if (/^available$/i.test(State ?? '')) names.push((ServiceName ?? '').split('.').at(-1)!)
        }
        return names
      }),
  }
}

export function subnetOf(told: SdkSubnet): Subnet {
  return {
    id: told.SubnetId!,
    zone: told.AvailabilityZone ?? '',
    vpc: told.VpcId ?? '',
    freeAddresses: told.AvailableIpAddressCount ?? 0,
    givesPublicAddress: told.MapPublicIpOnLaunch ?? false,
  }
}

function letsHttpsThrough({ IpProtocol, FromPort, ToPort }: IpPermission): boolean {
  if (IpProtocol === '-1') return true
  return IpProtocol === 'tcp' && (FromPort ?? 0) <= HTTPS && (ToPort ?? 0) >= HTTPS
}

/** Returns the default route of a subnet; one without its own route table uses the main one of its network. */
function defaultRouteOf(tables: RouteTable[], subnet: string): string | undefined {
  const own = tables.find(({ Associations }) => Associations?.some(({ SubnetId }) => SubnetId === subnet))
  const main = tables.find(({ Associations }) => Associations?.some(({ Main }) => Main === true))
  const route = (own ?? main)?.Routes?.find(
    ({ DestinationCidrBlock, State }) => DestinationCidrBlock === '0.0.0.0/0' && State !== 'blackhole',
  )
  return (
    route?.GatewayId ??
    route?.NatGatewayId ??
    route?.TransitGatewayId ??
    route?.NetworkInterfaceId ??
    undefined
  )
}
