import * as ec2 from '@aws-sdk/client-ec2'
import { AwsError } from '../sdk/api'
import type { Driver, Site } from './driver'
import {
  dropping,
  EVERYWHERE,
  found,
  idsOf,
  making,
  marked,
  ourOwn,
  reading,
  settling,
} from './network-calls'
import type { GatewayPiece, RoutesPiece, SubnetPiece, VpcPiece } from './pieces'

export const listVpcs = async (site: Site): Promise<ec2.Vpc[]> => {
  const [{ Vpcs = [] }, subnets] = await Promise.all([
    reading(site)((client, options) => client.send(new ec2.DescribeVpcsCommand(ourOwn(site)), options)),
    listSubnets(site),
  ])
  const isUsed = ({ VpcId }: ec2.Vpc): boolean => subnets.some((subnet) => subnet.VpcId === VpcId)
  return [...Vpcs].sort((a, b) => Number(isUsed(b)) - Number(isUsed(a)))
}

export const vpcs: Driver<VpcPiece> = {
  read: async (_, site) => found(await listVpcs(site), ({ VpcId }) => VpcId!),
  async make({ cidr, name }, site) {
    const wish = { CidrBlock: cidr, ...marked(site, 'vpc', name) }
    const { Vpc } = await making(site)((client, options) =>
      client.send(new ec2.CreateVpcCommand(wish), options),
    )
    return Vpc!.VpcId!
  },
  mend: async () => {},
  all: async (_, site) => idsOf((await listVpcs(site)).map(({ VpcId }) => VpcId)),
  async remove(VpcId, site) {
    await dropping(site, (client, options) => client.send(new ec2.DeleteVpcCommand({ VpcId }), options))
    return undefined
  },
}

const listGateways = async (site: Site): Promise<ec2.InternetGateway[]> => {
  const { InternetGateways = [] } = await reading(site)((client, options) =>
    client.send(new ec2.DescribeInternetGatewaysCommand(ourOwn(site)), options),
  )
  return [...InternetGateways].sort((a, b) => (b.Attachments?.length ?? 0) - (a.Attachments?.length ?? 0))
}

export const gateways: Driver<GatewayPiece> = {
  read: async (_, site) =>
    found(
      await listGateways(site),
      ({ InternetGatewayId }) => InternetGatewayId!,
      ({ Attachments }) =>
        Attachments?.[0]?.VpcId === site.ids.get('vpc') ? [] : ['is not attached to the network'],
    ),
  async make({ name }, site) {
    const wish = marked(site, 'internet-gateway', name)
    const { InternetGateway } = await making(site)((client, options) =>
      client.send(new ec2.CreateInternetGatewayCommand(wish), options),
    )
    return InternetGateway!.InternetGatewayId!
  },
  async mend(_, InternetGatewayId, site) {
    const VpcId = site.ids.get('vpc')!
    await settling(site)((client, options) =>
      client.send(new ec2.AttachInternetGatewayCommand({ InternetGatewayId, VpcId }), options),
    ).catch((error: unknown) => {
      if (!(error instanceof AwsError && error.code === 'Resource.AlreadyAssociated')) throw error
    })
  },
  all: async (_, site) => idsOf((await listGateways(site)).map(({ InternetGatewayId }) => InternetGatewayId)),
  async remove(InternetGatewayId, site) {
    const gateway = (await listGateways(site)).find((each) => each.InternetGatewayId === InternetGatewayId)
    for (const { VpcId } of gateway?.Attachments ?? [])
      await dropping(site, (client, options) =>
        client.send(new ec2.DetachInternetGatewayCommand({ InternetGatewayId, VpcId }), options),
      )
    await dropping(site, (client, options) =>
      client.send(new ec2.DeleteInternetGatewayCommand({ InternetGatewayId }), options),
    )
    return undefined
  },
}

const listTables = async (site: Site): Promise<ec2.RouteTable[]> => {
  const { RouteTables = [] } = await reading(site)((client, options) =>
    client.send(new ec2.DescribeRouteTablesCommand(ourOwn(site)), options),
  )
  return [...RouteTables].sort((a, b) => (b.Associations?.length ?? 0) - (a.Associations?.length ?? 0))
}

export const routes: Driver<RoutesPiece> = {
  read: async (_, site) =>
    found(
      await listTables(site),
      ({ RouteTableId }) => RouteTableId!,
      ({ Routes = [] }) => {
        const out = Routes.find(({ DestinationCidrBlock }) => DestinationCidrBlock === EVERYWHERE)
        return out?.GatewayId === site.ids.get('gateway') && out?.State !== 'blackhole'
          ? []
          : ['does not lead to the internet gateway']
      },
    ),
  async make({ name }, site) {
    const wish = { VpcId: site.ids.get('vpc')!, ...marked(site, 'route-table', name) }
    const { RouteTable } = await making(site)((client, options) =>
      client.send(new ec2.CreateRouteTableCommand(wish), options),
    )
    return RouteTable!.RouteTableId!
  },
  async mend(_, RouteTableId, site) {
    const wish = { RouteTableId, DestinationCidrBlock: EVERYWHERE, GatewayId: site.ids.get('gateway')! }
    await settling(site)((client, options) => client.send(new ec2.CreateRouteCommand(wish), options))
  },
  all: async (_, site) => idsOf((await listTables(site)).map(({ RouteTableId }) => RouteTableId)),
  async remove(RouteTableId, site) {
    await dropping(site, (client, options) =>
      client.send(new ec2.DeleteRouteTableCommand({ RouteTableId }), options),
    )
    return undefined
  },
}

const listSubnets = async (site: Site): Promise<ec2.Subnet[]> => {
  const { Subnets = [] } = await reading(site)((client, options) =>
    client.send(new ec2.DescribeSubnetsCommand(ourOwn(site)), options),
  )
  return Subnets
}

export const subnets: Driver<SubnetPiece> = {
  async read({ cidr }, site) {
    const all = (await listSubnets(site)).filter(({ CidrBlock }) => CidrBlock === cidr)
    const tables = all.length === 0 ? [] : await listTables(site)
    const served = tables.flatMap(({ Associations = [] }) => Associations.map(({ SubnetId }) => SubnetId))
    return found(
      all,
      ({ SubnetId }) => SubnetId!,
      ({ SubnetId, MapPublicIpOnLaunch }) => [
        ...(MapPublicIpOnLaunch === true ? [] : ['gives its machines no public address']),
        ...(served.includes(SubnetId) ? [] : ['does not follow the route table']),
      ],
    )
  },
  async make({ zone, cidr, name }, site) {
    const place = { VpcId: site.ids.get('vpc')!, CidrBlock: cidr, AvailabilityZone: zone }
    const wish = { ...place, ...marked(site, 'subnet', name) }
    const { Subnet } = await making(site)((client, options) =>
      client.send(new ec2.CreateSubnetCommand(wish), options),
    )
    return Subnet!.SubnetId!
  },
  async mend(_, SubnetId, site) {
    const wish = { SubnetId, MapPublicIpOnLaunch: { Value: true } }
    await settling(site)((client, options) =>
      client.send(new ec2.ModifySubnetAttributeCommand(wish), options),
    )
    const RouteTableId = site.ids.get('routes')!
    await settling(site)((client, options) =>
      client.send(new ec2.AssociateRouteTableCommand({ RouteTableId, SubnetId }), options),
    ).catch((error: unknown) => {
      if (!(error instanceof AwsError && error.code === 'Resource.AlreadyAssociated')) throw error
    })
  },
  all: async (_, site) => idsOf((await listSubnets(site)).map(({ SubnetId }) => SubnetId)),
  async remove(SubnetId, site) {
    await dropping(site, (client, options) => client.send(new ec2.DeleteSubnetCommand({ SubnetId }), options))
    return undefined
  },
}
