/** Lists, buys and describes extensions of Capacity Blocks. */
import { z } from 'zod'
import { dryRun, filter, integer, list, paging, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Xml } from '../wire/xml'
import type { Ec2 } from './ec2'
import { goneExtension, type ExtensionOffering } from './extension-market'
import { page, select } from './filters'
import { loseToAnother } from './purchases'
import { knownUntilMs, shown } from './reservation-lists'
import { isBlock, placesIn, type BlockExtension, type CapacityReservation } from './reservation-model'
import { findReservation } from './reserved-room'

export function extensionActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityBlockExtensionOfferings: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        CapacityReservationId: text,
        CapacityBlockExtensionDurationHours: integer,
      }),
      run({ CapacityReservationId: id, CapacityBlockExtensionDurationHours: hours, ...wish }, { region }) {
        const found = ec2.extensions.offer(findReservation(ec2.region(region), id), hours)
        const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
        return { capacityBlockExtensionOfferingSet: items.map(offeringWords), nextToken }
      },
    }),
    PurchaseCapacityBlockExtension: purchase(ec2),
    DescribeCapacityBlockExtensionHistory: history(ec2),
  }
}

function purchase(ec2: Ec2): Action {
  const input = z.strictObject({
    ...dryRun,
    CapacityBlockExtensionOfferingId: text,
    CapacityReservationId: text,
  })
  const offeringOf = (wish: z.output<typeof input>, region: string): ExtensionOffering => {
    const reservation = findReservation(ec2.region(region), wish.CapacityReservationId)
    return ec2.extensions.forPurchase(wish.CapacityBlockExtensionOfferingId, reservation)
  }
  return action({
    input,
    isMutating: true,
    check: (wish, { region }) => void offeringOf(wish, region),
    run(wish, { region }) {
      const offering = offeringOf(wish, region)
      if (loseToAnother(ec2, offering)) throw goneExtension(offering.id)
      const { reservation } = offering
      const extension = ec2.extensions.buy(offering)
      return { capacityBlockExtensionSet: [extensionWords({ reservation, extension })] }
    },
  })
}

interface Row {
  reservation: CapacityReservation
  extension: BlockExtension
}

function history(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...paging,
      Filter: list(filter).default([]),
      CapacityReservationId: list(text).default([]),
    }),
    run({ CapacityReservationId: ids, Filter, ...wish }, call) {
      const untilMs = knownUntilMs(ec2, call)
      const reservations = shown(ec2, call, untilMs)
      const blocks =
        ids.length === 0 ? [...reservations.values()] : ids.map((id) => findReservation({ reservations }, id))
      const rows = blocks
        .filter(isBlock)
        .flatMap((reservation) => reservation.extensions.map((extension) => ({ reservation, extension })))
        .filter(({ extension }) => extension.boughtAtMs <= untilMs)
      const found = select<Row>(rows, Filter, {
        'availability-zone': ({ reservation }) => reservation.zone.name,
        'availability-zone-id': ({ reservation }) => reservation.zone.id,
        'capacity-block-extension-offering-id': ({ extension }) => extension.offeringId,
        'capacity-block-extension-status': ({ extension }) => extension.status,
        'capacity-reservation-id': ({ reservation }) => reservation.id,
        'instance-type': ({ reservation }) => reservation.type.name,
      })
      const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
      return { capacityBlockExtensionSet: items.map(extensionWords), nextToken }
    },
  })
}

function offeringWords({ id, reservation, hours, count, startsAtMs, endsAtMs, usd }: ExtensionOffering): Xml {
  return {
    capacityBlockExtensionOfferingId: id,
    instanceType: reservation.type.name,
    instanceCount: count,
    availabilityZone: reservation.zone.name,
    availabilityZoneId: reservation.zone.id,
    startDate: new Date(reservation.startsAtMs),
    capacityBlockExtensionStartDate: new Date(startsAtMs),
    capacityBlockExtensionEndDate: new Date(endsAtMs),
    capacityBlockExtensionDurationHours: hours,
    upfrontFee: usd.toFixed(6),
    currencyCode: 'USD',
    tenancy: 'default',
  }
}

function extensionWords({ reservation, extension }: Row): Xml {
  const { offeringId, hours, status, boughtAtMs, startsAtMs, endsAtMs, usd } = extension
  return {
    capacityReservationId: reservation.id,
    instanceType: reservation.type.name,
    instanceCount: placesIn(reservation),
    availabilityZone: reservation.zone.name,
    availabilityZoneId: reservation.zone.id,
    capacityBlockExtensionOfferingId: offeringId,
    capacityBlockExtensionDurationHours: hours,
    capacityBlockExtensionStatus: status,
    capacityBlockExtensionPurchaseDate: new Date(boughtAtMs),
    capacityBlockExtensionStartDate: new Date(startsAtMs),
    capacityBlockExtensionEndDate: new Date(endsAtMs),
    upfrontFee: usd.toFixed(6),
    currencyCode: 'USD',
  }
}
