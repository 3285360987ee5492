/** A year of purchases on a driven clock: everything that happens later goes through the clock of the cloud. */
import {
  DescribeCapacityBlockExtensionOfferingsCommand,
  PurchaseCapacityBlockExtensionCommand,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import { advanceTo, buy, cloudThatSells, DAY_MS, HOUR_MS, listed, offeringsOf, PLAN } from './capacity'
import { stopClouds } from './support'

afterEach(stopClouds)

describe('a year of a cloud without machines', () => {
  it('passes at once, with a block every week, extended by a day', async () => {
    const test = await cloudThatSells({
      blockOfferings: [{ ...PLAN, stock: 8 }],
      reservations: [{ kind: 'on-demand', type: 'g5.xlarge', zone: PLAN.zone, count: 1 }],
    })
    const { ec2 } = test.clients
    const yearEndMs = test.clock.nowMs() + 365 * DAY_MS
    let paidUsd = 0
    for (let week = 1; week <= 52; week++) {
      const weekEndMs = test.clock.nowMs() + 7 * DAY_MS
      const soon = (await offeringsOf(test)).sort((a, b) => Number(a.StartDate) - Number(b.StartDate))
      const { CapacityReservation: block } = await buy(ec2, soon.at(0)!)
      await advanceTo(test, block!.StartDate!)
      const { CapacityReservationId } = block!
      const { CapacityBlockExtensionOfferings } = await ec2.send(
        new DescribeCapacityBlockExtensionOfferingsCommand({
          CapacityReservationId,
          CapacityBlockExtensionDurationHours: 24,
        }),
      )
      const [extension] = CapacityBlockExtensionOfferings!
      const { CapacityBlockExtensionOfferingId } = extension!
      await ec2.send(
        new PurchaseCapacityBlockExtensionCommand({
          CapacityReservationId,
          CapacityBlockExtensionOfferingId,
        }),
      )
      paidUsd += Number(soon[0]!.UpfrontFee) + Number(extension!.UpfrontFee)
      await test.clock.advance(weekEndMs - test.clock.nowMs())
    }
    await test.clock.advance(yearEndMs - test.clock.nowMs())
    const blocks = (await listed(test)).filter(({ ReservationType: kind }) => kind === 'capacity-block')
    expect(blocks.map(({ State }) => State)).toEqual(Array.from({ length: 52 }, () => 'expired'))
    const [{ bill }, ...bought] = test.cloud.reservations() as [
      ReturnType<typeof test.cloud.reserve>,
      ...ReturnType<typeof test.cloud.reserve>[],
    ]
    expect(bought.reduce((sum, each) => sum + each.bill.upfrontUsd, 0)).toBeCloseTo(paidUsd)
    expect(bought.every(({ notices }) => notices.length === 2)).toBe(true)
    expect(bill.idleUsd).toBeCloseTo((1.006 * 365 * DAY_MS) / HOUR_MS)
    // Nothing is left to happen.
    expect(test.clock.nextMs()).toBeUndefined()
  })
})
