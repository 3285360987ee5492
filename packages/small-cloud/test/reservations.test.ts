import {
  CancelCapacityReservationCommand,
  CreateCapacityReservationCommand,
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  DescribeCapacityBlocksCommand,
  DescribeCapacityReservationsCommand,
  DescribeInstancesCommand,
  ModifyCapacityReservationCommand,
  RunInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
  paginateDescribeCapacityReservations,
  type CapacityReservation,
  type Instance,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { ReservationText } from '../src'
import { IMAGE, refusal, stopClouds, testCloud, UP_MS, type TestCloud } from './support'

/** An hour of the 65 GiB of the image, and of a public address. */
const BESIDE_USD = (65 * 0.08) / 720 + 0.005

afterEach(stopClouds)

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const TYPE = 'g5.xlarge'
const ZONE = 'us-east-1a'

/** Exact durations, so that what comes when can be told to the millisecond. */
const EXACT = { payment: '5m', slotReturn: '3m' } as const

const block = (more: Partial<ReservationText> = {}): ReservationText => ({
  kind: 'capacity-block',
  type: 'p5.48xlarge',
  zone: ZONE,
  count: 2,
  starts: '1h',
  ends: '25h',
  upfrontUsd: 1_888,
  ...more,
})
const onDemand = (more: Partial<ReservationText> = {}): ReservationText => ({
  kind: 'on-demand',
  type: TYPE,
  zone: ZONE,
  count: 2,
  ...more,
})

async function described({ clients }: TestCloud, id?: string): Promise<CapacityReservation> {
  const { CapacityReservations } = await clients.ec2.send(
    new DescribeCapacityReservationsCommand(id === undefined ? {} : { CapacityReservationIds: [id] }),
  )
  return CapacityReservations![0]!
}

async function run(
  { clients }: TestCloud,
  more: Partial<RunInstancesCommandInput> = {},
): Promise<Instance[]> {
  const { Instances } = await clients.ec2.send(
    new RunInstancesCommand({
      ImageId: IMAGE,
      InstanceType: TYPE,
      MinCount: 1,
      MaxCount: 1,
      Placement: { AvailabilityZone: ZONE },
      ...more,
    }),
  )
  return Instances!
}

const into = (id: string): Partial<RunInstancesCommandInput> => ({
  CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: id } },
})
const intoBlock = (id: string): Partial<RunInstancesCommandInput> => ({
  ...into(id),
  InstanceType: 'p5.48xlarge',
  InstanceMarketOptions: { MarketType: 'capacity-block' },
})

async function look({ clients }: TestCloud, { InstanceId }: Instance): Promise<Instance> {
  const { Reservations } = await clients.ec2.send(
    new DescribeInstancesCommand({ InstanceIds: [InstanceId!] }),
  )
  return Reservations![0]!.Instances![0]!
}

const end = (test: TestCloud, { InstanceId }: Instance) =>
  test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [InstanceId!] }))

describe('a Capacity Block', () => {
  it('is paid for, begins, warns, ends its instances, and ends', async () => {
    const test = await testCloud({ durations: EXACT, reservations: [block()] })
    const id = (await described(test)).CapacityReservationId!
    const states = async (): Promise<(string | undefined)[]> => {
      const { CapacityBlocks } = await test.clients.ec2.send(new DescribeCapacityBlocksCommand({}))
      return [(await described(test)).State, CapacityBlocks![0]!.State]
    }
    expect(await described(test)).toMatchObject({
      ReservationType: 'capacity-block',
      InstanceMatchCriteria: 'targeted',
      EndDateType: 'limited',
      TotalInstanceCount: 2,
      AvailableInstanceCount: 0,
      InstanceType: 'p5.48xlarge',
      AvailabilityZone: ZONE,
      Tenancy: 'default',
      InstancePlatform: 'Linux/UNIX',
      CapacityBlockId: expect.stringMatching(/^cb-/),
    })
    expect(await states()).toEqual(['payment-pending', 'payment-pending'])
    await test.clock.advance(5 * MINUTE_MS)
    expect(await states()).toEqual(['scheduled', 'scheduled'])
    expect((await refusal(run(test, intoBlock(id)))).code).toBe('ReservationCapacityExceeded')
    await test.clock.advance(55 * MINUTE_MS)
    expect(await states()).toEqual(['active', 'active'])
    const [instance] = await run(test, intoBlock(id))
    expect(instance).toMatchObject({ InstanceLifecycle: 'capacity-block', CapacityReservationId: id })
    await test.clock.advance(24 * HOUR_MS - 41 * MINUTE_MS)
    expect(test.cloud.reservations()[0]!.notices).toEqual(['Capacity Block Delivered'])
    await test.clock.advance(MINUTE_MS)
    expect(test.cloud.reservations()[0]!.notices).toEqual([
      'Capacity Block Delivered',
      'Capacity Block Expiration Warning',
      `EC2 Capacity Reservation Instance Interruption Warning: ${instance!.InstanceId}`,
    ])
    await test.clock.advance(9 * MINUTE_MS)
    expect((await look(test, instance!)).State?.Name).toBe('running')
    await test.clock.advance(MINUTE_MS)
    await test.clock.advance(UP_MS)
    expect(await look(test, instance!)).toMatchObject({
      State: { Name: 'terminated' },
      InstanceLifecycle: 'capacity-block',
    })
    expect(await states()).toEqual(['active', 'active'])
    expect((await refusal(run(test, intoBlock(id)))).code).toBe('ReservationCapacityExceeded')
    await test.clock.advance(30 * MINUTE_MS)
    expect(await states()).toEqual(['expired', 'expired'])
    // The machine is paid for; disk and address are not.
    expect(test.cloud.instances()[0]!.bill.usd).toBeCloseTo(23.5 * BESIDE_USD, 3)
    expect(test.cloud.reservations()[0]!.bill).toEqual({ upfrontUsd: 1_888, idleUsd: 0 })
  })

  it('that is not paid for never begins, and costs nothing', async () => {
    const test = await testCloud({ durations: EXACT, reservations: [block({ payment: 'fails' })] })
    await test.clock.advance(2 * HOUR_MS)
    expect((await described(test)).State).toBe('payment-failed')
    expect(test.cloud.reservations()[0]!.bill.upfrontUsd).toBe(0)
  })

  it('needs its market type, its zone and its type, and has no more than its places', async () => {
    const test = await testCloud({
      durations: EXACT,
      reservations: [block({ starts: 0, ends: '24h' }), onDemand()],
    })
    const [id, other] = test.cloud.reservations().map((each) => each.id)
    const code = async (more: Partial<RunInstancesCommandInput>) => (await refusal(run(test, more))).code
    const marketless = { ...intoBlock(id!), InstanceMarketOptions: undefined }
    expect(await refusal(run(test, marketless))).toMatchObject({
      code: 'InvalidParameterValue',
      message: expect.stringContaining('market type (purchasing) option is not valid'),
    })
    expect(await code({ ...intoBlock(other!), InstanceType: TYPE })).toBe('InvalidParameterValue')
    expect(await code({ InstanceMarketOptions: { MarketType: 'capacity-block' } })).toBe(
      'InvalidParameterValue',
    )
    expect(await code({ ...intoBlock(id!), Placement: { AvailabilityZone: 'us-east-1b' } })).toBe(
      'ReservationCapacityExceeded',
    )
    expect(await code({ ...intoBlock(id!), InstanceType: 'p4d.24xlarge' })).toBe(
      'ReservationCapacityExceeded',
    )
    expect(await code({ ...intoBlock(id!), Placement: { GroupName: 'mine' } })).toBe('UnknownParameter')
    expect(await code(intoBlock('cr-00000000000000000'))).toBe('InvalidCapacityReservationId.NotFound')
    expect(await code(intoBlock('cr-x'))).toBe('InvalidCapacityReservationId.Malformed')
    await run(test, { ...intoBlock(id!), MinCount: 2, MaxCount: 2 })
    expect(await refusal(run(test, intoBlock(id!)))).toMatchObject({
      code: 'ReservationCapacityExceeded',
      status: 400,
    })
  })

  it('gives a place again some minutes after its instance has ended', async () => {
    const test = await testCloud({
      durations: EXACT,
      reservations: [block({ starts: 0, ends: '24h', count: 1 })],
    })
    const { id } = test.cloud.reservations()[0]!
    const [instance] = await run(test, intoBlock(id))
    await test.clock.advance(UP_MS)
    await end(test, instance!)
    await test.clock.advance(UP_MS)
    expect((await look(test, instance!)).State?.Name).toBe('terminated')
    expect((await described(test)).AvailableInstanceCount).toBe(0)
    expect((await refusal(run(test, intoBlock(id)))).code).toBe('ReservationCapacityExceeded')
    await test.clock.advance(3 * MINUTE_MS)
    expect((await described(test)).AvailableInstanceCount).toBe(1)
    await run(test, intoBlock(id))
  })

  it('counts against no quota, and takes nothing from a pool', async () => {
    const test = await testCloud({
      quotas: { 'L-417A185B': 0 },
      stock: [{ type: 'p5.48xlarge', count: 0 }],
      reservations: [block({ starts: 0, ends: '24h' })],
    })
    await run(test, intoBlock(test.cloud.reservations()[0]!.id))
    const words = { InstanceType: 'p5.48xlarge' } as const
    expect((await refusal(run(test, words))).code).toBe('VcpuLimitExceeded')
  })

  it('can be extended from outside, and neither changed nor cancelled over the wire', async () => {
    const test = await testCloud({ reservations: [block({ starts: 0, ends: '1h' })] })
    const { id } = test.cloud.reservations()[0]!
    const [instance] = await run(test, intoBlock(id))
    const { ec2 } = test.clients
    const words = { CapacityReservationId: id }
    for (const call of [
      ec2.send(new CancelCapacityReservationCommand(words)),
      ec2.send(new ModifyCapacityReservationCommand({ ...words, InstanceCount: 3 })),
    ])
      expect((await refusal(call)).code).toBe('OperationNotPermitted')
    test.cloud.extend(id, '25h')
    await test.clock.advance(HOUR_MS)
    expect((await look(test, instance!)).State?.Name).toBe('running')
    expect(() => test.cloud.extend(id, '1h')).toThrow('ends later than that already')
    await test.clock.advance(24 * HOUR_MS)
    expect((await look(test, instance!)).State?.Name).toBe('terminated')
    expect(() => test.cloud.extend(id, '99h')).toThrow('can be moved no more')
  })
})

describe('a reservation on demand', () => {
  const create = { InstanceType: TYPE, InstancePlatform: 'Linux/UNIX', AvailabilityZone: ZONE } as const

  it('is made once for each token, and counts against quota and stock while it lasts', async () => {
    const test = await testCloud({
      quotas: { 'L-DB2E81BA': 12 },
      stock: [{ type: TYPE, zone: ZONE, capacity: 'on-demand', count: 3 }],
    })
    const { ec2 } = test.clients
    const make = (InstanceCount: number, ClientToken: string) =>
      ec2.send(new CreateCapacityReservationCommand({ ...create, InstanceCount, ClientToken }))
    const [first, second] = [await make(2, 'a'), await make(2, 'a')]
    const id = first.CapacityReservation!.CapacityReservationId!
    expect(second.CapacityReservation!.CapacityReservationId).toBe(id)
    expect((await refusal(make(3, 'a'))).code).toBe('IdempotentParameterMismatch')
    expect((await refusal(make(2, 'b'))).code).toBe('VcpuLimitExceeded')
    await run(test, { CapacityReservationSpecification: { CapacityReservationPreference: 'none' } })
    expect((await refusal(run(test, { ...into(id), MinCount: 3, MaxCount: 3 }))).code).toBe(
      'ReservationCapacityExceeded',
    )
    await ec2.send(new CancelCapacityReservationCommand({ CapacityReservationId: id }))
    expect((await described(test, id)).State).toBe('cancelled')
    expect((await refusal(run(test, into(id)))).code).toBe('ReservationCapacityExceeded')
    await run(test, { MinCount: 2, MaxCount: 2 })
    expect((await refusal(make(1, 'c'))).code).toBe('VcpuLimitExceeded')
  })

  it('is refused without capacity, and with an invalid end', async () => {
    const test = await testCloud({ stock: [{ type: TYPE, zone: ZONE, count: 1 }] })
    const make = (more: object) =>
      refusal(
        test.clients.ec2.send(new CreateCapacityReservationCommand({ ...create, InstanceCount: 1, ...more })),
      )
    expect(await make({ InstanceCount: 2 })).toMatchObject({
      code: 'InsufficientInstanceCapacity',
      status: 500,
    })
    expect((await make({ EndDateType: 'limited' })).code).toBe('InvalidParameterCombination')
    expect((await make({ EndDate: new Date(1) })).code).toBe('InvalidParameterValue')
    expect((await make({ AvailabilityZone: 'us-east-1z' })).code).toBe('InvalidParameterValue')
  })

  it('that is open soaks up launches that fit; a targeted one only those that name it', async () => {
    const test = await testCloud({ reservations: [onDemand({ matching: 'open' }), onDemand({ count: 1 })] })
    const [open, targeted] = test.cloud.reservations().map((each) => each.id)
    const reservationsOf = (instances: Instance[]) => instances.map((each) => each.CapacityReservationId)
    const prefer = (CapacityReservationPreference: 'none' | 'capacity-reservations-only') => ({
      CapacityReservationSpecification: { CapacityReservationPreference },
    })
    expect(reservationsOf(await run(test, prefer('none')))).toEqual([undefined])
    expect(reservationsOf(await run(test, { Placement: { AvailabilityZone: 'us-east-1b' } }))).toEqual([
      undefined,
    ])
    expect(reservationsOf(await run(test, { MinCount: 3, MaxCount: 3 }))).toEqual([open, open, undefined])
    expect((await refusal(run(test, prefer('capacity-reservations-only')))).code).toBe(
      'ReservationCapacityExceeded',
    )
    const [instance] = await run(test, into(targeted!))
    expect(await look(test, instance!)).toMatchObject({
      CapacityReservationId: targeted,
      CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: targeted } },
    })
    expect(instance!.InstanceLifecycle).toBeUndefined()
  })

  it('that is open soaks up fleets as well, unless their template forbids it', async () => {
    const test = await testCloud({ reservations: [onDemand({ matching: 'open' })] })
    const { ec2 } = test.clients
    const launched = async (name: string, CapacityReservationPreference?: 'none'): Promise<Instance> => {
      await ec2.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName: name,
          LaunchTemplateData: {
            ImageId: IMAGE,
            ...(CapacityReservationPreference && {
              CapacityReservationSpecification: { CapacityReservationPreference },
            }),
          },
        }),
      )
      const { Instances } = await ec2.send(
        new CreateFleetCommand({
          Type: 'instant',
          LaunchTemplateConfigs: [
            {
              LaunchTemplateSpecification: { LaunchTemplateName: name, Version: '1' },
              Overrides: [{ InstanceType: TYPE, AvailabilityZone: ZONE }],
            },
          ],
          TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'on-demand' },
        }),
      )
      return look(test, { InstanceId: Instances![0]!.InstanceIds![0]! })
    }
    expect((await launched('careful', 'none')).CapacityReservationId).toBeUndefined()
    expect((await launched('careless')).CapacityReservationId).toBe(test.cloud.reservations()[0]!.id)
  })

  it('costs as much idle as in use, and its instances run on when it ends', async () => {
    const test = await testCloud({
      durations: { billedAtLeast: 0, pending: 0 },
      types: { 'x1.mine': { vcpus: 2, memoryGiB: 4, usdPerHour: 1 } },
      reservations: [onDemand({ type: 'x1.mine', ends: '2h' })],
    })
    const { id } = test.cloud.reservations()[0]!
    await test.clock.advance(HOUR_MS)
    expect(test.cloud.reservations()[0]!.bill.idleUsd).toBeCloseTo(2, 3)
    const [instance] = await run(test, { ...into(id), InstanceType: 'x1.mine' as never })
    await test.clock.advance(HOUR_MS)
    expect(test.cloud.reservations()[0]).toMatchObject({ state: 'expired' })
    expect(test.cloud.reservations()[0]!.bill.idleUsd).toBeCloseTo(3, 2)
    await test.clock.advance(HOUR_MS)
    expect(await look(test, instance!)).toMatchObject({ State: { Name: 'running' } })
    expect((await look(test, instance!)).CapacityReservationId).toBeUndefined()
    expect(test.cloud.instances()[0]!.bill.usd).toBeCloseTo(2 * (1 + BESIDE_USD), 2)
    expect(test.cloud.reservations()[0]!.bill.idleUsd).toBeCloseTo(3, 2)
  })

  it('takes more places and another end, and no fewer than are in use', async () => {
    const test = await testCloud({ reservations: [onDemand({ ends: '1h' })] })
    const { id } = test.cloud.reservations()[0]!
    const modify = (more: object) =>
      test.clients.ec2.send(new ModifyCapacityReservationCommand({ CapacityReservationId: id, ...more }))
    await run(test, { ...into(id), MinCount: 2, MaxCount: 2 })
    expect((await refusal(modify({ InstanceCount: 1 }))).code).toBe('InvalidParameterValue')
    expect((await refusal(modify({ InstanceMatchCriteria: 'open' }))).code).toBe('InvalidState')
    await modify({ InstanceCount: 3, EndDateType: 'unlimited' })
    await run(test, into(id))
    await test.clock.advance(2 * HOUR_MS)
    expect(await described(test)).toMatchObject({
      State: 'active',
      TotalInstanceCount: 3,
      AvailableInstanceCount: 0,
      CapacityAllocations: [{ AllocationType: 'used', Count: 3 }],
    })
  })

  it('has no place for a stopped instance once it has ended', async () => {
    const test = await testCloud({ durations: EXACT, reservations: [onDemand({ count: 1, ends: '1h' })] })
    const { id } = test.cloud.reservations()[0]!
    const [{ InstanceId } = {}] = await run(test, into(id))
    const InstanceIds = [InstanceId!]
    await test.clock.advance(UP_MS)
    const { ec2 } = test.clients
    await ec2.send(new StopInstancesCommand({ InstanceIds }))
    await test.clock.advance(5 * MINUTE_MS)
    expect((await described(test)).AvailableInstanceCount).toBe(1)
    await ec2.send(new StartInstancesCommand({ InstanceIds }))
    expect((await described(test)).AvailableInstanceCount).toBe(0)
    await test.clock.advance(UP_MS)
    await ec2.send(new StopInstancesCommand({ InstanceIds }))
    await test.clock.advance(HOUR_MS)
    expect((await refusal(ec2.send(new StartInstancesCommand({ InstanceIds })))).code).toBe(
      'ReservationCapacityExceeded',
    )
  })

  it('is listed by page and by filter, those of others too', async () => {
    const owner = '999988887777'
    const test = await testCloud({
      reservations: [onDemand(), onDemand({ zone: 'us-east-1b' }), onDemand({ owner }), block()],
    })
    const client = test.clients.ec2
    const pages: number[] = []
    for await (const page of paginateDescribeCapacityReservations({ client, pageSize: 3 }, {}))
      pages.push(page.CapacityReservations!.length)
    expect(pages).toEqual([3, 1])
    const found = async (Name: string, Value: string): Promise<number> => {
      const Filters = [{ Name, Values: [Value] }]
      return (await client.send(new DescribeCapacityReservationsCommand({ Filters }))).CapacityReservations!
        .length
    }
    expect(await found('state', 'active')).toBe(3)
    expect(await found('availability-zone', 'us-east-1b')).toBe(1)
    expect(await found('owner-id', owner)).toBe(1)
    const shared = test.cloud.reservations()[2]!.id
    await run(test, into(shared))
    const cancel = new CancelCapacityReservationCommand({ CapacityReservationId: shared })
    expect((await refusal(client.send(cancel))).code).toBe('UnauthorizedOperation')
  })
})

describe('a reservation in a world file', () => {
  it('begins and ends at instants as well', async () => {
    const test = await testCloud()
    const atMs = Math.ceil(test.clock.nowMs() / 1000) * 1000 + HOUR_MS
    const { id } = test.cloud.reserve(block({ starts: new Date(atMs).toISOString(), ends: '48h' }))
    expect((await described(test, id)).StartDate).toEqual(new Date(atMs))
    await test.clock.advance(HOUR_MS + 2_000)
    expect((await described(test, id)).State).toBe('active')
  })

  it('is refused where it is none', async () => {
    const { cloud } = await testCloud()
    expect(() => cloud.reserve(block({ ends: undefined }))).toThrow('a capacity-block needs `ends`')
    expect(() => cloud.reserve(onDemand({ zone: 'eu-west-1a' }))).toThrow('this world has no zone eu-west-1a')
    expect(() => cloud.reserve(onDemand({ type: 'g5.huge' }))).toThrow('this world has no type g5.huge')
    await expect(testCloud({ reservations: [onDemand({ type: 'g5.huge' })] })).rejects.toThrow(
      'reservations.0.type: this world has no type g5.huge',
    )
  })
})
