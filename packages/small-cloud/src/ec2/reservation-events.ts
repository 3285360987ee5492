/** The events of capacity reservations, by the names that EC2 gives them on its event bus. */
import { isAlive } from './model'
import { isBlock, type CapacityReservation, type ReservationState } from './reservation-model'

type Notice = CapacityReservation['notices'][number]

const OF_BLOCKS: Partial<Record<ReservationState, string>> = { active: 'Capacity Block Delivered' }
const ON_DEMAND: Partial<Record<ReservationState, string>> = {
  scheduled: 'EC2 Capacity Reservation Scheduled',
  active: 'EC2 Capacity Reservation Active',
  failed: 'EC2 Capacity Reservation Failed',
  delayed: 'EC2 Capacity Reservation Delayed',
  unsupported: 'EC2 Capacity Reservation Unsupported',
  expired: 'EC2 Capacity Reservation Expired',
  cancelled: 'EC2 Capacity Reservation Cancelled',
}

/** Returns the event of a change of state. None is known for the end of a block. */
export function eventOf(reservation: CapacityReservation, state: ReservationState): string | undefined {
  return (isBlock(reservation) ? OF_BLOCKS : ON_DEMAND)[state]
}

/** Returns the warnings for the instances of a block that is about to end. */
export function instanceWarning({ stays }: CapacityReservation, atMs: number): Notice[] {
  const what = 'EC2 Capacity Reservation Instance Interruption Warning'
  return stays
    .filter(({ instance, untilMs }) => untilMs === undefined && isAlive(instance))
    .map(({ instance }) => ({ atMs, what, instance: instance.id }))
}
