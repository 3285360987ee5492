import * as ec2 from '@aws-sdk/client-ec2'
import { ours, type Driver, type Site } from './driver'
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
import type { EndpointPiece, GroupPiece } from './pieces'

const listEndpoints = async (site: Site): Promise<ec2.VpcEndpoint[]> => {
  const { VpcEndpoints = [] } = await reading(site)((client, options) =>
    client.send(new ec2.DescribeVpcEndpointsCommand(ourOwn(site)), options),
  )
  return VpcEndpoints.filter(({ State }) => !/^delet/i.test(State ?? ''))
}

export const endpoints: Driver<EndpointPiece> = {
  read: async (_, site) => found(await listEndpoints(site), ({ VpcEndpointId }) => VpcEndpointId!),
  async make({ service, name }, site) {
    const place = { VpcId: site.ids.get('vpc')!, RouteTableIds: [site.ids.get('routes')!] }
    const wish = { ...place, ServiceName: service, ...marked(site, 'vpc-endpoint', name) }
    const { VpcEndpoint } = await making(site)((client, options) =>
      client.send(new ec2.CreateVpcEndpointCommand(wish), options),
    )
    return VpcEndpoint!.VpcEndpointId!
  },
  mend: async () => {},
  all: async (_, site) => idsOf((await listEndpoints(site)).map(({ VpcEndpointId }) => VpcEndpointId)),
  async remove(id, site) {
    await dropping(site, (client, options) =>
      client.send(new ec2.DeleteVpcEndpointsCommand({ VpcEndpointIds: [id] }), options),
    )
    return undefined
  },
}

const listGroups = async (site: Site, Filters = ourOwn(site).Filters): Promise<ec2.SecurityGroup[]> => {
  const { SecurityGroups = [] } = await reading(site)((client, options) =>
    client.send(new ec2.DescribeSecurityGroupsCommand({ Filters }), options),
  )
  return SecurityGroups
}

const vpcFor = ({ vpcId }: GroupPiece, site: Site): string => vpcId ?? site.ids.get('vpc') ?? ''
const letsAllOut = ({ IpPermissionsEgress = [] }: ec2.SecurityGroup): boolean =>
  IpPermissionsEgress.some(
    ({ IpProtocol, IpRanges = [] }) =>
      IpProtocol === '-1' && IpRanges.some(({ CidrIp }) => CidrIp === EVERYWHERE),
  )
const OUT: ec2.IpPermission[] = [{ IpProtocol: '-1', IpRanges: [{ CidrIp: EVERYWHERE }] }]

export const groups: Driver<GroupPiece> = {
  async read(piece, site) {
    const VpcId = vpcFor(piece, site)
    const own = (await listGroups(site)).filter((group) => group.VpcId === VpcId)
    const there = found(
      own,
      ({ GroupId }) => GroupId!,
      (group) => [
        ...(group.IpPermissions?.length ? ['lets something in'] : []),
        ...(letsAllOut(group) ? [] : ['does not let all out']),
      ],
    )
    if (there !== undefined || VpcId === '') return there
    const named = [
      { Name: 'group-name', Values: [piece.name] },
      { Name: 'vpc-id', Values: [VpcId] },
    ]
    const [stranger] = await listGroups(site, named)
    if (stranger === undefined) return undefined
    const remark = 'is there already, and was not made by this set-up: choose another --prefix'
    return { ...ours(stranger.GroupId!, [remark]), owner: 'taken' }
  },
  async make(piece, site) {
    const { name, description } = piece
    const place = { VpcId: vpcFor(piece, site), GroupName: name, Description: description }
    const wish = { ...place, ...marked(site, 'security-group', name) }
    const { GroupId } = await making(site)((client, options) =>
      client.send(new ec2.CreateSecurityGroupCommand(wish), options),
    )
    return GroupId!
  },
  async mend(_, GroupId, site) {
    const group = await settling(site)(async (client, options) => {
      const { SecurityGroups } = await client.send(
        new ec2.DescribeSecurityGroupsCommand({ GroupIds: [GroupId] }),
        options,
      )
      return SecurityGroups![0]!
    })
    const { IpPermissions = [] } = group
    if (IpPermissions.length > 0)
      await settling(site)((client, options) =>
        client.send(new ec2.RevokeSecurityGroupIngressCommand({ GroupId, IpPermissions }), options),
      )
    if (!letsAllOut(group))
      await settling(site)((client, options) =>
        client.send(new ec2.AuthorizeSecurityGroupEgressCommand({ GroupId, IpPermissions: OUT }), options),
      )
  },
  all: async (_, site) =>
    (await listGroups(site)).map(({ GroupId = '', GroupName = '' }) => ({ id: GroupId, name: GroupName })),
  async remove(GroupId, site) {
    await dropping(site, (client, options) =>
      client.send(new ec2.DeleteSecurityGroupCommand({ GroupId }), options),
    )
    return undefined
  },
}
