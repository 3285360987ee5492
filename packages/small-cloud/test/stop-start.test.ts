import {
  DescribeInstancesCommand,
  DescribeVolumesCommand,
  RunInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
  waitUntilInstanceRunning,
  waitUntilInstanceStopped,
  type Instance,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import { DescribeInstanceInformationCommand } from '@aws-sdk/client-ssm'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import { IMAGE, refusal, stopClouds, testCloud, UP_MS, type TestCloud } from './support'

afterEach(stopClouds)

const ZONE = 'us-east-1a'

async function running(
  world: WorldText = {},
  more: Partial<RunInstancesCommandInput> = {},
): Promise<TestCloud & { id: string }> {
  const test = await testCloud(world)
  const { Instances } = await test.clients.ec2.send(
    new RunInstancesCommand({
      ImageId: IMAGE,
      InstanceType: 'g5.xlarge',
      MinCount: 1,
      MaxCount: 1,
      Placement: { AvailabilityZone: ZONE },
      IamInstanceProfile: { Name: 'crucible-machine' },
      ...more,
    }),
  )
  await test.clock.advance(UP_MS)
  return { ...test, id: Instances![0]!.InstanceId! }
}

async function look({ clients, id }: TestCloud & { id: string }): Promise<Instance> {
  const { Reservations } = await clients.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }))
  return Reservations![0]!.Instances![0]!
}

const stop = (test: TestCloud & { id: string }) =>
  test.clients.ec2.send(new StopInstancesCommand({ InstanceIds: [test.id] }))
const start = (test: TestCloud & { id: string }) =>
  test.clients.ec2.send(new StartInstancesCommand({ InstanceIds: [test.id] }))

describe('an instance that is stopped and started', () => {
  it('goes over stopping to stopped and over pending to running, with its id and its metadata', async () => {
    const test = await running()
    const { id, clock, machines } = test
    const first = machines.get(id)!
    expect((await stop(test)).StoppingInstances).toEqual([
      {
        InstanceId: id,
        PreviousState: { Code: 16, Name: 'running' },
        CurrentState: { Code: 64, Name: 'stopping' },
      },
    ])
    await clock.advance(UP_MS)
    expect(first.isDead).toBe(true)
    expect(await look(test)).toMatchObject({
      State: { Code: 80, Name: 'stopped' },
      StateReason: { Code: 'Client.UserInitiatedShutdown' },
      StateTransitionReason: expect.stringMatching(/^User initiated \(/),
    })
    const { LaunchTime: before } = await look(test)
    expect((await start(test)).StartingInstances).toMatchObject([
      { PreviousState: { Name: 'stopped' }, CurrentState: { Code: 0, Name: 'pending' } },
    ])
    await clock.advance(UP_MS)
    const again = await look(test)
    expect(again.State).toEqual({ Code: 16, Name: 'running' })
    expect(again.StateReason).toBeUndefined()
    expect(again.LaunchTime!.getTime()).toBeGreaterThan(before!.getTime())
    const second = machines.get(id)!
    expect(second).not.toBe(first)
    expect(second.spec.directory).toBe(first.spec.directory)
    expect(second.metadata('instance-id')).toBe(id)
  })

  it('has no agent until that of the new boot registers', async () => {
    const test = await running({ durations: { register: '10s' } })
    const agents = async () => {
      const answer = await test.clients.ssm.send(new DescribeInstanceInformationCommand({}))
      return answer.InstanceInformationList!.map(({ PingStatus }) => PingStatus)
    }
    await test.clock.advance(10_000)
    expect(await agents()).toEqual(['Online'])
    await stop(test)
    await test.clock.advance(UP_MS)
    expect(await agents()).toEqual([])
    await start(test)
    await test.clock.advance(UP_MS)
    expect((await look(test)).State?.Name).toBe('running')
    expect(await agents()).toEqual([])
    await test.clock.advance(10_000)
    expect(await agents()).toEqual(['Online'])
  })

  it('costs nothing while it is stopped, and again once it runs', async () => {
    const test = await running()
    const usd = () => test.cloud.instances()[0]!.bill.usd
    await test.clock.advance(3_600_000)
    await stop(test)
    await test.clock.advance(UP_MS)
    const stopped = usd()
    expect(stopped).toBeGreaterThan(0)
    await test.clock.advance(10 * 3_600_000)
    expect(usd()).toBe(stopped)
    await start(test)
    await test.clock.advance(UP_MS + 3_600_000)
    expect(usd() / stopped).toBeGreaterThan(1.9)
    expect(usd() / stopped).toBeLessThan(2.1)
  })

  it('keeps its volumes until it is terminated, stopped as it is, and then leaves nothing', async () => {
    const test = await running()
    const { clients, id } = test
    const volumes = async () => (await clients.ec2.send(new DescribeVolumesCommand({}))).Volumes
    await stop(test)
    await test.clock.advance(UP_MS)
    expect(await volumes()).toMatchObject([{ State: 'in-use', Attachments: [{ InstanceId: id }] }])
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))
    expect((await look(test)).State?.Name).toBe('terminated')
    expect(await volumes()).toEqual([])
  })

  it('can be terminated while it is stopping', async () => {
    const test = await running()
    await stop(test)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [test.id] }))
    await test.clock.advance(UP_MS)
    expect((await look(test)).State?.Name).toBe('terminated')
    expect(test.machines.get(test.id)!.isDead).toBe(true)
  })

  it('gives its place away, and is not started while another has it', async () => {
    const world: WorldText = {
      stock: [{ type: 'g5.xlarge', zone: ZONE, capacity: 'on-demand', count: 1 }],
      durations: { slotReturn: '1s' },
    }
    const test = await running(world)
    await stop(test)
    await test.clock.advance(UP_MS)
    const other = await test.clients.ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        InstanceType: 'g5.xlarge',
        MinCount: 1,
        MaxCount: 1,
        Placement: { AvailabilityZone: ZONE },
      }),
    )
    await test.clock.advance(UP_MS)
    expect((await refusal(start(test))).code).toBe('InsufficientInstanceCapacity')
    const InstanceIds = [other.Instances![0]!.InstanceId!]
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds }))
    await test.clock.advance(UP_MS)
    await start(test)
    await test.clock.advance(UP_MS)
    expect((await look(test)).State?.Name).toBe('running')
  })

  it('is refused where EC2 refuses it', async () => {
    const test = await running()
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [test.id] }))
    for (const call of [stop, start]) expect((await refusal(call(test))).code).toBe('IncorrectInstanceState')
    const spot = await running({}, { InstanceMarketOptions: { MarketType: 'spot' } })
    expect((await refusal(stop(spot))).code).toBe('UnsupportedOperation')
    expect((await refusal(stop({ ...spot, id: 'i-00000000000000000' }))).code).toBe(
      'InvalidInstanceID.NotFound',
    )
  })

  it('satisfies the waiters of the SDK', async () => {
    const test = await running()
    const { client, InstanceIds } = { client: test.clients.ec2, InstanceIds: [test.id] }
    const config = { client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }
    const time = setInterval(() => void test.clock.advance(250), 50)
    try {
      await stop(test)
      expect((await waitUntilInstanceStopped(config, { InstanceIds })).state).toBe('SUCCESS')
      await start(test)
      expect((await waitUntilInstanceRunning(config, { InstanceIds })).state).toBe('SUCCESS')
    } finally {
      clearInterval(time)
    }
  })
})
