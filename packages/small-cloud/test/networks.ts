/** A network of one subnet, made and deleted step by step over the wire. */
import * as sdk from '@aws-sdk/client-ec2'

export interface MadeNetwork {
  vpc: string
  subnet: string
  gateway: string
  table: string
  endpoint: string
  group: string
}

const CIDRS = { vpc: '10.7.0.0/16', subnet: '10.7.0.0/20' }

export async function makeNetwork(ec2: sdk.EC2Client, zone = 'us-east-1a'): Promise<MadeNetwork> {
  const tags = (kind: sdk.ResourceType) => ({
    TagSpecifications: [{ ResourceType: kind, Tags: [{ Key: 'of', Value: 'test' }] }],
  })
  const { Vpc } = await ec2.send(new sdk.CreateVpcCommand({ CidrBlock: CIDRS.vpc, ...tags('vpc') }))
  const VpcId = Vpc!.VpcId!
  const { Subnet } = await ec2.send(
    new sdk.CreateSubnetCommand({
      ...{ VpcId, CidrBlock: CIDRS.subnet, AvailabilityZone: zone },
      ...tags('subnet'),
    }),
  )
  const SubnetId = Subnet!.SubnetId!
  await ec2.send(new sdk.ModifySubnetAttributeCommand({ SubnetId, MapPublicIpOnLaunch: { Value: true } }))
  const { InternetGateway } = await ec2.send(new sdk.CreateInternetGatewayCommand(tags('internet-gateway')))
  const InternetGatewayId = InternetGateway!.InternetGatewayId!
  await ec2.send(new sdk.AttachInternetGatewayCommand({ InternetGatewayId, VpcId }))
  const { RouteTable } = await ec2.send(new sdk.CreateRouteTableCommand({ VpcId, ...tags('route-table') }))
  const RouteTableId = RouteTable!.RouteTableId!
  await ec2.send(
    new sdk.CreateRouteCommand({
      ...{ RouteTableId, DestinationCidrBlock: '0.0.0.0/0', GatewayId: InternetGatewayId },
    }),
  )
  await ec2.send(new sdk.AssociateRouteTableCommand({ RouteTableId, SubnetId }))
  const { VpcEndpoint } = await ec2.send(
    new sdk.CreateVpcEndpointCommand({
      ...{ VpcId, ServiceName: 'com.amazonaws.us-east-1.s3', RouteTableIds: [RouteTableId] },
      ...tags('vpc-endpoint'),
    }),
  )
  const { GroupId } = await ec2.send(
    new sdk.CreateSecurityGroupCommand({
      ...{ VpcId, GroupName: 'machines', Description: 'nothing comes in' },
      ...tags('security-group'),
    }),
  )
  return {
    vpc: VpcId,
    subnet: SubnetId,
    gateway: InternetGatewayId,
    table: RouteTableId,
    endpoint: VpcEndpoint!.VpcEndpointId!,
    group: GroupId!,
  }
}

export async function deleteNetwork(ec2: sdk.EC2Client, made: MadeNetwork): Promise<void> {
  const { vpc: VpcId, gateway: InternetGatewayId } = made
  await ec2.send(new sdk.DeleteVpcEndpointsCommand({ VpcEndpointIds: [made.endpoint] }))
  await ec2.send(new sdk.DeleteSubnetCommand({ SubnetId: made.subnet }))
  await ec2.send(new sdk.DeleteRouteTableCommand({ RouteTableId: made.table }))
  await ec2.send(new sdk.DetachInternetGatewayCommand({ InternetGatewayId, VpcId }))
  await ec2.send(new sdk.DeleteInternetGatewayCommand({ InternetGatewayId }))
  await ec2.send(new sdk.DeleteSecurityGroupCommand({ GroupId: made.group }))
  await ec2.send(new sdk.DeleteVpcCommand({ VpcId }))
}
