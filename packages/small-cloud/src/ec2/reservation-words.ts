/** The XML description of a capacity reservation. */
import type { Xml } from '../wire/xml'
import type { Ec2 } from './ec2'
import {
  commitmentEndMs,
  freeIn,
  isBlock,
  isFutureDated,
  placesIn,
  reservationState,
  takenIn,
} from './reservation-model'
import type { CapacityReservation } from './reservation-model'
import { tagWords } from './tags'

export function endDateType({ endsAtMs }: CapacityReservation): 'limited' | 'unlimited' {
  return endsAtMs === undefined ? 'unlimited' : 'limited'
}

export function reservationWords(ec2: Ec2, reservation: CapacityReservation): Xml {
  const { id, ownerId, region, zone, type, platform, endsAtMs, blockId, tags, ultraserver } = reservation
  const state = reservationState(reservation)
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
    endDate: dateOf(endsAtMs),
    endDateType: endDateType(reservation),
    instanceMatchCriteria: reservation.matching,
    createDate: new Date(reservation.createdAtMs),
    tagSet: tagWords(tags),
    capacityAllocationSet: allocations(ec2, reservation),
    reservationType: isBlock(reservation) ? 'capacity-block' : 'default',
    capacityBlockId: blockId,
    ...commitmentWords(reservation),
    interruptible: reservation.isInterruptible || undefined,
    launchStatus: ultraserver && (freeIn(reservation, ec2.nowMs) > 0 ? 'launchable' : 'unlaunchable'),
  }
}

function dateOf(atMs: number | undefined): Date | undefined {
  return atMs === undefined ? undefined : new Date(atMs)
}

function allocations(ec2: Ec2, reservation: CapacityReservation): Xml[] {
  const state = reservationState(reservation)
  const isFuture = isFutureDated(reservation) && ['assessing', 'scheduled', 'delayed'].includes(state)
  const counts: readonly [string, number][] = [
    ['used', state === 'active' ? takenIn(reservation, ec2.nowMs) : 0],
    ['future', isFuture ? placesIn(reservation) : 0],
    ['cancelling', state === 'cancelling' ? placesIn(reservation) : 0],
  ]
  return counts.filter(([, count]) => count > 0).map(([allocationType, count]) => ({ allocationType, count }))
}

function commitmentWords(reservation: CapacityReservation) {
  const { commitment } = reservation
  if (commitment === undefined) return {}
  return {
    commitmentInfo: {
      committedInstanceCount: commitment.count,
      commitmentEndDate: dateOf(commitmentEndMs(reservation)),
      commitmentDuration: commitment.durationMs / 1000,
    },
    deliveryPreference: 'incremental',
  }
}

export function blockWords(block: CapacityReservation): Xml {
  const { id, blockId, zone, startsAtMs, endsAtMs, createdAtMs, tags, ultraserver } = block
  return {
    capacityBlockId: blockId,
    ultraserverType: ultraserver,
    availabilityZone: zone.name,
    availabilityZoneId: zone.id,
    capacityReservationIdSet: [id],
    startDate: new Date(startsAtMs),
    endDate: dateOf(endsAtMs),
    createDate: new Date(createdAtMs),
    state: reservationState(block),
    tagSet: tagWords(tags),
  }
}
