import {
  CancelCapacityReservationCommand,
  CreateCapacityReservationBySplittingCommand,
  CreateCapacityReservationCancellationQuoteCommand,
  CreateCapacityReservationDateChangeQuoteCommand,
  CreateCapacityReservationCommand,
  DescribeCapacityReservationCancellationQuotesCommand,
  ModifyCapacityReservationCommand,
  RunInstancesCommand,
  type CancelCapacityReservationCommandInput,
  type CapacityReservation,
  type CapacityReservationCancellationQuote,
  type CreateCapacityReservationCommandInput,
  type ModifyCapacityReservationCommandInput,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src'
import { advanceTo, DAY_MS, HOUR_MS, listed, MINUTE_MS, TAGS, ZONE } from './capacity'
import { clientsOf, IMAGE, refusal, stopClouds, testCloud, UP_MS, type TestCloud } from './support'

afterEach(stopClouds)

const TYPE = 'g5.4xlarge'
/** On demand, for each hour and instance. */
const USD_PER_HOUR = 1.624
const COMMITMENT_DAYS = 20

const quietCloud = (world: WorldText = {}): Promise<TestCloud> =>
  testCloud({ durations: { assessment: '1d' }, quotas: { 'L-DB2E81BA': 10_000 }, ...world })

/** Requests two instances, at once. */
async function reserve(
  { clients }: TestCloud,
  more: Partial<CreateCapacityReservationCommandInput> = {},
): Promise<CapacityReservation> {
  const made = await clients.ec2.send(
    new CreateCapacityReservationCommand({
      InstanceType: TYPE,
      InstancePlatform: 'Linux/UNIX',
      InstanceCount: 2,
      AvailabilityZone: ZONE,
      InstanceMatchCriteria: 'targeted',
      TagSpecifications: TAGS,
      ...more,
    }),
  )
  return made.CapacityReservation!
}

/** Requests two instances in ten days, for twenty days or more. */
const reserveAhead = (
  test: TestCloud,
  more: Partial<CreateCapacityReservationCommandInput> = {},
): Promise<CapacityReservation> =>
  reserve(test, {
    StartDate: new Date(test.clock.nowMs() + 10 * DAY_MS),
    DeliveryPreference: 'incremental',
    CommitmentDuration: (COMMITMENT_DAYS * DAY_MS) / 1000,
    ...more,
  })

/** A future-dated reservation that is accepted, or delivered. */
async function cloudAhead(
  until: 'scheduled' | 'active',
  world: WorldText = {},
): Promise<[TestCloud, CapacityReservation]> {
  const test = await quietCloud(world)
  const reservation = await reserveAhead(test)
  if (until === 'scheduled') await test.clock.advance(DAY_MS)
  else await advanceTo(test, reservation.StartDate!)
  expect(await stateOf(test)).toBe(until)
  return [test, reservation]
}

const stateOf = async (test: TestCloud): Promise<string | undefined> => (await listed(test))[0]?.State
const code = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).code

const modify = (
  { clients }: TestCloud,
  { CapacityReservationId }: CapacityReservation,
  more: Partial<ModifyCapacityReservationCommandInput>,
) => clients.ec2.send(new ModifyCapacityReservationCommand({ CapacityReservationId, ...more }))

const cancel = (
  { clients }: TestCloud,
  { CapacityReservationId }: CapacityReservation,
  more: Partial<CancelCapacityReservationCommandInput> = {},
) => clients.ec2.send(new CancelCapacityReservationCommand({ CapacityReservationId, ...more }))

const withQuote = (quote: CapacityReservationCancellationQuote) => ({
  ApplyCancellationCharges: 'commitment-wind-down' as const,
  QuoteId: quote.CapacityReservationCancellationQuoteId,
})

async function quoteFor(
  { clients }: TestCloud,
  { CapacityReservationId }: CapacityReservation,
  ClientToken?: string,
): Promise<CapacityReservationCancellationQuote> {
  const made = await clients.ec2.send(
    new CreateCapacityReservationCancellationQuoteCommand({ CapacityReservationId, ClientToken }),
  )
  return made.CapacityReservationCancellationQuote!
}

describe('a future-dated reservation', () => {
  it('is assessed, scheduled, and delivered at its start, with a commitment', async () => {
    const test = await quietCloud()
    const made = await reserveAhead(test)
    const commitmentEnd = new Date(made.StartDate!.getTime() + COMMITMENT_DAYS * DAY_MS)
    expect(made).toMatchObject({
      State: 'assessing',
      AvailableInstanceCount: 0,
      TotalInstanceCount: 2,
      EndDateType: 'unlimited',
      DeliveryPreference: 'incremental',
      Tags: [{ Key: 'intent', Value: 'i-1' }],
      CapacityAllocations: [{ AllocationType: 'future', Count: 2 }],
      CommitmentInfo: { CommittedInstanceCount: 2, CommitmentDuration: COMMITMENT_DAYS * 24 * 3600 },
    })
    expect(made.CommitmentInfo!.CommitmentEndDate).toEqual(commitmentEnd)
    await test.clock.advance(DAY_MS)
    expect(await stateOf(test)).toBe('scheduled')
    await advanceTo(test, new Date(made.StartDate!.getTime() - 1))
    expect(await stateOf(test)).toBe('scheduled')
    expect(test.cloud.reservations()[0]!.bill.idleUsd).toBe(0)
    await test.clock.advance(1)
    expect((await listed(test))[0]).toMatchObject({ State: 'active', AvailableInstanceCount: 2 })
    await test.clock.advance(HOUR_MS)
    const [{ bill, notices }] = test.cloud.reservations() as [ReturnType<typeof test.cloud.reserve>]
    expect(bill.idleUsd).toBeCloseTo(2 * USD_PER_HOUR)
    expect(notices).toEqual(['EC2 Capacity Reservation Scheduled', 'EC2 Capacity Reservation Active'])
  })

  it('is requested once for each client token, also when it could no longer be requested', async () => {
    const test = await quietCloud()
    const StartDate = new Date(test.clock.nowMs() + 5 * DAY_MS)
    test.cloud.addFault({
      fault: 'lost-answer',
      where: { action: 'CreateCapacityReservation' },
      times: 1,
    })
    await refusal(reserveAhead(test, { StartDate, ClientToken: 'intent-1' }))
    await test.clock.advance(MINUTE_MS)
    const [made] = await listed(test)
    expect(await reserveAhead(test, { StartDate, ClientToken: 'intent-1' })).toEqual(made)
    expect(await code(reserveAhead(test, { StartDate, ClientToken: 'intent-2' }))).toBe(
      'InvalidParameterValue',
    )
    expect(await code(reserveAhead(test, { StartDate, ClientToken: 'intent-1', InstanceCount: 3 }))).toBe(
      'IdempotentParameterMismatch',
    )
    expect(await listed(test)).toHaveLength(1)
  })

  it('can be refused after its assessment, and is shown for 30 more days', async () => {
    const test = await quietCloud({ faults: [{ fault: 'reservation-unsupported', where: { type: TYPE } }] })
    await reserveAhead(test)
    await test.clock.advance(DAY_MS)
    expect(await stateOf(test)).toBe('unsupported')
    await test.clock.advance(30 * DAY_MS - 1)
    expect(await stateOf(test)).toBe('unsupported')
    await test.clock.advance(1)
    expect(await listed(test)).toEqual([])
    expect(test.cloud.reservations()[0]!.bill).toEqual({ upfrontUsd: 0, idleUsd: 0 })
  })

  it('can be delivered late: its commitment counts from the delivery, and it can be cancelled meanwhile', async () => {
    const late = { faults: [{ fault: 'reservation-late', by: '3d' }] } satisfies WorldText
    const test = await quietCloud(late)
    const made = await reserveAhead(test)
    await advanceTo(test, made.StartDate!)
    expect(await stateOf(test)).toBe('delayed')
    await test.clock.advance(3 * DAY_MS)
    const [delivered] = await listed(test)
    expect(delivered!.State).toBe('active')
    const commitmentEnd = delivered!.CommitmentInfo!.CommitmentEndDate!
    expect(commitmentEnd.getTime() - test.clock.nowMs()).toBe(COMMITMENT_DAYS * DAY_MS)
    const other = await quietCloud(late)
    const waiting = await reserveAhead(other)
    await advanceTo(other, waiting.StartDate!)
    await cancel(other, waiting)
    expect(await stateOf(other)).toBe('cancelled')
    expect(other.cloud.reservations()[0]!.bill.idleUsd).toBe(0)
  })

  it.each<[string, Partial<CreateCapacityReservationCommandInput>, string]>([
    ['without a commitment', { CommitmentDuration: undefined }, 'MissingParameter'],
    ['without a delivery preference', { DeliveryPreference: undefined }, 'MissingParameter'],
    ['for less than 14 days', { CommitmentDuration: 14 * 86_400 - 1 }, 'InvalidParameterValue'],
    ['that is open', { InstanceMatchCriteria: 'open' }, 'InvalidParameterValue'],
    ['of a P type', { InstanceType: 'p5.48xlarge' }, 'InvalidParameterValue'],
    ['of less than 32 vCPUs', { InstanceCount: 1 }, 'InvalidParameterValue'],
    ['that begins too soon', { StartDate: new Date(Date.now() + 4 * DAY_MS) }, 'InvalidParameterValue'],
    ['that begins too late', { StartDate: new Date(Date.now() + 121 * DAY_MS) }, 'InvalidParameterValue'],
    [
      'that ends within its commitment',
      { EndDateType: 'limited', EndDate: new Date(Date.now() + 29 * DAY_MS) },
      'InvalidParameterValue',
    ],
  ])('is refused %s', async (_, more, expected) => {
    const test = await quietCloud()
    expect(await code(reserveAhead(test, more))).toBe(expected)
    expect(await listed(test)).toEqual([])
  })

  it('cannot be changed before its delivery, and little within its commitment', async () => {
    const [test, made] = await cloudAhead('scheduled')
    expect(await code(modify(test, made, { InstanceCount: 3 }))).toBe('InvalidCapacityReservationState')
    await advanceTo(test, made.StartDate!)
    const end = (days: number) => ({
      EndDateType: 'limited' as const,
      EndDate: new Date(made.StartDate!.getTime() + days * DAY_MS),
    })
    expect(await code(modify(test, made, { InstanceCount: 1 }))).toBe('OperationNotPermitted')
    expect(await code(modify(test, made, end(COMMITMENT_DAYS - 1)))).toBe('OperationNotPermitted')
    await modify(test, made, { InstanceCount: 3 })
    await modify(test, made, end(COMMITMENT_DAYS))
    expect((await listed(test))[0]).toMatchObject({ TotalInstanceCount: 3, EndDateType: 'limited' })
    await test.clock.advance(COMMITMENT_DAYS * DAY_MS - 1)
    expect(await stateOf(test)).toBe('active')
    await test.clock.advance(1)
    expect(await stateOf(test)).toBe('expired')
  })
})

describe('a later start of a future-dated reservation', () => {
  const quote = async (
    { clients }: TestCloud,
    { CapacityReservationId }: CapacityReservation,
    NewStartDate: Date,
  ) => {
    const input = { CapacityReservationId, NewStartDate }
    const made = await clients.ec2.send(new CreateCapacityReservationDateChangeQuoteCommand(input))
    return made.CapacityReservationModificationQuote!
  }

  it('needs a quote that is accepted, moves the commitment, and is 30 days away at most', async () => {
    const [test, reservation] = await cloudAhead('scheduled')
    const later = (days: number): Date => new Date(reservation.StartDate!.getTime() + days * DAY_MS)
    expect(await code(modify(test, reservation, { StartDate: later(3) }))).toBe('OperationNotPermitted')
    expect(await code(quote(test, reservation, later(31)))).toBe('InvalidParameterValue')
    expect(await code(quote(test, reservation, later(-1)))).toBe('InvalidParameterValue')
    const terms = await quote(test, reservation, later(3))
    expect(terms.ModificationTerms!.ReservationUpdate).toMatchObject({
      NewStartDate: later(3),
      NewCommitmentEndDate: later(3 + COMMITMENT_DAYS),
    })
    const accepted = {
      QuoteId: terms.CapacityReservationModificationQuoteId,
      AcceptModificationTerms: true,
    }
    expect(await code(modify(test, reservation, { StartDate: later(4), ...accepted }))).toBe(
      'InvalidParameterValue',
    )
    await modify(test, reservation, { StartDate: later(3), ...accepted })
    expect(await code(modify(test, reservation, { StartDate: later(3), ...accepted }))).toBe(
      'InvalidParameterValue',
    )
    // All changes count from the first start.
    expect(await code(quote(test, reservation, later(31)))).toBe('InvalidParameterValue')
    await advanceTo(test, later(3 - 1e-6))
    expect(await stateOf(test)).toBe('scheduled')
    await advanceTo(test, later(3))
    expect(await stateOf(test)).toBe('active')
    expect((await listed(test))[0]!.CommitmentInfo!.CommitmentEndDate).toEqual(later(3 + COMMITMENT_DAYS))
    expect(await code(quote(test, reservation, later(5)))).toBe('OperationNotPermitted')
  })
})

describe('the cancellation of a future-dated reservation', () => {
  it('is free while it is assessed, and after its commitment', async () => {
    const test = await quietCloud()
    const first = await reserveAhead(test)
    expect(await code(quoteFor(test, first))).toBe('OperationNotPermitted')
    await cancel(test, first)
    expect(await stateOf(test)).toBe('cancelled')
    const [later, second] = await cloudAhead('active')
    await later.clock.advance(COMMITMENT_DAYS * DAY_MS)
    await cancel(later, second)
    expect(await stateOf(later)).toBe('cancelled')
  })

  it('needs a quote within the commitment, and is charged to its end', async () => {
    const [test, made] = await cloudAhead('active')
    await test.clock.advance(5 * DAY_MS)
    expect(await code(cancel(test, made))).toBe('OperationNotPermitted')
    const quote = await quoteFor(test, made)
    const commitmentEnd = new Date(test.clock.nowMs() + 15 * DAY_MS)
    expect(quote).toMatchObject({
      QuoteState: 'active',
      CapacityReservationId: made.CapacityReservationId,
      ExpirationTime: new Date(test.clock.nowMs() + DAY_MS),
      CurrentConfiguration: { InstanceCount: 2, ReservationState: 'active' },
      CancellationTerms: [
        {
          CancellationType: 'commitment-wind-down',
          ReservationState: 'cancelling',
          CommittedInstanceCount: 2,
          ChargeCommitmentDurationHours: 15 * 24,
          ChargeEndDate: commitmentEnd,
        },
      ],
    })
    await cancel(test, made, withQuote(quote))
    expect((await listed(test))[0]).toMatchObject({
      State: 'cancelling',
      AvailableInstanceCount: 0,
      CapacityAllocations: [{ AllocationType: 'cancelling', Count: 2 }],
    })
    expect(await code(cancel(test, made, withQuote(quote)))).toBe('InvalidCapacityReservationState')
    await advanceTo(test, commitmentEnd)
    expect(await stateOf(test)).toBe('cancelled')
    await test.clock.advance(DAY_MS)
    const { idleUsd } = test.cloud.reservations()[0]!.bill
    expect(idleUsd).toBeCloseTo(COMMITMENT_DAYS * 24 * 2 * USD_PER_HOUR)
  })

  it('is charged a share of the commitment before the start', async () => {
    for (const [cancellationShare, days] of [
      [0.25, 5],
      [0, 0],
    ] as const) {
      const [test, made] = await cloudAhead('scheduled', { cancellationShare })
      await cancel(test, made, withQuote(await quoteFor(test, made)))
      expect(await stateOf(test)).toBe(days === 0 ? 'cancelled' : 'cancelling')
      await test.clock.advance(COMMITMENT_DAYS * DAY_MS)
      expect(await stateOf(test)).toBe('cancelled')
      expect(test.cloud.reservations()[0]!.bill.idleUsd).toBeCloseTo(days * 24 * 2 * USD_PER_HOUR)
    }
  })

  it('refuses a quote that has expired, is of another reservation, or is not needed', async () => {
    const test = await quietCloud()
    const [made, second] = [await reserveAhead(test), await reserveAhead(test)]
    const other = await reserve(test)
    await test.clock.advance(DAY_MS)
    const quote = await quoteFor(test, made)
    expect(await code(cancel(test, other, withQuote(quote)))).toBe('InvalidParameterCombination')
    expect(await code(cancel(test, second, withQuote(quote)))).toBe('InvalidParameterValue')
    await test.clock.advance(DAY_MS)
    expect(await code(cancel(test, made, withQuote(quote)))).toBe('InvalidParameterValue')
    const { CapacityReservationCancellationQuotes } = await test.clients.ec2.send(
      new DescribeCapacityReservationCancellationQuotesCommand({}),
    )
    expect(CapacityReservationCancellationQuotes).toEqual([{ ...quote, QuoteState: 'expired' }])
    expect((await listed(test)).map(({ State }) => State)).toEqual(['scheduled', 'scheduled', 'active'])
  })

  it('gets one quote for each client token', async () => {
    const [test, made] = await cloudAhead('scheduled')
    const ids = await Promise.all(
      ['a', 'a', 'b'].map(
        async (token) => (await quoteFor(test, made, token)).CapacityReservationCancellationQuoteId,
      ),
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toBe(ids[1])
    await advanceTo(test, new Date(made.StartDate!.getTime() + COMMITMENT_DAYS * DAY_MS))
    const again = await quoteFor(test, made, 'a')
    expect([again.CapacityReservationCancellationQuoteId, again.QuoteState]).toEqual([ids[0], 'expired'])
  })
})

describe('an on-demand reservation', () => {
  it('can be pending at first: it keeps its stock, costs nothing and cannot be changed', async () => {
    const test = await quietCloud({
      faults: [{ fault: 'reservation-pending', for: '5m', times: 1 }],
      stock: [{ type: TYPE, capacity: 'on-demand', count: 2 }],
    })
    const made = await reserve(test)
    expect(made).toMatchObject({ State: 'pending', AvailableInstanceCount: 0 })
    expect(await code(reserve(test, { InstanceCount: 1 }))).toBe('InsufficientInstanceCapacity')
    for (const call of [modify(test, made, { InstanceCount: 1 }), cancel(test, made)])
      expect(await code(call)).toBe('InvalidCapacityReservationState')
    await test.clock.advance(5 * MINUTE_MS)
    expect((await listed(test))[0]).toMatchObject({ State: 'active', AvailableInstanceCount: 2 })
    expect(test.cloud.reservations()[0]!.bill.idleUsd).toBe(0)
  })

  it('can fail after it was accepted, and is shown for another hour', async () => {
    const test = await quietCloud({ faults: [{ fault: 'reservation-pending', for: '5m', fails: true }] })
    await reserve(test)
    await test.clock.advance(5 * MINUTE_MS)
    expect(await stateOf(test)).toBe('failed')
    await test.clock.advance(HOUR_MS - 1)
    expect(await stateOf(test)).toBe('failed')
    await test.clock.advance(1)
    expect(await listed(test)).toEqual([])
  })

  it('with an end date ends up to an hour later, where the world says so', async () => {
    const test = await quietCloud({ durations: { endDelay: '1h' } })
    const EndDate = new Date(test.clock.nowMs() + DAY_MS)
    await reserve(test, { EndDateType: 'limited', EndDate })
    await test.clock.advance(DAY_MS + HOUR_MS - 1)
    expect(await stateOf(test)).toBe('active')
    await test.clock.advance(1)
    expect(await stateOf(test)).toBe('expired')
    expect(test.cloud.reservations()[0]!.notices).toEqual(['EC2 Capacity Reservation Expired'])
  })

  it('needs the right to create tags', async () => {
    const statement = { Effect: 'Allow', Action: 'ec2:CreateCapacityReservation', Resource: '*' }
    const policies = { own: { Statement: [statement] } }
    const user = { accessKeyId: 'user', secretAccessKey: 'user', policies }
    const test = await quietCloud({ users: { user } })
    const as = {
      ...test,
      clients: clientsOf(test.cloud.endpoint, { accessKeyId: 'user', secretAccessKey: 'user' }),
    }
    expect(await code(reserve(as))).toBe('UnauthorizedOperation')
    await reserve(as, { TagSpecifications: [] })
    expect(await listed(test)).toHaveLength(1)
  })
})

describe('splitting an on-demand reservation', () => {
  const split = (
    { clients }: TestCloud,
    { CapacityReservationId }: CapacityReservation,
    { count, token }: { count: number; token?: string },
  ) =>
    clients.ec2.send(
      new CreateCapacityReservationBySplittingCommand({
        SourceCapacityReservationId: CapacityReservationId,
        InstanceCount: count,
        ClientToken: token,
        TagSpecifications: [{ ResourceType: 'capacity-reservation', Tags: [{ Key: 'new', Value: 'yes' }] }],
      }),
    )

  it('moves free places to a new reservation with its own tags, once for each token', async () => {
    const test = await quietCloud({
      stock: [{ type: TYPE, capacity: 'on-demand', count: 5 }],
      faults: [{ fault: 'reservation-pending', for: '5m', from: '1m' }],
    })
    const source = await reserve(test, { InstanceCount: 5 })
    await test.clock.advance(2 * MINUTE_MS)
    const first = await split(test, source, { count: 2, token: 't' })
    expect(first).toMatchObject({
      InstanceCount: 2,
      SourceCapacityReservation: {
        TotalInstanceCount: 3,
        CapacityReservationId: source.CapacityReservationId,
      },
      DestinationCapacityReservation: {
        TotalInstanceCount: 2,
        AvailableInstanceCount: 2,
        State: 'active',
        InstanceType: TYPE,
        InstanceMatchCriteria: 'targeted',
        Tags: [{ Key: 'new', Value: 'yes' }],
      },
    })
    const again = await split(test, source, { count: 2, token: 't' })
    expect(again).toMatchObject({
      DestinationCapacityReservation: {
        CapacityReservationId: first.DestinationCapacityReservation!.CapacityReservationId,
      },
    })
    expect((await listed(test)).map(({ TotalInstanceCount: count }) => count)).toEqual([3, 2])
  })

  it('leaves one place, and those in use', async () => {
    const test = await quietCloud()
    const source = await reserve(test, { InstanceCount: 4 })
    expect(await code(split(test, source, { count: 4 }))).toBe('InvalidParameterValue')
    const { CapacityReservationId } = source
    await test.clients.ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        InstanceType: TYPE,
        MinCount: 2,
        MaxCount: 2,
        Placement: { AvailabilityZone: ZONE },
        CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId } },
      }),
    )
    await test.clock.advance(UP_MS)
    expect(await code(split(test, source, { count: 3 }))).toBe('InvalidParameterValue')
    await split(test, source, { count: 2 })
    expect((await listed(test)).map(({ AvailableInstanceCount: free }) => free)).toEqual([0, 2])
  })

  it('is refused for a Capacity Block, and within a commitment', async () => {
    const [test, made] = await cloudAhead('active')
    expect(await code(split(test, made, { count: 1 }))).toBe('OperationNotPermitted')
    test.cloud.reserve({ kind: 'capacity-block', type: TYPE, zone: ZONE, count: 2, ends: '48h' })
    const block = (await listed(test)).find(({ ReservationType: kind }) => kind === 'capacity-block')!
    expect(await code(split(test, block, { count: 1 }))).toBe('OperationNotPermitted')
    await test.clock.advance(COMMITMENT_DAYS * DAY_MS)
    await split(test, made, { count: 1 })
  })
})
