import * as sdk from '@aws-sdk/client-ec2'
import * as iam from '@aws-sdk/client-iam'
import {
  ListRequestedServiceQuotaChangeHistoryCommand,
  RequestServiceQuotaIncreaseCommand,
} from '@aws-sdk/client-service-quotas'
import { DescribeInstanceInformationCommand } from '@aws-sdk/client-ssm'
import { afterEach, describe, expect, it } from '@jest/globals'
import { deleteNetwork, makeNetwork } from './networks'
import { clientsOf, refusal, stopClouds, testCloud, type TestCloud } from './support'

afterEach(stopClouds)

const BARE = { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], hasDefaultVpc: false } }
const IMAGE = { ImageId: 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64' }
const UP_MS = 10_000

async function launched(
  { clients }: TestCloud,
  wish: Partial<sdk.RunInstancesCommandInput>,
): Promise<string> {
  const { Instances } = await clients.ec2.send(
    new sdk.RunInstancesCommand({ ...IMAGE, MinCount: 1, MaxCount: 1, InstanceType: 'm5.large', ...wish }),
  )
  return Instances![0]!.InstanceId!
}

async function asRole(test: TestCloud, trust = 'ec2.amazonaws.com'): Promise<void> {
  const RoleName = 'machine'
  const { clients } = test
  const document = (statement: object) => JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
  const AssumeRolePolicyDocument = document({
    ...{ Effect: 'Allow', Principal: { Service: trust }, Action: 'sts:AssumeRole' },
  })
  await clients.iam.send(new iam.CreateRoleCommand({ RoleName, AssumeRolePolicyDocument }))
  const PolicyDocument = document({ Effect: 'Allow', Action: ['ssm:*', 'ssmmessages:*'], Resource: '*' })
  await clients.iam.send(new iam.PutRolePolicyCommand({ RoleName, PolicyName: 'agent', PolicyDocument }))
  await clients.iam.send(new iam.CreateInstanceProfileCommand({ InstanceProfileName: RoleName }))
  await clients.iam.send(new iam.AddRoleToInstanceProfileCommand({ InstanceProfileName: RoleName, RoleName }))
}

describe('a network that somebody makes', () => {
  it('lets machines out by its gateway, and not without a route, an address or an open group', async () => {
    const test = await testCloud({ regions: BARE, roles: {} })
    const { ec2 } = test.clients
    await asRole(test)
    const { subnet: SubnetId, group, vpc } = await makeNetwork(ec2)
    const wish = { SubnetId, SecurityGroupIds: [group], IamInstanceProfile: { Name: 'machine' } }
    const well = await launched(test, wish)
    await launched(test, {
      IamInstanceProfile: { Name: 'machine' },
      NetworkInterfaces: [{ DeviceIndex: 0, SubnetId, Groups: [group], AssociatePublicIpAddress: false }],
    })
    const { GroupId } = await ec2.send(
      new sdk.CreateSecurityGroupCommand({ VpcId: vpc, GroupName: 'shut', Description: 'nothing at all' }),
    )
    const IpPermissions = [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] }]
    await ec2.send(new sdk.RevokeSecurityGroupEgressCommand({ GroupId, IpPermissions }))
    await launched(test, { ...wish, SecurityGroupIds: [GroupId!] })
    const { Subnet } = await ec2.send(
      new sdk.CreateSubnetCommand({ VpcId: vpc, CidrBlock: '10.7.16.0/20', AvailabilityZone: 'us-east-1b' }),
    )
    await launched(test, {
      IamInstanceProfile: { Name: 'machine' },
      NetworkInterfaces: [
        { DeviceIndex: 0, SubnetId: Subnet!.SubnetId!, Groups: [group], AssociatePublicIpAddress: true },
      ],
    })
    await test.clock.advance(UP_MS)
    const { InstanceInformationList } = await test.clients.ssm.send(
      new DescribeInstanceInformationCommand({}),
    )
    expect(InstanceInformationList!.map(({ InstanceId }) => InstanceId)).toEqual([well])
  })

  it('goes in order only, and all of it', async () => {
    const test = await testCloud({ regions: BARE, roles: {} })
    const { ec2 } = test.clients
    const before = test.cloud.account()
    const made = await makeNetwork(ec2)
    const id = await launched(test, { SubnetId: made.subnet, SecurityGroupIds: [made.group] })
    const { vpc: VpcId, gateway: InternetGatewayId } = made
    const early: [string, Promise<unknown>][] = [
      ['vpc', ec2.send(new sdk.DeleteVpcCommand({ VpcId }))],
      ['subnet', ec2.send(new sdk.DeleteSubnetCommand({ SubnetId: made.subnet }))],
      ['group', ec2.send(new sdk.DeleteSecurityGroupCommand({ GroupId: made.group }))],
      ['table', ec2.send(new sdk.DeleteRouteTableCommand({ RouteTableId: made.table }))],
      ['gateway', ec2.send(new sdk.DeleteInternetGatewayCommand({ InternetGatewayId }))],
      ['attachment', ec2.send(new sdk.DetachInternetGatewayCommand({ InternetGatewayId, VpcId }))],
    ]
    for (const [what, call] of early)
      expect([what, (await refusal(call)).code]).toEqual([what, 'DependencyViolation'])
    await ec2.send(new sdk.TerminateInstancesCommand({ InstanceIds: [id] }))
    await test.clock.advance(UP_MS)
    await deleteNetwork(ec2, made)
    expect(test.cloud.account().regions['us-east-1']).toMatchObject({ vpcs: [], groups: [], routeTables: [] })
    expect(test.cloud.account().roles).toEqual(before.roles)
  })

  it('is not seen at once, and refuses what contradicts itself', async () => {
    const test = await testCloud({ regions: BARE, durations: { objectHidden: '2s' } })
    const { ec2 } = test.clients
    const { Vpc } = await ec2.send(new sdk.CreateVpcCommand({ CidrBlock: '10.7.0.0/16' }))
    const VpcId = Vpc!.VpcId!
    const subnet = (CidrBlock: string) => ec2.send(new sdk.CreateSubnetCommand({ VpcId, CidrBlock }))
    expect((await ec2.send(new sdk.DescribeVpcsCommand({}))).Vpcs).toEqual([])
    expect((await refusal(subnet('10.7.0.0/20'))).code).toBe('InvalidVpcID.NotFound')
    await test.clock.advance(2_000)
    await subnet('10.7.0.0/20')
    expect((await refusal(subnet('10.7.8.0/24'))).code).toBe('InvalidSubnet.Conflict')
    expect((await refusal(subnet('10.8.0.0/20'))).code).toBe('InvalidSubnet.Range')
    expect((await refusal(launched(test, {}))).code).toBe('VPCIdNotSpecified')
  })
})

describe('spot in an account that never had any', () => {
  it('needs a role of its own, or somebody who may make it', async () => {
    const allowing = (...Action: string[]) => ({
      ...{ accessKeyId: 'worker', secretAccessKey: 'secret', managed: [] },
      policies: { p: { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] } },
    })
    const test = await testCloud({ linkedRoles: [], users: { worker: allowing('ec2:*') } })
    const { ec2 } = clientsOf(test.cloud.endpoint, { accessKeyId: 'worker', secretAccessKey: 'secret' })
    const spot = (by: sdk.EC2Client) =>
      by.send(
        new sdk.RunInstancesCommand({
          ...{ ...IMAGE, MinCount: 1, MaxCount: 1, InstanceType: 'm5.large' },
          InstanceMarketOptions: { MarketType: 'spot' },
        }),
      )
    expect((await refusal(spot(ec2))).code).toBe('AuthFailure.ServiceLinkedRoleCreationNotPermitted')
    await spot(test.clients.ec2)
    await spot(ec2)
    expect(test.cloud.account().roles.map(({ name }) => name)).toContain('AWSServiceRoleForEC2Spot')
  })
})

describe('a role', () => {
  it('goes once nothing holds it, and what it may do changes for those who have it already', async () => {
    const test = await testCloud({ roles: {} })
    const { iam: client } = test.clients
    await asRole(test)
    const RoleName = 'machine'
    const deleted = () => client.send(new iam.DeleteRoleCommand({ RoleName }))
    expect((await refusal(deleted())).code).toBe('DeleteConflictException')
    await client.send(
      new iam.RemoveRoleFromInstanceProfileCommand({ InstanceProfileName: RoleName, RoleName }),
    )
    expect((await refusal(deleted())).code).toBe('DeleteConflictException')
    await client.send(new iam.DeleteRolePolicyCommand({ RoleName, PolicyName: 'agent' }))
    await deleted()
    await client.send(new iam.DeleteInstanceProfileCommand({ InstanceProfileName: RoleName }))
    expect(test.cloud.account()).toMatchObject({
      profiles: [],
      roles: [{ name: 'AWSServiceRoleForEC2Spot' }],
    })
  })
})

describe('a request for a higher quota', () => {
  it.each([true, false])('is decided after a while: %s', async (isGranted) => {
    const test = await testCloud({
      quotas: { 'L-DB2E81BA': 0 },
      quotaDecision: { after: '1m', isGranted },
    })
    const { quotas } = test.clients
    const wish = { ServiceCode: 'ec2', QuotaCode: 'L-DB2E81BA', DesiredValue: 8 }
    const gpu = () => launched(test, { InstanceType: 'g5.xlarge' })
    await quotas.send(new RequestServiceQuotaIncreaseCommand(wish))
    expect((await refusal(quotas.send(new RequestServiceQuotaIncreaseCommand(wish)))).code).toBe(
      'ResourceAlreadyExistsException',
    )
    expect((await refusal(gpu())).code).toBe('VcpuLimitExceeded')
    await test.clock.advance(60_000)
    const { RequestedQuotas } = await quotas.send(
      new ListRequestedServiceQuotaChangeHistoryCommand({ ServiceCode: 'ec2' }),
    )
    expect(RequestedQuotas!.map(({ Status }) => Status)).toEqual([isGranted ? 'APPROVED' : 'DENIED'])
    if (isGranted) await gpu()
    else expect((await refusal(gpu())).code).toBe('VcpuLimitExceeded')
  })
})
