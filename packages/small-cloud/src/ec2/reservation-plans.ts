/** Reservations in the format of world files and the control API. */
import type { Moment } from '../world/durations'
import type { ReservationPlan } from '../world/capacity-schema'
import type { Ec2 } from './ec2'
import type { CapacityReservation } from './reservation-model'

const PLATFORM = 'Linux/UNIX'

/** Relative times count from now. */
export function addPlanned(ec2: Ec2, plan: ReservationPlan): CapacityReservation {
  const { starts, ends, owner, ...rest } = plan
  return ec2.reservations.add({
    ...rest,
    region: plan.zone.slice(0, -1),
    platform: PLATFORM,
    startsAtMs: instantOf(ec2, starts),
    ...(ends === undefined ? {} : { endsAtMs: instantOf(ec2, ends) }),
    ownerId: owner,
  })
}

/** @param sinceMs start of a relative moment; default: now */
export function instantOf(ec2: Pick<Ec2, 'nowMs'>, moment: Moment, sinceMs = ec2.nowMs): number {
  return 'atMs' in moment ? moment.atMs : sinceMs + moment.afterMs
}
