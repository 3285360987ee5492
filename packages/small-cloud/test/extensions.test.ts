import {
  DescribeCapacityBlockExtensionHistoryCommand,
  DescribeCapacityBlockExtensionOfferingsCommand,
  DescribeCapacityBlockOfferingsCommand,
  DescribeCapacityBlocksCommand,
  DescribeCapacityBlockStatusCommand,
  PurchaseCapacityBlockExtensionCommand,
  RunInstancesCommand,
  type CapacityBlockExtension,
  type CapacityBlockExtensionOffering,
  type CapacityReservation,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src'
import {
  advanceTo,
  buy,
  cloudThatSells,
  DAY_MS,
  HOUR_MS,
  laterOffering,
  listed,
  MINUTE_MS,
  offeringsOf,
  PLAN,
  TYPE,
  ZONE,
} from './capacity'
import {
  clientsOf,
  IMAGE,
  operatorOf,
  refusal,
  stopClouds,
  testCloud,
  type TestCloud,
  UP_MS,
} from './support'

afterEach(stopClouds)

/** A cloud with a block of two instances that is bought and paid for. */
async function cloudWithBlock(world: WorldText = {}): Promise<[TestCloud, CapacityReservation]> {
  const test = await cloudThatSells(world)
  await buy(test.clients.ec2, await laterOffering(test))
  await test.clock.advance(10 * MINUTE_MS)
  return [test, (await listed(test))[0]!]
}

async function extensionsOf(
  { clients }: TestCloud,
  { CapacityReservationId }: CapacityReservation,
  hours = 24,
): Promise<CapacityBlockExtensionOffering[]> {
  const { CapacityBlockExtensionOfferings } = await clients.ec2.send(
    new DescribeCapacityBlockExtensionOfferingsCommand({
      CapacityReservationId,
      CapacityBlockExtensionDurationHours: hours,
    }),
  )
  return CapacityBlockExtensionOfferings!
}

async function extend(
  { clients }: TestCloud,
  { CapacityReservationId }: CapacityReservation,
  { CapacityBlockExtensionOfferingId }: CapacityBlockExtensionOffering,
): Promise<CapacityBlockExtension> {
  const { CapacityBlockExtensions } = await clients.ec2.send(
    new PurchaseCapacityBlockExtensionCommand({ CapacityReservationId, CapacityBlockExtensionOfferingId }),
  )
  return CapacityBlockExtensions![0]!
}

async function history({ clients }: TestCloud): Promise<CapacityBlockExtension[]> {
  const { CapacityBlockExtensions } = await clients.ec2.send(
    new DescribeCapacityBlockExtensionHistoryCommand({}),
  )
  return CapacityBlockExtensions!
}

const code = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).code

describe('an extension of a Capacity Block', () => {
  it('moves the end of the same reservation once it is paid for', async () => {
    const [test, block] = await cloudWithBlock()
    const before = test.cloud.reservations()[0]!.bill.upfrontUsd
    const [offering] = await extensionsOf(test, block, 48)
    expect(offering).toMatchObject({
      CapacityBlockExtensionOfferingId: expect.stringMatching(/^cbe-/),
      InstanceCount: 2,
      InstanceType: TYPE,
      AvailabilityZone: ZONE,
      CurrencyCode: 'USD',
      StartDate: block.StartDate,
      CapacityBlockExtensionStartDate: block.EndDate,
      CapacityBlockExtensionDurationHours: 48,
      CapacityBlockExtensionEndDate: new Date(block.EndDate!.getTime() + 2 * DAY_MS),
    })
    expect(Number(offering!.UpfrontFee)).toBeCloseTo(30 * 2 * 48)
    const bought = await extend(test, block, offering!)
    expect(bought).toMatchObject({
      CapacityBlockExtensionStatus: 'payment-pending',
      UpfrontFee: offering!.UpfrontFee,
      CapacityReservationId: block.CapacityReservationId,
      InstanceCount: 2,
      CapacityBlockExtensionOfferingId: offering!.CapacityBlockExtensionOfferingId,
    })
    expect((await listed(test))[0]!.EndDate).toEqual(block.EndDate)
    await test.clock.advance(10 * MINUTE_MS)
    expect(await history(test)).toEqual([{ ...bought, CapacityBlockExtensionStatus: 'payment-succeeded' }])
    const [extended] = await listed(test)
    expect(extended).toEqual({ ...block, EndDate: offering!.CapacityBlockExtensionEndDate })
    expect(test.cloud.reservations()[0]!.bill.upfrontUsd - before).toBeCloseTo(30 * 2 * 48)
    await advanceTo(test, block.EndDate!)
    expect((await listed(test))[0]!.State).toBe('active')
    await advanceTo(test, extended!.EndDate!)
    expect((await listed(test))[0]!.State).toBe('expired')
  })

  it('leaves the end as it is when the payment fails, and can be tried again', async () => {
    const [test, block] = await cloudWithBlock()
    const [offering] = await extensionsOf(test, block)
    test.cloud.addFault({ fault: 'payment-fails', times: 1 })
    await extend(test, block, offering!)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test))[0]!.EndDate).toEqual(block.EndDate)
    await extend(test, block, offering!)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await history(test)).map((each) => each.CapacityBlockExtensionStatus)).toEqual([
      'payment-failed',
      'payment-succeeded',
    ])
    expect((await listed(test))[0]!.EndDate).toEqual(offering!.CapacityBlockExtensionEndDate)
  })

  it('fails when it is not paid for 35 minutes before the end', async () => {
    const [test, block] = await cloudWithBlock({ durations: { payment: '30m' } })
    await advanceTo(test, new Date(block.EndDate!.getTime() - HOUR_MS))
    const [offering] = await extensionsOf(test, block)
    await extend(test, block, offering!)
    await test.clock.advance(25 * MINUTE_MS - 1)
    expect((await history(test))[0]!.CapacityBlockExtensionStatus).toBe('payment-pending')
    await test.clock.advance(1)
    expect((await history(test))[0]!.CapacityBlockExtensionStatus).toBe('payment-failed')
  })

  it('is one at a time, so that a repeated purchase buys nothing', async () => {
    const [test, block] = await cloudWithBlock()
    const [offering] = await extensionsOf(test, block)
    test.cloud.addFault({
      fault: 'lost-answer',
      where: { action: 'PurchaseCapacityBlockExtension' },
      times: 1,
    })
    await refusal(extend(test, block, offering!))
    expect(await code(extend(test, block, offering!))).toBe('InvalidCapacityReservationState')
    expect(await code(extensionsOf(test, block))).toBe('InvalidCapacityReservationState')
    await test.clock.advance(10 * MINUTE_MS)
    expect(await code(extend(test, block, offering!))).toBe('InvalidCapacityBlockExtensionOfferingIdExpired')
    expect(await history(test)).toHaveLength(1)
    const [next] = await extensionsOf(test, block)
    await extend(test, block, next!)
  })

  it('is bought from 56 days until one hour before the end, for a block that is paid for', async () => {
    const test = await testCloud({
      blockOfferings: [PLAN],
      durations: { payment: '10m' },
      reservations: [
        { ...PLAN_OF_WORLD, starts: '40d', ends: `${57 * 24}h` },
        { kind: 'on-demand', type: 'g5.xlarge', zone: ZONE, count: 1 },
      ],
    })
    const [block, other] = await listed(test)
    expect(await code(extensionsOf(test, block!))).toBe('InvalidCapacityReservationState')
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test))[0]!.State).toBe('scheduled')
    expect(await code(extensionsOf(test, block!))).toBe('InvalidCapacityReservationState')
    await test.clock.advance(DAY_MS)
    expect(await extensionsOf(test, block!)).toHaveLength(1)
    await advanceTo(test, new Date(block!.EndDate!.getTime() - HOUR_MS))
    expect(await extensionsOf(test, block!)).toHaveLength(1)
    await test.clock.advance(1)
    expect(await code(extensionsOf(test, block!))).toBe('InvalidCapacityReservationState')
    expect(await code(extensionsOf(test, other!))).toBe('InvalidParameterValue')
  })

  it('has the durations of blocks, and 182 days in all', async () => {
    const [test, block] = await cloudWithBlock()
    for (const hours of [12, 25, 15 * 24, 183 * 24, 182 * 24])
      expect(await code(extensionsOf(test, block, hours))).toBe('InvalidParameterValue')
    expect(await extensionsOf(test, block, 175 * 24)).toHaveLength(1)
  })

  it('needs capacity, which another customer may have bought', async () => {
    const [test, block] = await cloudWithBlock({
      blockOfferings: [
        {
          ...PLAN,
          stock: [
            [0, 2],
            ['1h', 1],
          ],
        },
      ],
    })
    const [offering] = await extensionsOf(test, block)
    test.cloud.addFault({ fault: 'offering-sold', for: '10m', times: 1 })
    expect(await code(extend(test, block, offering!))).toBe('InvalidCapacityBlockExtensionOfferingIdExpired')
    expect(await extensionsOf(test, block)).toEqual([])
    await test.clock.advance(10 * MINUTE_MS)
    expect(await extensionsOf(test, block)).toHaveLength(1)
    await test.clock.advance(HOUR_MS)
    expect(await extensionsOf(test, block)).toEqual([])
  })

  it('needs an offering of its own block', async () => {
    const [test, block] = await cloudWithBlock()
    await buy(test.clients.ec2, await laterOffering(test, 1))
    await test.clock.advance(10 * MINUTE_MS)
    const other = (await listed(test)).find(({ TotalInstanceCount: count }) => count === 1)!
    const [offering] = await extensionsOf(test, block)
    expect(await code(extend(test, other, offering!))).toBe('InvalidCapacityBlockExtensionOfferingIdNotFound')
    const malformed = { CapacityBlockExtensionOfferingId: 'cb-0' }
    expect(await code(extend(test, block, malformed))).toBe(
      'InvalidCapacityBlockExtensionOfferingIdMalformed',
    )
  })

  it('is missing in its history for a while where lists lag behind', async () => {
    const [test, block] = await cloudWithBlock()
    const [offering] = await extensionsOf(test, block)
    await extend(test, block, offering!)
    const { clients } = test
    test.cloud.addFault({
      fault: 'stale-list',
      for: '1m',
      where: { action: 'DescribeCapacityBlockExtensionHistory' },
    })
    expect(await history(test)).toEqual([])
    await test.clock.advance(MINUTE_MS)
    const filters = [{ Name: 'capacity-block-extension-status', Values: ['payment-pending'] }]
    const found = await clients.ec2.send(
      new DescribeCapacityBlockExtensionHistoryCommand({ Filters: filters }),
    )
    expect(found.CapacityBlockExtensions).toHaveLength(1)
  })
})

const PLAN_OF_WORLD = { kind: 'capacity-block', type: TYPE, zone: ZONE, count: 2 } as const

describe('the status of Capacity Blocks', () => {
  const statusOf = async ({ clients }: TestCloud, CapacityBlockIds?: string[]) =>
    (await clients.ec2.send(new DescribeCapacityBlockStatusCommand({ CapacityBlockIds })))
      .CapacityBlockStatuses

  it('counts free places of active blocks, and refuses a block that is not active yet', async () => {
    const [test, block] = await cloudWithBlock()
    const { CapacityBlockId } = block
    expect(await statusOf(test)).toEqual([])
    expect(await code(statusOf(test, [CapacityBlockId!]))).toBe(
      'InvalidCapacityReservationState.PendingActivation',
    )
    await advanceTo(test, block.StartDate!)
    await launchInto(test, block)
    const counts = { TotalCapacity: 2, TotalAvailableCapacity: 1, TotalUnavailableCapacity: 1 }
    const { CapacityReservationId } = block
    expect(await statusOf(test, [CapacityBlockId!])).toEqual([
      {
        CapacityBlockId,
        InterconnectStatus: 'ok',
        ...counts,
        CapacityReservationStatuses: [{ CapacityReservationId, ...counts }],
      },
    ])
    await advanceTo(test, block.EndDate!)
    expect(await statusOf(test)).toEqual([])
  })
})

async function launchInto(
  { clients }: TestCloud,
  { CapacityReservationId, InstanceType }: CapacityReservation,
): Promise<string> {
  const { Instances } = await clients.ec2.send(
    new RunInstancesCommand({
      ImageId: IMAGE,
      InstanceType: InstanceType as 'p5.48xlarge',
      MinCount: 1,
      MaxCount: 1,
      Placement: { AvailabilityZone: ZONE },
      InstanceMarketOptions: { MarketType: 'capacity-block' },
      CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId } },
    }),
  )
  return Instances![0]!.InstanceId!
}

describe('the right to extend', () => {
  it('may depend on the tags of the block', async () => {
    const mayExtend = (intent: string) => ({
      own: {
        Statement: [
          { Effect: 'Allow', Action: 'ec2:Describe*', Resource: '*' },
          {
            Effect: 'Allow',
            Action: 'ec2:PurchaseCapacityBlockExtension',
            Resource: '*',
            Condition: { StringEquals: { 'ec2:ResourceTag/intent': intent } },
          },
        ],
      },
    })
    const user = (name: string, intent: string) => ({
      accessKeyId: name,
      secretAccessKey: name,
      policies: mayExtend(intent),
    })
    const [test, block] = await cloudWithBlock({
      users: { own: user('own', 'i-1'), other: user('other', 'i-2') },
    })
    const [offering] = await extensionsOf(test, block)
    const as = (name: string): TestCloud => ({
      ...test,
      clients: clientsOf(test.cloud.endpoint, { accessKeyId: name, secretAccessKey: name }),
    })
    expect(await code(extend(as('other'), block, offering!))).toBe('UnauthorizedOperation')
    await extend(as('own'), block, offering!)
    expect(await history(test)).toHaveLength(1)
  })
})

describe('AWS', () => {
  it('can shorten a block: its instances end before the new end', async () => {
    const [test, block] = await cloudWithBlock()
    const { cloud, clock } = test
    const id = block.CapacityReservationId!
    await advanceTo(test, block.StartDate!)
    const instance = await launchInto(test, block)
    await clock.advance(UP_MS)
    expect(() => cloud.shorten(id, '1000h')).toThrow('ends earlier than that already')
    cloud.shorten(id, '2h')
    expect((await listed(test))[0]!.EndDate).toEqual(new Date(clock.nowMs() + 2 * HOUR_MS))
    await clock.advance(80 * MINUTE_MS)
    expect(cloud.reservations()[0]!.notices).toEqual([
      'Capacity Block Delivered',
      'Capacity Block Expiration Warning',
      `EC2 Capacity Reservation Instance Interruption Warning: ${instance}`,
    ])
    await clock.advance(10 * MINUTE_MS + UP_MS)
    expect(cloud.instances().map(({ state }) => state)).toEqual(['terminated'])
    await clock.advance(30 * MINUTE_MS)
    expect((await listed(test))[0]!.State).toBe('expired')
  })

  it('does both by the control endpoints, which refuse what is impossible', async () => {
    const [test, block] = await cloudWithBlock()
    const reservation = block.CapacityReservationId!
    const post = async (door: string, body: object): Promise<[number, unknown]> => {
      const answer = await fetch(`${test.cloud.endpoint}/_sim/${door}`, {
        method: 'POST',
        headers: operatorOf(test.cloud),
        body: JSON.stringify(body),
      })
      return [answer.status, await answer.json()]
    }
    await advanceTo(test, block.StartDate!)
    expect(await post('shorten', { reservation, ends: '3h' })).toEqual([200, {}])
    expect(test.cloud.reservations()[0]!.endsAtMs).toBe(test.clock.nowMs() + 3 * HOUR_MS)
    expect(await post('shorten', { reservation: 'cr-none', ends: '3h' })).toEqual([
      400,
      { error: 'Error: there is no Capacity Block cr-none' },
    ])
    expect((await post('withdraw', { reservation, state: 'active' }))[0]).toBe(400)
    expect(await post('withdraw', { reservation, refundUsd: 1 })).toEqual([200, {}])
    expect((await listed(test))[0]!.State).toBe('cancelled')
  })

  it.each(['cancelled', 'failed', 'unavailable'] as const)(
    'can withdraw a block (%s) with its instances, and pay back some of its price',
    async (state) => {
      const [test, block] = await cloudWithBlock()
      const { cloud, clock } = test
      const id = block.CapacityReservationId!
      await advanceTo(test, block.StartDate!)
      await launchInto(test, block)
      await clock.advance(UP_MS)
      const { upfrontUsd } = cloud.reservations()[0]!.bill
      expect(() => cloud.withdraw(id, { refundUsd: upfrontUsd + 1 })).toThrow('refund no more')
      cloud.withdraw(id, { state, refundUsd: 100 })
      await clock.advance(UP_MS)
      expect((await listed(test))[0]).toMatchObject({ State: state, AvailableInstanceCount: 0 })
      const { CapacityBlocks } = await test.clients.ec2.send(new DescribeCapacityBlocksCommand({}))
      expect(CapacityBlocks![0]!.State).toBe(state)
      expect(cloud.instances().map((each) => each.state)).toEqual(['terminated'])
      expect(cloud.reservations()[0]!.bill.upfrontUsd).toBeCloseTo(upfrontUsd - 100)
      expect(() => cloud.withdraw(id)).toThrow('already')
    },
  )

  it('withdraws a block before the payment of its extension: the extension is not paid for', async () => {
    const [test, block] = await cloudWithBlock()
    const [offering] = await extensionsOf(test, block)
    await extend(test, block, offering!)
    test.cloud.withdraw(block.CapacityReservationId!)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await history(test))[0]!.CapacityBlockExtensionStatus).toBe('payment-failed')
  })
})

describe('an UltraServer', () => {
  it('is sold by its own type, and loses its instances an hour before the end', async () => {
    const ultraserver = 'u-p6e-gb200x72'
    const test = await cloudThatSells({
      blockOfferings: [{ ...PLAN, count: 4, ultraserver, usdPerInstanceHour: 10 }, PLAN],
    })
    const { ec2 } = test.clients
    const ofInstances = await offeringsOf(test)
    expect(ofInstances.map(({ UltraserverType }) => UltraserverType)).toEqual(
      ofInstances.map(() => undefined),
    )
    expect(ofInstances.map(({ InstanceCount }) => InstanceCount)).toEqual(ofInstances.map(() => 2))
    const describe = (UltraserverCount: number) =>
      ec2.send(
        new DescribeCapacityBlockOfferingsCommand({
          UltraserverType: ultraserver,
          UltraserverCount,
          CapacityDurationHours: 24,
        }),
      )
    expect(await code(describe(2))).toBe('InvalidParameterValue')
    const { CapacityBlockOfferings } = await describe(1)
    const offering = CapacityBlockOfferings!.at(-1)!
    expect(offering).toMatchObject({ UltraserverType: ultraserver, UltraserverCount: 1, InstanceCount: 4 })
    const { CapacityReservation: block, CapacityBlocks } = await buy(ec2, offering)
    expect(CapacityBlocks![0]!.UltraserverType).toBe(ultraserver)
    expect(block!.LaunchStatus).toBe('unlaunchable')
    await advanceTo(test, offering.StartDate!)
    expect((await listed(test))[0]).toMatchObject({ LaunchStatus: 'launchable', TotalInstanceCount: 4 })
    await launchInto(test, block!)
    await advanceTo(test, new Date(offering.EndDate!.getTime() - HOUR_MS - 1))
    expect(test.cloud.instances().map(({ state }) => state)).toEqual(['running'])
    await test.clock.advance(UP_MS)
    expect(test.cloud.instances().map(({ state }) => state)).toEqual(['terminated'])
    expect((await listed(test))[0]!.LaunchStatus).toBe('unlaunchable')
  })

  it('can be extended while its instances end, and has room again once that is paid for', async () => {
    const ultraserver = 'u-p6e-gb200x72'
    const test = await cloudThatSells({
      blockOfferings: [{ ...PLAN, ultraserver }],
      reservations: [{ ...PLAN_OF_WORLD, ultraserver, ends: '24h' }],
    })
    const [block] = await listed(test)
    await advanceTo(test, new Date(block!.EndDate!.getTime() - HOUR_MS))
    const [offering] = await extensionsOf(test, block!)
    await extend(test, block!, offering!)
    expect((await listed(test))[0]).toMatchObject({ AvailableInstanceCount: 0, LaunchStatus: 'unlaunchable' })
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test))[0]).toMatchObject({ AvailableInstanceCount: 2, LaunchStatus: 'launchable' })
    await advanceTo(test, new Date(offering!.CapacityBlockExtensionEndDate!.getTime() - HOUR_MS))
    expect((await listed(test))[0]!.LaunchStatus).toBe('unlaunchable')
  })
})
