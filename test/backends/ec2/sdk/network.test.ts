import { describe, expect, it } from '@jest/globals'
import { EC2Client, type IpPermission, type Route } from '@aws-sdk/client-ec2'
import { createNetworkApi } from '../../../../backends/ec2/sdk/network'
import type { NetworkApi, Subnet } from '../../../../backends/ec2/sdk/api'

const { signal } = new AbortController()
const SUBNET: Subnet = { id: 'subnet-1', zone: 'a', vpc: 'vpc-1', freeAddresses: 9, givesPublicAddress: true }

/** EC2 with one answer to everything. */
function answering(answer: object): NetworkApi {
  const client = new EC2Client({ region: 'us-east-1' })
  return createNetworkApi(Object.assign(client, { send: async () => answer }))
}

describe('the default route of a subnet', () => {
  const all = { DestinationCidrBlock: '0.0.0.0/0', State: 'active' } satisfies Route
  const main = { Associations: [{ Main: true }], Routes: [{ ...all, GatewayId: 'igw-main' }] }
  const ofOther = { Associations: [{ SubnetId: 'subnet-2' }], Routes: [{ ...all, GatewayId: 'igw-other' }] }

  it.each<[string, Route[] | undefined, string | undefined]>([
    ['is that of the main table without a table of its own', undefined, 'igw-main'],
    ['is that of its own table', [{ ...all, NatGatewayId: 'nat-1' }], 'nat-1'],
    ['may lead to a transit gateway', [{ ...all, TransitGatewayId: 'tgw-1' }], 'tgw-1'],
    ['may lead to an interface', [{ ...all, NetworkInterfaceId: 'eni-1' }], 'eni-1'],
    ['is missing without a route in its own table', [], undefined],
    [
      'is missing after its target was deleted',
      [{ ...all, State: 'blackhole', GatewayId: 'igw-1' }],
      undefined,
    ],
    [
      'is missing with a route to a part of the network only',
      [{ ...all, DestinationCidrBlock: '10.0.0.0/8' }],
      undefined,
    ],
  ])('%s', async (_, own, route) => {
    const table = own && { Associations: [{ SubnetId: SUBNET.id }], Routes: own }
    const RouteTables = [ofOther, main, ...(table === undefined ? [] : [table])]
    expect(await answering({ RouteTables }).defaultRoute(SUBNET, signal)).toBe(route)
  })
})

describe('a security group', () => {
  it.each<[IpPermission, boolean]>([
    [{ IpProtocol: '-1' }, true],
    [{ IpProtocol: 'tcp', FromPort: 443, ToPort: 443 }, true],
    [{ IpProtocol: 'tcp', FromPort: 0, ToPort: 442 }, false],
    [{ IpProtocol: 'tcp', FromPort: 444, ToPort: 65_535 }, false],
    [{ IpProtocol: 'tcp', FromPort: 0, ToPort: 65_535 }, true],
    [{ IpProtocol: 'udp', FromPort: 0, ToPort: 65_535 }, false],
  ])('with the outbound rule %j lets HTTPS out: %s', async (rule, letsOut) => {
    const SecurityGroups = [{ GroupId: 'sg-1', IpPermissionsEgress: [rule] }]
    const groups = await answering({ SecurityGroups }).securityGroups({ ids: ['sg-1'] }, signal)
    expect(groups).toMatchObject([{ id: 'sg-1', letsOut }])
  })
})
