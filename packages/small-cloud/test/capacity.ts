/** What the tests of purchases share: a cloud that sells Capacity Blocks, and its buyer. */
import {
  DescribeCapacityBlockOfferingsCommand,
  DescribeCapacityReservationsCommand,
  PurchaseCapacityBlockCommand,
  type CapacityBlockOffering,
  type CapacityReservation,
  type EC2Client,
  type PurchaseCapacityBlockCommandInput,
  type PurchaseCapacityBlockResult,
} from '@aws-sdk/client-ec2'
import type { WorldText } from '../src'
import { testCloud, type TestCloud } from './support'

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
export const TYPE = 'p5.48xlarge'
export const ZONE = 'us-east-1a'
export const PLAN = { type: TYPE, zone: ZONE, count: 8, usdPerInstanceHour: 30 } as const
export const TAGS = [
  { ResourceType: 'capacity-reservation' as const, Tags: [{ Key: 'intent', Value: 'i-1' }] },
]

export const cloudThatSells = (world: WorldText = {}): Promise<TestCloud> =>
  testCloud({ durations: { payment: '10m' }, blockOfferings: [PLAN], ...world })

export async function offeringsOf(
  { clients }: TestCloud,
  InstanceCount = 2,
): Promise<CapacityBlockOffering[]> {
  const { CapacityBlockOfferings } = await clients.ec2.send(
    new DescribeCapacityBlockOfferingsCommand({
      InstanceType: TYPE,
      InstanceCount,
      CapacityDurationHours: 48,
    }),
  )
  return CapacityBlockOfferings!
}

/** An offering that begins a day from now or later, so that its id does not depend on the minute. */
export async function laterOffering(test: TestCloud, count = 2): Promise<CapacityBlockOffering> {
  const all = await offeringsOf(test, count)
  return all.find(({ StartDate }) => StartDate!.getTime() - test.clock.nowMs() > DAY_MS)!
}

export function buy(
  ec2: EC2Client,
  { CapacityBlockOfferingId }: CapacityBlockOffering,
  more: Partial<PurchaseCapacityBlockCommandInput> = {},
): Promise<PurchaseCapacityBlockResult> {
  return ec2.send(
    new PurchaseCapacityBlockCommand({
      CapacityBlockOfferingId,
      InstancePlatform: 'Linux/UNIX',
      TagSpecifications: TAGS,
      ...more,
    }),
  )
}

export async function listed({ clients }: TestCloud, Filters: object[] = []): Promise<CapacityReservation[]> {
  const { CapacityReservations } = await clients.ec2.send(
    new DescribeCapacityReservationsCommand({ Filters }),
  )
  return CapacityReservations!
}

/** Moves the clock to an instant. */
export const advanceTo = ({ clock }: TestCloud, instant: Date): Promise<void> =>
  clock.advance(instant.getTime() - clock.nowMs())
