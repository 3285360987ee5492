import {
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  CreateLaunchTemplateVersionCommand,
  DeleteLaunchTemplateCommand,
  DescribeFleetsCommand,
  DescribeInstancesCommand,
  DescribeLaunchTemplatesCommand,
  DescribeLaunchTemplateVersionsCommand,
  DescribeSpotInstanceRequestsCommand,
  DescribeSubnetsCommand,
  CancelSpotInstanceRequestsCommand,
  type CreateFleetCommandInput,
  type FleetLaunchTemplateOverridesRequest,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import { IMAGE, refusal, stopClouds, testCloud, UP_MS, type TestCloud } from './support'

afterEach(stopClouds)

interface FleetCloud extends TestCloud {
  subnets: Record<string, string>
  fleet: (
    overrides: FleetLaunchTemplateOverridesRequest[],
    more?: Partial<CreateFleetCommandInput>,
  ) => Promise<{
    ids: string[]
    pools: (string | undefined)[]
    errors: string[]
  }>
}

const TAGS = [{ Key: 'job', Value: 'j1' }]

async function fleetCloud(world: WorldText = {}): Promise<FleetCloud> {
  const test = await testCloud(world)
  const { ec2 } = test.clients
  const { Subnets } = await ec2.send(new DescribeSubnetsCommand({}))
  await ec2.send(
    new CreateLaunchTemplateCommand({
      LaunchTemplateName: 'job',
      LaunchTemplateData: {
        ImageId: IMAGE,
        IamInstanceProfile: { Name: 'crucible-machine' },
        InstanceInitiatedShutdownBehavior: 'terminate',
      },
    }),
  )
  return {
    ...test,
    subnets: Object.fromEntries(
      Subnets!.map(({ AvailabilityZone, SubnetId }) => [AvailabilityZone!.at(-1)!, SubnetId!]),
    ),
    async fleet(overrides, more = {}) {
      const answer = await ec2.send(
        new CreateFleetCommand({
          Type: 'instant',
          LaunchTemplateConfigs: [
            {
              LaunchTemplateSpecification: { LaunchTemplateName: 'job', Version: '1' },
              Overrides: overrides,
            },
          ],
          TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'spot' },
          SpotOptions: { AllocationStrategy: 'price-capacity-optimized' },
          TagSpecifications: [{ ResourceType: 'instance', Tags: TAGS }],
          ...more,
        }),
      )
      return {
        ids: (answer.Instances ?? []).flatMap(({ InstanceIds }) => InstanceIds ?? []),
        pools: (answer.Instances ?? []).map(
          ({ InstanceType, LaunchTemplateAndOverrides: words }) =>
            `${InstanceType} ${words?.Overrides?.AvailabilityZone}`,
        ),
        errors: (answer.Errors ?? []).map(
          ({ ErrorCode, LaunchTemplateAndOverrides: words }) =>
            `${ErrorCode} ${words?.Overrides?.InstanceType} ${words?.Overrides?.AvailabilityZone}`,
        ),
      }
    },
  }
}

const PRICES: WorldText['prices'] = [
  { type: 'g5.xlarge', usdPerHour: 0.4 },
  { type: 'g6.xlarge', usdPerHour: 0.3 },
  { type: 'g6.xlarge', zone: 'us-east-1b', usdPerHour: 0.2 },
]

describe('an instant fleet', () => {
  it('takes the cheapest pool that has room, and says of the others why not', async () => {
    const { fleet, subnets, clients } = await fleetCloud({
      prices: PRICES,
      stock: [{ type: 'g6.xlarge', zone: 'us-east-1b', capacity: 'spot', count: 1 }],
    })
    const pools: FleetLaunchTemplateOverridesRequest[] = [
      { InstanceType: 'g5.xlarge', SubnetId: subnets.a! },
      { InstanceType: 'g6.xlarge', SubnetId: subnets.a! },
      { InstanceType: 'g6.xlarge', SubnetId: subnets.b! },
    ]
    const first = await fleet(pools)
    expect(first).toMatchObject({ pools: ['g6.xlarge us-east-1b'], errors: [] })
    // What lists show of it: its instance, by tag.
    const { Reservations } = await clients.ec2.send(
      new DescribeInstancesCommand({ Filters: [{ Name: 'tag:job', Values: ['j1'] }] }),
    )
    const [instance] = Reservations![0]!.Instances!
    expect(instance).toMatchObject({ InstanceId: first.ids[0], InstanceLifecycle: 'spot' })
    expect(instance!.Tags).toContainEqual({
      Key: 'aws:ec2:fleet-id',
      Value: expect.stringMatching(/^fleet-/),
    })
    expect((await fleet(pools)).pools).toEqual(['g6.xlarge us-east-1a'])
    expect(await fleet(pools.slice(2))).toEqual({
      ids: [],
      pools: [],
      errors: ['InsufficientInstanceCapacity g6.xlarge us-east-1b'],
    })
  })

  it('fills what it can, and launches nothing where that is too little', async () => {
    const { fleet, cloud } = await fleetCloud({ stock: [{ type: 'g5.xlarge', count: 2 }] })
    const pool = [{ InstanceType: 'g5.xlarge' as const, AvailabilityZone: 'us-east-1a' }]
    const three = {
      TargetCapacitySpecification: { TotalTargetCapacity: 3, DefaultTargetCapacityType: 'spot' as const },
    }
    const gang = {
      SpotOptions: {
        AllocationStrategy: 'price-capacity-optimized' as const,
        SingleInstanceType: true,
        SingleAvailabilityZone: true,
        MinTargetCapacity: 3,
      },
    }
    expect(await fleet(pool, { ...three, ...gang })).toMatchObject({
      ids: [],
      errors: ['InsufficientInstanceCapacity g5.xlarge us-east-1a'],
    })
    expect(cloud.instances()).toEqual([])
    const partly = await fleet(pool, three)
    expect(partly.ids).toHaveLength(2)
    expect(partly.errors).toEqual(['InsufficientInstanceCapacity g5.xlarge us-east-1a'])
  })

  it('is made partial by the world', async () => {
    const { fleet } = await fleetCloud({ faults: [{ fault: 'partial-fleet', most: 1, times: 1 }] })
    const two = {
      TargetCapacitySpecification: { TotalTargetCapacity: 2, DefaultTargetCapacityType: 'spot' as const },
    }
    const { ids, errors } = await fleet([{ InstanceType: 'g5.xlarge' }], two)
    expect([ids.length, errors.length]).toEqual([1, 1])
  })

  it('is one fleet however often its token comes', async () => {
    const { fleet, cloud } = await fleetCloud()
    const pool: FleetLaunchTemplateOverridesRequest[] = [{ InstanceType: 'g5.xlarge' }]
    const first = await fleet(pool, { ClientToken: 'a1' })
    expect(await fleet(pool, { ClientToken: 'a1' })).toEqual(first)
    expect(cloud.instances()).toHaveLength(1)
    const other = fleet([{ InstanceType: 'g6.xlarge' }], { ClientToken: 'a1' })
    expect((await refusal(other)).code).toBe('IdempotentParameterMismatch')
    expect(
      cloud.journal
        .calls({ action: 'CreateFleet' })
        .map(({ clientToken, outcome }) => [clientToken, outcome]),
    ).toEqual([
      ['a1', 'ok'],
      ['a1', 'ok'],
      ['a1', 'IdempotentParameterMismatch'],
    ])
  })

  it('on demand goes by price or by priority', async () => {
    const { fleet } = await fleetCloud()
    const onDemand = {
      TargetCapacitySpecification: {
        TotalTargetCapacity: 1,
        DefaultTargetCapacityType: 'on-demand' as const,
      },
    }
    const pools: FleetLaunchTemplateOverridesRequest[] = [
      { InstanceType: 'g5.xlarge', AvailabilityZone: 'us-east-1a', Priority: 0 },
      { InstanceType: 'g4dn.xlarge', AvailabilityZone: 'us-east-1a', Priority: 1 },
    ]
    expect((await fleet(pools, onDemand)).pools).toEqual(['g4dn.xlarge us-east-1a'])
    const byPriority = await fleet(pools, {
      ...onDemand,
      OnDemandOptions: { AllocationStrategy: 'prioritized' },
    })
    expect(byPriority.pools).toEqual(['g5.xlarge us-east-1a'])
  })

  it('is shown to those only who name it', async () => {
    const { fleet, clients } = await fleetCloud()
    await fleet([{ InstanceType: 'g5.xlarge' }])
    expect((await clients.ec2.send(new DescribeFleetsCommand({}))).Fleets).toEqual([])
    const gone = clients.ec2.send(
      new DescribeFleetsCommand({ FleetIds: ['fleet-00000000-0000-4000-8000-000000000000'] }),
    )
    expect((await refusal(gone)).code).toBe('InvalidFleetId.NotFound')
  })

  it.each<[string, Partial<CreateFleetCommandInput>]>([
    ['InvalidParameterValue', { Type: 'maintain' }],
    ['UnknownParameter', { ExcessCapacityTerminationPolicy: 'termination' }],
    ['InvalidParameterCombination', { TargetCapacitySpecification: { TotalTargetCapacity: 1 } }],
  ])('is refused with %s', async (code, more) => {
    const { fleet, cloud } = await fleetCloud()
    expect((await refusal(fleet([{ InstanceType: 'g5.xlarge' }], more))).code).toBe(code)
    expect(cloud.instances()).toEqual([])
  })
})

describe('spot requests', () => {
  it('follow their machines, and may be cancelled without them', async () => {
    const { fleet, clients, clock, cloud } = await fleetCloud()
    const { ids } = await fleet([{ InstanceType: 'g5.xlarge' }])
    const status = async () => {
      const { SpotInstanceRequests } = await clients.ec2.send(
        new DescribeSpotInstanceRequestsCommand({ Filters: [{ Name: 'instance-id', Values: ids }] }),
      )
      const [request] = SpotInstanceRequests!
      return { id: request!.SpotInstanceRequestId!, state: request!.State, code: request!.Status?.Code }
    }
    const { id, ...first } = await status()
    expect(first).toEqual({ state: 'active', code: 'fulfilled' })
    await clock.advance(UP_MS)
    cloud.interrupt(ids[0]!, { noticeMs: 60_000 })
    expect((await status()).code).toBe('marked-for-termination')
    await clock.advance(61_000)
    expect(await status()).toEqual({ id, state: 'closed', code: 'instance-terminated-by-service' })
    const second = await fleet([{ InstanceType: 'g5.xlarge' }])
    const { SpotInstanceRequests } = await clients.ec2.send(
      new DescribeSpotInstanceRequestsCommand({ Filters: [{ Name: 'instance-id', Values: second.ids }] }),
    )
    const cancelled = await clients.ec2.send(
      new CancelSpotInstanceRequestsCommand({
        SpotInstanceRequestIds: [SpotInstanceRequests![0]!.SpotInstanceRequestId!],
      }),
    )
    expect(cancelled.CancelledSpotInstanceRequests![0]!.State).toBe('cancelled')
    await clock.advance(UP_MS)
    expect(cloud.instances().find((each) => each.id === second.ids[0])!.state).toBe('running')
  })
})

describe('launch templates', () => {
  it('have versions that never change', async () => {
    const { clients } = await testCloud()
    const { ec2 } = clients
    const create = (data: object) =>
      ec2.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName: 'mine',
          ClientToken: 't',
          LaunchTemplateData: data,
        }),
      )
    const data = {
      ImageId: IMAGE,
      UserData: 'aGk=',
      SecurityGroupIds: ['sg-1'],
      MetadataOptions: {
        HttpTokens: 'required',
        HttpPutResponseHopLimit: 1,
        InstanceMetadataTags: 'enabled',
      },
      BlockDeviceMappings: [
        { DeviceName: '/dev/sda1', Ebs: { VolumeSize: 80, VolumeType: 'gp3', DeleteOnTermination: true } },
      ],
      NetworkInterfaces: [{ DeviceIndex: 0, Groups: ['sg-1'], AssociatePublicIpAddress: true }],
    }
    const { LaunchTemplate: made } = await create(data)
    expect((await create(data)).LaunchTemplate?.LaunchTemplateId).toBe(made?.LaunchTemplateId)
    expect((await refusal(create({ ImageId: IMAGE }))).code).toBe('IdempotentParameterMismatch')
    const taken = ec2.send(
      new CreateLaunchTemplateCommand({ LaunchTemplateName: 'mine', LaunchTemplateData: data as never }),
    )
    expect((await refusal(taken)).code).toBe('InvalidLaunchTemplateName.AlreadyExistsException')
    await ec2.send(
      new CreateLaunchTemplateVersionCommand({
        LaunchTemplateName: 'mine',
        SourceVersion: '1',
        LaunchTemplateData: { InstanceType: 'g5.xlarge' },
      }),
    )
    const { LaunchTemplateVersions } = await ec2.send(
      new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateName: 'mine' }),
    )
    const [second, first] = LaunchTemplateVersions!
    expect([first!.VersionNumber, first!.DefaultVersion, second!.VersionNumber]).toEqual([1, true, 2])
    expect(first!.LaunchTemplateData).toMatchObject(data)
    expect(second!.LaunchTemplateData).toMatchObject({ ...data, InstanceType: 'g5.xlarge' })
    await ec2.send(new DeleteLaunchTemplateCommand({ LaunchTemplateName: 'mine' }))
    const gone = ec2.send(new DescribeLaunchTemplatesCommand({ LaunchTemplateNames: ['mine'] }))
    expect((await refusal(gone)).code).toBe('InvalidLaunchTemplateName.NotFoundException')
  })

  it('show up late where the world says so', async () => {
    const { clients, clock } = await testCloud({ durations: { objectHidden: '2s' } })
    const names = { LaunchTemplateNames: ['mine'] }
    await clients.ec2.send(
      new CreateLaunchTemplateCommand({ LaunchTemplateName: 'mine', LaunchTemplateData: { ImageId: IMAGE } }),
    )
    expect((await refusal(clients.ec2.send(new DescribeLaunchTemplatesCommand(names)))).code).toBe(
      'InvalidLaunchTemplateName.NotFoundException',
    )
    await clock.advance(2000)
    expect((await clients.ec2.send(new DescribeLaunchTemplatesCommand(names))).LaunchTemplates).toHaveLength(
      1,
    )
  })
})
