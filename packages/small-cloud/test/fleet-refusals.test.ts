/** How an instant fleet fails: the call answers 200, and the cause stands in `Errors`, pool by pool, as EC2 says it. */
import {
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  DescribeSubnetsCommand,
  type CreateFleetCommandInput,
  type RequestLaunchTemplateData,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import { clientsOf, IMAGE, stopClouds, testCloud } from './support'

afterEach(stopClouds)

const PROFILE = { IamInstanceProfile: { Name: 'crucible-machine' } }
const SPOT = { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'spot' } as const
const ON_DEMAND = { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'on-demand' } as const

interface Wanted {
  world?: WorldText
  template?: RequestLaunchTemplateData
  target?: CreateFleetCommandInput['TargetCapacitySpecification']
  accessKeyId?: string
}

/** One fleet of two types in one zone; answers with its errors. */
async function errorsOf({ world = {}, template = PROFILE, target = ON_DEMAND, accessKeyId }: Wanted) {
  const { clients, cloud } = await testCloud(world)
  await clients.ec2.send(
    new CreateLaunchTemplateCommand({
      LaunchTemplateName: 'job',
      LaunchTemplateData: { ImageId: IMAGE, ...template },
    }),
  )
  const { Subnets } = await clients.ec2.send(new DescribeSubnetsCommand({}))
  const subnet = Subnets!.find(({ AvailabilityZone }) => AvailabilityZone === 'us-east-1a')!.SubnetId!
  const { ec2 } =
    accessKeyId === undefined ? clients : clientsOf(cloud.endpoint, { accessKeyId, secretAccessKey: 's' })
  const send = (SubnetId: string) =>
    ec2.send(
      new CreateFleetCommand({
        Type: 'instant',
        LaunchTemplateConfigs: [
          {
            LaunchTemplateSpecification: { LaunchTemplateName: 'job', Version: '1' },
            Overrides: (['g5.xlarge', 'g6.xlarge'] as const).map((InstanceType) => ({
              InstanceType,
              SubnetId,
            })),
          },
        ],
        TargetCapacitySpecification: target,
      }),
    )
  const { Errors = [], Instances = [] } = await send(subnet)
  expect(cloud.instances()).toHaveLength(Instances.length)
  const told = Errors.map(({ ErrorCode, ErrorMessage, Lifecycle, LaunchTemplateAndOverrides: words }) => ({
    code: ErrorCode,
    message: ErrorMessage,
    lifecycle: Lifecycle,
    type: words?.Overrides?.InstanceType,
    subnet: words?.Overrides?.SubnetId,
  }))
  return { told, subnet, send }
}

const user = (...deny: object[]): WorldText => ({
  users: {
    ann: {
      accessKeyId: 'ann',
      secretAccessKey: 's',
      managed: ['AdministratorAccess'],
      policies: { no: { Statement: deny.map((each) => ({ Effect: 'Deny', Resource: '*', ...each })) } },
    },
  },
})

const UNFULFILLABLE = {
  code: 'UnfulfillableCapacity',
  message:
    'Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.',
}

describe('an instant fleet that cannot launch', () => {
  it('reports for each pool that the profile is invalid, and also that capacity is unfulfillable', async () => {
    const { told, subnet } = await errorsOf({ template: { IamInstanceProfile: { Name: 'missing' } } })
    const problem = {
      code: 'InvalidParameterValue',
      message:
        'Value (missing) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name (missing)',
      lifecycle: 'on-demand',
      subnet,
    }
    expect(told).toEqual([
      { ...problem, type: 'g5.xlarge' },
      { ...problem, type: 'g6.xlarge' },
      { ...UNFULFILLABLE, lifecycle: 'on-demand', type: 'g6.xlarge', subnet },
    ])
  })

  it.each<[string, object, RegExp]>([
    ['iam:PassRole', { Action: 'iam:PassRole' }, /not authorized to perform: iam:PassRole on resource/],
    [
      'ec2:RunInstances',
      { Action: 'ec2:RunInstances' },
      /perform: ec2:RunInstances on resource: \S+ with an explicit deny in a service control policy/,
    ],
  ])('says so of a caller without %s', async (_, denied, words) => {
    const { told } = await errorsOf({ world: user(denied), accessKeyId: 'ann' })
    expect(told.map(({ code }) => code)).toEqual([
      'UnauthorizedOperation',
      'UnauthorizedOperation',
      'UnfulfillableCapacity',
    ])
    expect(told[0]!.message).toMatch(words)
  })

  it('launches of the types that a policy leaves', async () => {
    const denied = {
      Action: 'ec2:RunInstances',
      Condition: { StringLike: { 'ec2:InstanceType': 'g5.*' } },
    }
    const { told } = await errorsOf({ world: user(denied), accessKeyId: 'ann' })
    expect(told).toMatchObject([{ code: 'UnauthorizedOperation', type: 'g5.xlarge' }])
  })

  it('says of each pool that the role of spot machines is missing', async () => {
    const { told } = await errorsOf({
      world: { linkedRoles: [], ...user({ Action: 'iam:CreateServiceLinkedRole' }) },
      target: SPOT,
      accessKeyId: 'ann',
    })
    expect(told).toMatchObject([
      { code: 'AuthFailure.ServiceLinkedRoleCreationNotPermitted', type: 'g5.xlarge', lifecycle: 'spot' },
      { code: 'AuthFailure.ServiceLinkedRoleCreationNotPermitted', type: 'g6.xlarge' },
      UNFULFILLABLE,
    ])
  })

  it.each<[string, RequestLaunchTemplateData]>([
    ['InvalidGroup.NotFound', { SecurityGroupIds: ['sg-00000000000000000'] }],
    ['InvalidAMIID.NotFound', { ImageId: 'ami-00000000000000000' }],
  ])('says %s in its answer, not instead of it', async (code, template) => {
    const { told, send } = await errorsOf({ template: { ...PROFILE, ...template } })
    expect(told.map((each) => each.code)).toEqual([code, code, 'UnfulfillableCapacity'])
    expect((await send('subnet-00000000000000000')).Errors).not.toEqual([])
  })

  it('calls the configuration invalid of a type that a zone does not have', async () => {
    const { told } = await errorsOf({
      world: { offered: { 'g5.xlarge': ['us-east-1b'], 'g6.xlarge': ['us-east-1b'] } },
    })
    expect(told.map(({ code }) => code)).toEqual(['InvalidFleetConfiguration', 'InvalidFleetConfiguration'])
    expect(told.find(({ type }) => type === 'g5.xlarge')!.message).toBe(
      'Your requested instance type (g5.xlarge) is not supported in your requested Availability Zone (us-east-1a).',
    )
  })

  it('refuses tags for the spot requests that it does not make', async () => {
    const template: RequestLaunchTemplateData = {
      ...PROFILE,
      TagSpecifications: [{ ResourceType: 'spot-instances-request', Tags: [{ Key: 'a', Value: 'b' }] }],
    }
    const { told } = await errorsOf({ template })
    expect(told[0]).toMatchObject({
      code: 'InvalidParameterValue',
      message:
        'You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.',
    })
    expect((await errorsOf({ template, target: SPOT })).told).toEqual([])
  })

  it('says what the world tells a pool to say', async () => {
    const { told } = await errorsOf({
      world: { faults: [{ fault: 'fleet-error', code: 'RequestLimitExceeded' }] },
    })
    expect(told.map(({ code }) => code)).toEqual(['RequestLimitExceeded', 'RequestLimitExceeded'])
  })
})
