/** The XML description of a capacity reservation. */
import type { Xml } from '../wire/xml'
import type { Ec2 } from './ec2'
import { freeIn, isBlock, placesIn, reservationState, takenIn } from './reservation-model'
import type { CapacityReservation } from './reservation-model'
import { tagWords } from './tags'

export function endDateType({ endsAtMs }: CapacityReservation): 'limited' | 'unlimited' {
  return endsAtMs === undefined ? 'unlimited' : 'limited'
}

export function reservationWords(ec2: Ec2, reservation: CapacityReservation): Xml {
  const { id, ownerId, region, zone, type, platform, endsAtMs, blockId, tags } = reservation
  const state = reservationState(reservation)
  const used = state === 'active' ? takenIn(reservation, ec2.nowMs) : 0
  return {
    capacityReservationId: id,
    ownerId,
    capacityReservationArn: `arn:aws:ec2:${region}:${ownerId}:capacity-reservation/${id}`,
    availabilityZoneId: zone.id,
    instanceType: type.name,
    instancePlatform: platform,
    availabilityZone: zone.name,
    tenancy: 'default',
    totalInstanceCount: placesIn(reservation),
    availableInstanceCount: freeIn(reservation, ec2.nowMs),
    ebsOptimized: false,
    ephemeralStorage: false,
    state,
    startDate: new Date(reservation.startsAtMs),
    endDate: endsAtMs === undefined ? undefined : new Date(endsAtMs),
    endDateType: endDateType(reservation),
    instanceMatchCriteria: reservation.matching,
    createDate: new Date(reservation.createdAtMs),
    tagSet: tagWords(tags),
    capacityAllocationSet: used === 0 ? [] : [{ allocationType: 'used', count: used }],
    reservationType: isBlock(reservation) ? 'capacity-block' : 'default',
    capacityBlockId: blockId,
  }
}

export function blockWords(block: CapacityReservation): Xml {
  const { id, blockId, zone, startsAtMs, endsAtMs, createdAtMs, tags } = block
  return {
    capacityBlockId: blockId,
    availabilityZone: zone.name,
    availabilityZoneId: zone.id,
    capacityReservationIdSet: [id],
    startDate: new Date(startsAtMs),
    endDate: endsAtMs === undefined ? undefined : new Date(endsAtMs),
    createDate: new Date(createdAtMs),
    state: reservationState(block),
    tagSet: tagWords(tags),
  }
}
