/**
 * Buys Capacity Blocks. The request has no client token: each one that arrives buys a block. A block can neither be cancelled nor changed
 * afterwards.
 */
import { z } from 'zod'
import { dryRun, list, tagSpecification, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import { goneOffering, type Period } from './block-market'
import type { Ec2 } from './ec2'
import { tagsFor } from './launch-fields'
import { blockWords, reservationWords } from './reservation-words'
import { checkReservationTags } from './reservation-tags'

const purchase = z.strictObject({
  ...dryRun,
  CapacityBlockOfferingId: text,
  InstancePlatform: z.enum([
    'Linux/UNIX',
    'Red Hat Enterprise Linux',
    'RHEL with HA',
    'SUSE Linux',
    'Ubuntu Pro',
  ]),
  TagSpecification: list(tagSpecification).optional(),
})

export function purchaseActions(ec2: Ec2): Record<string, Action> {
  return {
    PurchaseCapacityBlock: action({
      input: purchase,
      isMutating: true,
      check({ CapacityBlockOfferingId: id, TagSpecification: tags }, { region }) {
        checkReservationTags(tags)
        ec2.blocks.forPurchase(id, region)
      },
      run(wish, { region }) {
        const offering = ec2.blocks.forPurchase(wish.CapacityBlockOfferingId, region)
        if (loseToAnother(ec2, offering)) throw goneOffering(offering.id)
        const { plan, count, startsAtMs, endsAtMs, usd } = offering
        ec2.blocks.sold(offering)
        const block = ec2.reservations.add({
          kind: 'capacity-block',
          matching: 'targeted',
          soldFrom: plan,
          ultraserver: plan.ultraserver,
          region,
          zone: plan.zone,
          type: plan.type,
          count,
          platform: wish.InstancePlatform,
          startsAtMs,
          endsAtMs,
          upfrontUsd: usd,
          payment: 'succeeds',
          tags: tagsFor('capacity-reservation', wish),
        })
        return { capacityReservation: reservationWords(ec2, block), capacityBlockSet: [blockWords(block)] }
      },
    }),
  }
}

/** Another customer may be faster between the search and the purchase. */
export function loseToAnother(ec2: Ec2, period: Period): boolean {
  const { zone, type } = period.plan
  const struck = ec2.parts.faults.first('offering-sold', {
    service: 'ec2',
    region: zone.slice(0, -1),
    zone,
    type,
    capacity: 'reserved',
  })
  if (struck !== undefined) ec2.blocks.sellElsewhere(period, struck.for)
  return struck !== undefined
}
