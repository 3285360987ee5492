import {
  CreateTagsCommand,
  DescribeInstancesCommand,
  DescribeInstanceStatusCommand,
  DescribeVolumesCommand,
  DeleteVolumeCommand,
  GetConsoleOutputCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
  waitUntilInstanceExists,
  waitUntilInstanceRunning,
  waitUntilInstanceTerminated,
  type Instance,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import { IMAGE, PaperMachine, refusal, stopClouds, testCloud, UP_MS, type TestCloud } from './support'

afterEach(stopClouds)

const LAUNCH: RunInstancesCommandInput = {
  ImageId: IMAGE,
  InstanceType: 'g5.xlarge',
  MinCount: 1,
  MaxCount: 1,
}
const ZONES = ['us-east-1a', 'us-east-1b', 'us-east-1c'] as const

async function run({ clients }: TestCloud, more: Partial<RunInstancesCommandInput> = {}): Promise<Instance> {
  const { Instances } = await clients.ec2.send(new RunInstancesCommand({ ...LAUNCH, ...more }))
  return Instances![0]!
}

async function look({ clients }: TestCloud, id: string): Promise<Instance> {
  const { Reservations } = await clients.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }))
  return Reservations![0]!.Instances![0]!
}

async function inZone(
  zone: string,
  world: WorldText = {},
): Promise<TestCloud & { launch: () => Promise<Instance> }> {
  const test = await testCloud(world)
  return { ...test, launch: () => run(test, { Placement: { AvailabilityZone: zone } }) }
}

describe('the life of an instance', () => {
  it('goes from pending over running and shutting-down to terminated, and says why', async () => {
    const test = await testCloud()
    const { InstanceId: id, State } = await run(test)
    expect(State).toEqual({ Code: 0, Name: 'pending' })
    await test.clock.advance(UP_MS)
    expect((await look(test, id!)).State).toEqual({ Code: 16, Name: 'running' })
    const { TerminatingInstances } = await test.clients.ec2.send(
      new TerminateInstancesCommand({ InstanceIds: [id!] }),
    )
    expect(TerminatingInstances![0]).toMatchObject({
      PreviousState: { Name: 'running' },
      CurrentState: { Code: 32, Name: 'shutting-down' },
    })
    const { StateTransitionReason: told } = await look(test, id!)
    expect(told).toMatch(/^User initiated \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\)$/)
    await test.clock.advance(UP_MS)
    const ended = await look(test, id!)
    expect(ended.State).toEqual({ Code: 48, Name: 'terminated' })
    expect(ended.StateReason?.Code).toBe('Client.UserInitiatedShutdown')
    expect(ended.StateTransitionReason).toBe(told)
    expect(test.machines.get(id!)!.isDead).toBe(true)
  })

  it('shows an ended instance for an hour', async () => {
    const test = await testCloud()
    const { InstanceId: id } = await run(test)
    await test.clock.advance(UP_MS)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id!] }))
    await test.clock.advance(59 * 60_000)
    expect((await look(test, id!)).State?.Name).toBe('terminated')
    await test.clock.advance(2 * 60_000)
    expect((await refusal(look(test, id!))).code).toBe('InvalidInstanceID.NotFound')
  })

  it('satisfies the waiters of the SDK', async () => {
    const test = await testCloud({ durations: { notFound: '700ms' } })
    const client = test.clients.ec2
    const { InstanceId: id } = await run(test)
    const config = { client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }
    const time = setInterval(() => void test.clock.advance(250), 50)
    try {
      await waitUntilInstanceExists(config, { InstanceIds: [id!] })
      expect((await waitUntilInstanceRunning(config, { InstanceIds: [id!] })).state).toBe('SUCCESS')
      await client.send(new TerminateInstancesCommand({ InstanceIds: [id!] }))
      expect((await waitUntilInstanceTerminated(config, { InstanceIds: [id!] })).state).toBe('SUCCESS')
    } finally {
      clearInterval(time)
    }
  })

  it('ends when the machine powers off, if that is its shutdown behaviour', async () => {
    const test = await testCloud()
    const { InstanceId: id } = await run(test, { InstanceInitiatedShutdownBehavior: 'terminate' })
    await test.clock.advance(UP_MS)
    test.machines.get(id!)!.powerOff('shutdown')
    await test.clock.advance(UP_MS)
    expect(await look(test, id!)).toMatchObject({
      State: { Name: 'terminated' },
      StateReason: { Code: 'Client.InstanceInitiatedShutdown' },
    })
  })

  it('gives the machine user data, tags and the credentials of its profile', async () => {
    const test = await testCloud()
    const { InstanceId: id } = await run(test, {
      UserData: Buffer.from('#!/bin/sh\necho hi\n').toString('base64'),
      IamInstanceProfile: { Name: 'crucible-machine' },
      MetadataOptions: { InstanceMetadataTags: 'enabled', HttpTokens: 'required' },
      TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'job', Value: 'a' }] }],
    })
    await test.clock.advance(UP_MS)
    const machine = test.machines.get(id!)!
    expect(machine.spec.userData).toBe('#!/bin/sh\necho hi\n')
    expect(machine.spec.environment).toEqual({ AWS_ENDPOINT_URL: test.cloud.endpoint })
    expect(machine.metadata('instance-id')).toBe(id)
    expect(machine.metadata('tags/instance/job')).toBe('a')
    await test.clients.ec2.send(
      new CreateTagsCommand({ Resources: [id!], Tags: [{ Key: 'job', Value: 'b' }] }),
    )
    expect(machine.metadata('tags/instance/job')).toBe('b')
    const document = JSON.parse(machine.metadata('iam/security-credentials/crucible-machine')!)
    expect(document).toMatchObject({ Code: 'Success', AccessKeyId: expect.stringMatching(/^ASIA/) })
  })

  it('is charged with its disks and its public address', async () => {
    const subnets = ZONES.slice(0, 2).map((zone, at) => ({
      zone,
      egress: at === 0 ? ('public' as const) : ('endpoints' as const),
      isDefault: true,
    }))
    const test = await testCloud({
      durations: { pending: 0 },
      types: { 'x1.mine': { vcpus: 2, memoryGiB: 4, usdPerHour: 1 } },
      regions: { 'us-east-1': { zones: [...ZONES], subnets } },
    })
    const Ebs = { VolumeSize: 720, VolumeType: 'gp3' as const, Throughput: 845, Iops: 6_600 }
    const BlockDeviceMappings = [{ DeviceName: '/dev/sda1', Ebs }]
    for (const { zone: AvailabilityZone } of subnets)
      await run(test, {
        InstanceType: 'x1.mine' as never,
        BlockDeviceMappings,
        Placement: { AvailabilityZone },
      })
    await test.clock.advance(3_600_000)
    // 720 GiB, 720 MiB/s and 3,600 operations per second beyond what is included.
    const disk = 0.08 + 0.04 + 5 * 0.005
    const [open, closed] = test.cloud.instances().map(({ bill }) => bill.usd)
    expect([open, closed]).toEqual([expect.closeTo(1 + disk + 0.005, 3), expect.closeTo(1 + disk, 3)])
  })

  it('takes its volumes along, save those that are to stay', async () => {
    const test = await testCloud()
    const { InstanceId: id } = await run(test, {
      BlockDeviceMappings: [{ DeviceName: '/dev/sdf', Ebs: { VolumeSize: 10, DeleteOnTermination: false } }],
      TagSpecifications: [{ ResourceType: 'volume', Tags: [{ Key: 'job', Value: 'a' }] }],
    })
    const tagged = { Filters: [{ Name: 'tag:job', Values: ['a'] }] }
    const volumes = async () => (await test.clients.ec2.send(new DescribeVolumesCommand(tagged))).Volumes!
    expect((await volumes()).map(({ State }) => State)).toEqual(['in-use', 'in-use'])
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id!] }))
    await test.clock.advance(UP_MS)
    const [left, ...others] = await volumes()
    expect([left!.State, others]).toEqual(['available', []])
    await test.clients.ec2.send(new DeleteVolumeCommand({ VolumeId: left!.VolumeId }))
    expect(await volumes()).toEqual([])
  })

  it('tells the console and the status checks', async () => {
    const test = await testCloud({ durations: { statusChecks: '1m' } })
    const { InstanceId: id } = await run(test)
    await test.clock.advance(UP_MS)
    const status = async () => {
      const { InstanceStatuses } = await test.clients.ec2.send(
        new DescribeInstanceStatusCommand({ InstanceIds: [id!] }),
      )
      return InstanceStatuses![0]!.SystemStatus!.Status
    }
    expect(await status()).toBe('initializing')
    await test.clock.advance(60_000)
    expect(await status()).toBe('ok')
    const { Output } = await test.clients.ec2.send(new GetConsoleOutputCommand({ InstanceId: id! }))
    expect(Buffer.from(Output!, 'base64').toString()).toBe(`console of ${id}\n`)
  })
})

describe('client tokens', () => {
  it('repeat a launch without a second machine', async () => {
    const test = await testCloud()
    const words = { ClientToken: 'job-1', Placement: { AvailabilityZone: 'us-east-1a' } } as const
    const first = await run(test, words)
    const second = await run(test, words)
    expect(second.InstanceId).toBe(first.InstanceId)
    expect(test.cloud.instances()).toHaveLength(1)
    const mismatch = await refusal(run(test, { ...words, InstanceType: 'g5.2xlarge' }))
    expect(mismatch).toMatchObject({ code: 'IdempotentParameterMismatch', status: 400 })
  })

  it('count for one zone: the same token in another zone is another machine', async () => {
    const test = await testCloud()
    const [a, b] = ['us-east-1a', 'us-east-1b'] as const
    const first = await run(test, { ClientToken: 'job-1', Placement: { AvailabilityZone: a } })
    const second = await run(test, { ClientToken: 'job-1', Placement: { AvailabilityZone: b } })
    expect(second.InstanceId).not.toBe(first.InstanceId)
  })

  it('of a machine that has ended are said to be', async () => {
    const test = await testCloud()
    const words = { ClientToken: 'job-1', Placement: { AvailabilityZone: 'us-east-1a' } } as const
    const { InstanceId } = await run(test, words)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [InstanceId!] }))
    await test.clock.advance(UP_MS)
    expect((await refusal(run(test, words))).code).toBe('IdempotentInstanceTerminated')
  })

  it('of a launch that was refused are free', async () => {
    const { launch, cloud, clients } = await inZone('us-east-1a')
    cloud.addFault({ fault: 'no-capacity', times: 1 })
    const again = () =>
      clients.ec2.send(
        new RunInstancesCommand({
          ...LAUNCH,
          ClientToken: 't',
          Placement: { AvailabilityZone: 'us-east-1a' },
        }),
      )
    expect((await refusal(again())).code).toBe('InsufficientInstanceCapacity')
    await again()
    await launch()
    expect(cloud.instances()).toHaveLength(2)
  })
})

describe('what stands in the way of a launch', () => {
  it('is said with the codes of EC2', async () => {
    const test = await testCloud({
      stock: [{ type: 'g5.xlarge', zone: ZONES[0], count: 1 }],
      offered: { 'p3.2xlarge': [ZONES[1]] },
      quotas: { 'L-DB2E81BA': 16, 'L-3819A6DF': 4 },
      prices: [{ type: 'g6.xlarge', usdPerHour: 0.5 }],
    })
    const at = (zone: string, more: Partial<RunInstancesCommandInput> = {}) =>
      run(test, { Placement: { AvailabilityZone: zone }, ...more })
    await at(ZONES[0])
    const empty = await refusal(at(ZONES[0]))
    expect(empty).toMatchObject({ code: 'InsufficientInstanceCapacity', status: 500 })
    expect(empty.message).toContain('choosing us-east-1b, us-east-1c')
    expect(await refusal(at(ZONES[0], { InstanceType: 'p3.2xlarge' }))).toMatchObject({
      code: 'Unsupported',
      status: 400,
    })
    expect(await refusal(at(ZONES[1], { InstanceType: 'g5.8xlarge' }))).toMatchObject({
      code: 'VcpuLimitExceeded',
      status: 400,
    })
    const spot = (type: 'g5.2xlarge' | 'g6.xlarge', MaxPrice: string) =>
      at(ZONES[1], {
        InstanceType: type,
        InstanceMarketOptions: { MarketType: 'spot', SpotOptions: { MaxPrice } },
      })
    expect((await refusal(spot('g5.2xlarge', '9'))).code).toBe('MaxSpotInstanceCountExceeded')
    expect((await refusal(spot('g6.xlarge', '0.4'))).code).toBe('SpotMaxPriceTooLow')
    expect((await spot('g6.xlarge', '0.6')).InstanceLifecycle).toBe('spot')
  })

  it.each<[string, Partial<RunInstancesCommandInput>]>([
    ['InvalidAMIID.NotFound', { ImageId: 'ami-00000000000000000' }],
    ['InvalidAMIID.Malformed', { ImageId: 'ubuntu' }],
    ['InvalidSubnetID.NotFound', { SubnetId: 'subnet-00000000000000000' }],
    ['InvalidGroup.NotFound', { SecurityGroupIds: ['sg-00000000000000000'] }],
    ['InvalidParameterValue', { IamInstanceProfile: { Name: 'nobody' } }],
    ['InvalidKeyPair.NotFound', { KeyName: 'mine' }],
    ['InvalidLaunchTemplateName.NotFoundException', { LaunchTemplate: { LaunchTemplateName: 'none' } }],
    ['InvalidParameterValue', { InstanceMarketOptions: { MarketType: 'capacity-block' } }],
    ['UnknownParameter', { CreditSpecification: { CpuCredits: 'standard' } }],
    ['InvalidClientToken', { ClientToken: 'x'.repeat(65) }],
  ])('%s', async (code, more) => {
    const test = await testCloud()
    expect(await refusal(run(test, more))).toMatchObject({ code, status: 400 })
    expect(test.cloud.instances()).toEqual([])
  })

  it.each<[string, object]>([
    ['Volume throughput of 124 is too low; minimum is 125.', { Throughput: 124 }],
    ['Volume throughput of 2001 is too high; maximum is 2000.', { Throughput: 2_001, Iops: 9_000 }],
    ['Volume iops of 2999 is too low; minimum is 3000.', { Iops: 2_999 }],
    ['Volume iops of 80001 is too high; maximum is 80000.', { Iops: 80_001, VolumeSize: 1_000 }],
    [
      'Throughput (MiBps) to iops ratio of 0.333333 is too high; maximum is 0.250000 MiBps per iops',
      { Throughput: 1_000 },
    ],
    [
      'Iops to volume size ratio of 600.000000 is too high; maximum is 500',
      { Iops: 60_000, VolumeSize: 100 },
    ],
    ['The parameter Throughput is not supported for gp2 volumes.', { VolumeType: 'gp2', Throughput: 200 }],
    [
      "Volume of size 20GB is smaller than snapshot 'snap-0aaaaaaaaaaaaaaaa', expect size>= 65GB",
      { VolumeSize: 20 },
    ],
  ])('is a disk that cannot be: %s', async (message, Ebs) => {
    const test = await testCloud()
    const launch = run(test, { BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs }] })
    expect((await refusal(launch)).message).toBe(message)
  })

  it('is looked for by a dry run, which launches nothing', async () => {
    const test = await testCloud()
    expect(await refusal(run(test, { DryRun: true }))).toMatchObject({ code: 'DryRunOperation', status: 412 })
    expect((await refusal(run(test, { DryRun: true, SubnetId: 'subnet-00000000000000000' }))).code).toBe(
      'InvalidSubnetID.NotFound',
    )
    expect(test.cloud.instances()).toEqual([])
  })

  it('is counted against the bucket of launches', async () => {
    const test = await testCloud({ throttling: { instances: { size: 2, perSecond: 1 } } })
    await run(test, { MinCount: 2, MaxCount: 2 })
    expect(await refusal(run(test))).toMatchObject({ code: 'RequestLimitExceeded', status: 503 })
    await test.clock.advance(1000)
    await run(test)
  })
})

describe('ending instances', () => {
  it('ends none when one of the ids will not do', async () => {
    const test = await testCloud()
    const { InstanceId: id } = await run(test)
    const end = (...ids: string[]) =>
      test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: ids }))
    expect((await refusal(end(id!, 'i-00000000000000000'))).code).toBe('InvalidInstanceID.NotFound')
    expect((await refusal(end(id!, 'machine'))).code).toBe('InvalidInstanceID.Malformed')
    await test.clock.advance(UP_MS)
    expect((await look(test, id!)).State?.Name).toBe('running')
    await end(id!)
    // Again and again is harmless.
    await end(id!)
    await test.clock.advance(UP_MS)
    await end(id!)
    expect((await look(test, id!)).State?.Name).toBe('terminated')
  })
})

describe('a host that cannot run machines', () => {
  it('ends the cloud with the reason', async () => {
    class Unable extends PaperMachine {
      override async boot(): Promise<never> {
        throw new Error('their user cannot reach /srv')
      }
    }
    const test = await testCloud({}, { createMachine: (spec) => new Unable(spec) })
    await run(test)
    await test.clock.advance(UP_MS)
    expect(await test.cloud.ended).toBe('A machine cannot run on this host: their user cannot reach /srv')
  })
})
