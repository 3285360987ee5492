import {
  CancelCapacityReservationCommand,
  DescribeCapacityBlocksCommand,
  DescribeCapacityReservationsCommand,
  ModifyCapacityReservationCommand,
  PurchaseCapacityBlockCommand,
  RunInstancesCommand,
  type CapacityReservation,
  type EC2Client,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { FaultText, WorldText } from '../src'
import {
  advanceTo,
  buy,
  cloudThatSells,
  HOUR_MS,
  laterOffering,
  listed,
  MINUTE_MS,
  offeringsOf,
  PLAN,
  TYPE,
  ZONE,
} from './capacity'
import { clientsOf, IMAGE, refusal, stopClouds, type TestCloud } from './support'

afterEach(stopClouds)

describe('the purchase of a Capacity Block', () => {
  it('answers with a reservation and its block, whose payment is pending and then made', async () => {
    const test = await cloudThatSells()
    const offering = await laterOffering(test)
    const { CapacityReservation: bought, CapacityBlocks } = await buy(test.clients.ec2, offering)
    expect(bought).toMatchObject({
      State: 'payment-pending',
      ReservationType: 'capacity-block',
      InstanceMatchCriteria: 'targeted',
      InstanceType: TYPE,
      AvailabilityZone: ZONE,
      TotalInstanceCount: 2,
      AvailableInstanceCount: 0,
      StartDate: offering.StartDate,
      EndDate: offering.EndDate,
      EndDateType: 'limited',
      Tags: [{ Key: 'intent', Value: 'i-1' }],
      CapacityReservationId: expect.stringMatching(/^cr-/),
    })
    expect(CapacityBlocks).toMatchObject([
      {
        CapacityBlockId: bought!.CapacityBlockId,
        CapacityReservationIds: [bought!.CapacityReservationId],
        State: 'payment-pending',
      },
    ])
    expect(await listed(test)).toEqual([bought])
    expect(test.cloud.reservations()[0]!.bill.upfrontUsd).toBe(0)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test))[0]!.State).toBe('scheduled')
    expect(test.cloud.reservations()[0]!.bill.upfrontUsd).toBeCloseTo(Number(offering.UpfrontFee))
    await advanceTo(test, offering.StartDate!)
    expect((await listed(test))[0]).toMatchObject({ State: 'active', AvailableInstanceCount: 2 })
  })

  it('can be neither cancelled nor changed', async () => {
    const test = await cloudThatSells()
    const { ec2 } = test.clients
    const { CapacityReservation: bought } = await buy(ec2, await laterOffering(test))
    const { CapacityReservationId } = bought!
    const calls = [
      ec2.send(new CancelCapacityReservationCommand({ CapacityReservationId })),
      ec2.send(new ModifyCapacityReservationCommand({ CapacityReservationId, InstanceCount: 1 })),
    ]
    for (const call of calls) expect((await refusal(call)).code).toBe('OperationNotPermitted')
  })

  it('tells a dry run what a purchase would be told, and buys nothing', async () => {
    const test = await cloudThatSells()
    const offering = await laterOffering(test)
    expect(await refusal(buy(test.clients.ec2, offering, { DryRun: true }))).toMatchObject({
      code: 'DryRunOperation',
      status: 412,
    })
    const unknown = { CapacityBlockOfferingId: `cb-0${'1'.repeat(16)}` }
    expect((await refusal(buy(test.clients.ec2, unknown, { DryRun: true }))).code).toBe(
      'InvalidCapacityBlockOfferingIdNotFound',
    )
    expect(await listed(test)).toEqual([])
  })

  it('is refused with an unknown offering, a malformed one, tags for something else, or Windows', async () => {
    const test = await cloudThatSells()
    const { ec2 } = test.clients
    const offering = await laterOffering(test)
    const codes = [
      buy(ec2, { CapacityBlockOfferingId: `cb-0${'1'.repeat(16)}` }),
      buy(ec2, { CapacityBlockOfferingId: 'nonsense' }),
      buy(ec2, offering, { TagSpecifications: [{ ResourceType: 'capacity-block', Tags: [] }] }),
      buy(ec2, offering, {
        TagSpecifications: [{ ResourceType: 'capacity-reservation', Tags: [{ Key: 'aws:x', Value: '' }] }],
      }),
      buy(ec2, offering, { InstancePlatform: 'Windows' }),
    ]
    expect(await Promise.all(codes.map(async (call) => (await refusal(call)).code))).toEqual([
      'InvalidCapacityBlockOfferingIdNotFound',
      'InvalidCapacityBlockOfferingIdMalformed',
      'InvalidParameterValue',
      'InvalidParameterValue',
      'InvalidParameterValue',
    ])
    expect(await listed(test)).toEqual([])
  })

  it('is refused in a Region that did not list the offering', async () => {
    const test = await cloudThatSells({
      regions: { 'us-east-1': { zones: [ZONE] }, 'us-west-2': { zones: ['us-west-2a'] } },
    })
    const offering = await laterOffering(test)
    const { ec2 } = clientsOf(test.cloud.endpoint, { region: 'us-west-2' })
    expect((await refusal(buy(ec2, offering))).code).toBe('InvalidCapacityBlockOfferingIdNotFound')
  })
})

describe('the payment of a Capacity Block', () => {
  const faultOf = (fault: FaultText): WorldText => ({ faults: [fault] })
  const later = async (world: WorldText, waitMs: number): Promise<[TestCloud, CapacityReservation]> => {
    const test = await cloudThatSells(world)
    await buy(test.clients.ec2, await laterOffering(test))
    await test.clock.advance(waitMs)
    return [test, (await listed(test))[0]!]
  }

  it('can fail: the block costs nothing and its instances are for sale again', async () => {
    const test = await cloudThatSells({
      ...faultOf({ fault: 'payment-fails', where: { type: TYPE }, times: 1 }),
      blockOfferings: [{ ...PLAN, stock: 2 }],
    })
    const offering = await laterOffering(test)
    await buy(test.clients.ec2, offering)
    expect(await laterOffering(test)).not.toEqual(offering)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test))[0]!.State).toBe('payment-failed')
    expect(test.cloud.reservations()[0]!.bill.upfrontUsd).toBe(0)
    await buy(test.clients.ec2, offering)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await listed(test)).map(({ State }) => State)).toEqual(['payment-failed', 'scheduled'])
  })

  it('can be late, and fails when it takes twelve hours', async () => {
    const [, soon] = await later(faultOf({ fault: 'payment-late', by: '11h' }), 11 * HOUR_MS)
    expect(soon.State).toBe('payment-pending')
    const [test] = await later(faultOf({ fault: 'payment-late', by: '12h' }), 12 * HOUR_MS)
    expect((await listed(test))[0]!.State).toBe('payment-failed')
  })

  it('fails when it is not made five minutes before the start', async () => {
    const test = await cloudThatSells({ durations: { payment: '26m' } })
    const [soonest] = (await offeringsOf(test)).sort((a, b) => Number(a.StartDate) - Number(b.StartDate))
    expect(soonest!.StartDate!.getTime() - test.clock.nowMs()).toBe(30 * MINUTE_MS)
    await buy(test.clients.ec2, soonest!)
    await test.clock.advance(25 * MINUTE_MS - 1)
    expect((await listed(test))[0]!.State).toBe('payment-pending')
    await test.clock.advance(1)
    expect((await listed(test))[0]!.State).toBe('payment-failed')
  })
})

describe('the stock of Capacity Blocks', () => {
  it('is held by what is bought, at the same time only', async () => {
    const test = await cloudThatSells({ blockOfferings: [{ ...PLAN, stock: 3 }] })
    const offering = await laterOffering(test)
    const { ec2 } = test.clients
    await buy(ec2, offering)
    expect((await refusal(buy(ec2, offering))).code).toBe('InvalidCapacityBlockOfferingIdExpired')
    const left = await offeringsOf(test)
    const overlaps = left.filter(
      ({ StartDate, EndDate }) => StartDate! < offering.EndDate! && EndDate! > offering.StartDate!,
    )
    expect(left.length).toBeGreaterThan(0)
    expect(overlaps).toEqual([])
    // One instance is left in addition to the block.
    const single = await offeringsOf(test, 1)
    expect(single.some(({ StartDate }) => Number(StartDate) === Number(offering.StartDate))).toBe(true)
  })

  it('changes over time: an offering disappears between search and purchase, and returns', async () => {
    const test = await cloudThatSells({
      blockOfferings: [
        {
          ...PLAN,
          stock: [
            [0, 8],
            ['1h', 0],
            ['2h', 8],
          ],
        },
      ],
    })
    const offering = await laterOffering(test)
    await test.clock.advance(HOUR_MS)
    expect(await offeringsOf(test)).toEqual([])
    expect((await refusal(buy(test.clients.ec2, offering))).code).toBe(
      'InvalidCapacityBlockOfferingIdExpired',
    )
    await test.clock.advance(HOUR_MS)
    expect((await offeringsOf(test)).length).toBeGreaterThan(0)
    await buy(test.clients.ec2, offering)
    expect(await listed(test)).toHaveLength(1)
  })

  it('can be sold to another customer in between, for a while', async () => {
    const test = await cloudThatSells({ faults: [{ fault: 'offering-sold', for: '1h', times: 1 }] })
    const offering = await laterOffering(test)
    const idsNow = async (): Promise<(string | undefined)[]> =>
      (await offeringsOf(test)).map(({ CapacityBlockOfferingId: id }) => id)
    expect((await refusal(buy(test.clients.ec2, offering))).code).toBe(
      'InvalidCapacityBlockOfferingIdExpired',
    )
    expect(await listed(test)).toEqual([])
    expect(await idsNow()).not.toContain(offering.CapacityBlockOfferingId)
    await test.clock.advance(HOUR_MS)
    await buy(test.clients.ec2, offering)
    expect(await listed(test)).toHaveLength(1)
  })

  it('has prices that change; an offering keeps its price, or is gone where the world says so', async () => {
    const plan = {
      ...PLAN,
      usdPerInstanceHour: [
        [0, 30],
        ['1h', 40],
      ] as [number | string, number][],
    }
    for (const keepsPrice of [true, false]) {
      const test = await cloudThatSells({ blockOfferings: [plan], blockMarket: { keepsPrice } })
      const offering = await laterOffering(test)
      expect(Number(offering.UpfrontFee)).toBeCloseTo(30 * 2 * 48)
      await test.clock.advance(HOUR_MS)
      const now = await laterOffering(test)
      expect(Number(now.UpfrontFee)).toBeCloseTo(40 * 2 * 48)
      expect(now.CapacityBlockOfferingId).not.toBe(offering.CapacityBlockOfferingId)
      const purchase = buy(test.clients.ec2, offering)
      if (!keepsPrice) {
        expect((await refusal(purchase)).code).toBe('InvalidCapacityBlockOfferingIdExpired')
        continue
      }
      await purchase
      await test.clock.advance(10 * MINUTE_MS)
      expect(test.cloud.reservations()[0]!.bill.upfrontUsd).toBeCloseTo(30 * 2 * 48)
    }
  })

  it('sells one offering twice, or once where the world says so', async () => {
    for (const sellsTwice of [true, false]) {
      const test = await cloudThatSells({ blockMarket: { sellsTwice } })
      const offering = await laterOffering(test)
      await buy(test.clients.ec2, offering)
      const second = buy(test.clients.ec2, offering)
      if (sellsTwice) await second
      else expect((await refusal(second)).code).toBe('InvalidCapacityBlockOfferingIdExpired')
      expect(await listed(test)).toHaveLength(sellsTwice ? 2 : 1)
      const again = (await laterOffering(test)).CapacityBlockOfferingId
      expect(again === offering.CapacityBlockOfferingId).toBe(sellsTwice)
    }
  })

  it('has no offering whose start has passed', async () => {
    const test = await cloudThatSells()
    const offering = await laterOffering(test)
    await advanceTo(test, offering.StartDate!)
    expect((await refusal(buy(test.clients.ec2, offering))).code).toBe(
      'InvalidCapacityBlockOfferingIdExpired',
    )
  })
})

describe('a launch into a block that has not begun', () => {
  it.each([
    [{}, 'ReservationCapacityExceeded'],
    [
      { earlyLaunch: 'InvalidCapacityReservationState.PendingActivation' as const },
      'InvalidCapacityReservationState.PendingActivation',
    ],
  ])('is refused as the world says (%j)', async (blockMarket, code) => {
    const test = await cloudThatSells({ blockMarket })
    const { CapacityReservation: block } = await buy(test.clients.ec2, await laterOffering(test))
    const { CapacityReservationId } = block!
    const launch = () =>
      test.clients.ec2.send(
        new RunInstancesCommand({
          ImageId: IMAGE,
          InstanceType: TYPE,
          MinCount: 1,
          MaxCount: 1,
          Placement: { AvailabilityZone: ZONE },
          InstanceMarketOptions: { MarketType: 'capacity-block' },
          CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId } },
        }),
      )
    expect((await refusal(launch())).code).toBe(code)
    await test.clock.advance(10 * MINUTE_MS)
    expect((await refusal(launch())).code).toBe(code)
    await advanceTo(test, block!.EndDate!)
    expect((await refusal(launch())).code).toBe('ReservationCapacityExceeded')
  })
})

describe('an uncertain purchase', () => {
  it.each(['reset', 'internal-error', 'unavailable'] as const)(
    'is made although its answer is lost (%s), and again by a client that retries',
    async (instead) => {
      const test = await cloudThatSells()
      const offering = await laterOffering(test)
      const where = { action: 'PurchaseCapacityBlock' }
      test.cloud.addFault({ fault: 'lost-answer', instead, where, times: 1 })
      await refusal(buy(test.clients.ec2, offering))
      expect(await listed(test)).toMatchObject([{ Tags: [{ Key: 'intent', Value: 'i-1' }] }])
      // The SDK sends it again automatically: there is no token that would prevent a second block.
      test.cloud.addFault({ fault: 'lost-answer', instead, where, times: 1 })
      await buy(clientsOf(test.cloud.endpoint, { maxAttempts: 3 }).ec2, offering)
      expect(await listed(test)).toHaveLength(3)
      const calls = test.cloud.journal.calls({ action: 'PurchaseCapacityBlock' })
      expect(calls.map(({ isAnswerLost }) => isAnswerLost)).toEqual([true, true, false])
    },
  )

  it('is made although its client has stopped waiting for the answer', async () => {
    const test = await cloudThatSells({
      faults: [{ fault: 'lost-answer', instead: 'silence', where: { action: 'PurchaseCapacityBlock' } }],
    })
    const offering = await laterOffering(test)
    const abort = new AbortController()
    const call = test.clients.ec2.send(
      new PurchaseCapacityBlockCommand({
        CapacityBlockOfferingId: offering.CapacityBlockOfferingId,
        InstancePlatform: 'Linux/UNIX',
      }),
      { abortSignal: abort.signal },
    )
    const outcome = refusal(call)
    while ((await listed(test)).length === 0) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    expect((await outcome).code).toBe('AbortError')
  })

  it('is not made when the call is refused or late', async () => {
    const test = await cloudThatSells({
      faults: [
        { fault: 'error', code: 'InternalError', where: { action: 'PurchaseCapacityBlock' }, times: 1 },
        { fault: 'slow', by: '10s', where: { action: 'PurchaseCapacityBlock' }, times: 1 },
      ],
    })
    const offering = await laterOffering(test)
    const late = buy(test.clients.ec2, offering).catch(({ name }: Error) => name)
    while (test.clock.nextMs() === undefined) await new Promise((resolve) => setImmediate(resolve))
    expect(await listed(test)).toEqual([])
    await test.clock.advance(10_000)
    expect(await late).toBe('InternalError')
    expect(await listed(test)).toEqual([])
  })

  it('is not listed for a while where lists lag behind, by its id neither', async () => {
    const test = await cloudThatSells({ faults: [{ fault: 'stale-list', for: '2m' }] })
    const { ec2 } = test.clients
    const { CapacityReservation: bought } = await buy(ec2, await laterOffering(test))
    const CapacityReservationIds = [bought!.CapacityReservationId!]
    const byId = () => ec2.send(new DescribeCapacityReservationsCommand({ CapacityReservationIds }))
    expect(await listed(test)).toEqual([])
    expect((await ec2.send(new DescribeCapacityBlocksCommand({}))).CapacityBlocks).toEqual([])
    expect((await refusal(byId())).code).toBe('InvalidCapacityReservationId.NotFound')
    await test.clock.advance(2 * MINUTE_MS)
    expect(await listed(test)).toHaveLength(1)
    expect((await ec2.send(new DescribeCapacityBlocksCommand({}))).CapacityBlocks).toHaveLength(1)
    expect((await byId()).CapacityReservations).toHaveLength(1)
  })

  it('is found by its tags, unless the world refuses such filters', async () => {
    for (const filtersByTag of [true, false]) {
      const test = await cloudThatSells({ blockMarket: { filtersByTag } })
      await buy(test.clients.ec2, await laterOffering(test))
      const found = listed(test, [{ Name: 'tag:intent', Values: ['i-1'] }])
      if (filtersByTag) expect(await found).toHaveLength(1)
      else expect((await refusal(found)).code).toBe('InvalidParameterValue')
      expect((await listed(test))[0]!.Tags).toEqual([{ Key: 'intent', Value: 'i-1' }])
    }
  })
})

describe('the right to purchase', () => {
  const allowing = (actions: string[], condition?: object): object => ({
    Statement: [
      { Effect: 'Allow', Action: actions, Resource: '*', ...(condition && { Condition: condition }) },
    ],
  })
  const user = (name: string, policy: object) => ({
    accessKeyId: name,
    secretAccessKey: name,
    policies: { own: policy as never },
  })
  const BUYER = ['ec2:DescribeCapacityBlockOfferings', 'ec2:PurchaseCapacityBlock', 'ec2:CreateTags']

  it('belongs to the callers whose policies grant it, tags included', async () => {
    const tagged = { 'ForAnyValue:StringLike': { 'aws:RequestTag/intent': '*' } }
    const test = await cloudThatSells({
      users: {
        buyer: user('buyer', allowing(BUYER, tagged)),
        worker: user('worker', allowing(BUYER.slice(0, 1))),
        untagged: user('untagged', allowing(BUYER.slice(0, 2))),
      },
    })
    const as = (name: string): EC2Client =>
      clientsOf(test.cloud.endpoint, { accessKeyId: name, secretAccessKey: name }).ec2
    const offering = await laterOffering(test)
    const refused = [
      buy(as('worker'), offering),
      buy(as('worker'), offering, { DryRun: true }),
      buy(as('untagged'), offering),
      buy(as('buyer'), offering, { TagSpecifications: [] }),
    ]
    for (const call of refused)
      expect(await refusal(call)).toMatchObject({ code: 'UnauthorizedOperation', status: 403 })
    expect(await listed(test)).toEqual([])
    await buy(as('buyer'), offering)
    await buy(as('untagged'), offering, { TagSpecifications: [] })
    expect(await listed(test)).toHaveLength(2)
  })
})
