/** Chooses the reservations for a launch. */
import { ApiError } from '../wire/errors'
import type { Ec2 } from './ec2'
import type { LaunchPlan } from './launch-plan'
import type { LaunchFields, Region, ReservationChoice } from './model'
import { freeIn, isBlock, reservationState, type CapacityReservation } from './reservation-model'

export interface ReservedRoom {
  /** Places, one for each machine in a reservation. */
  places: CapacityReservation[]
  /** The remaining machines may not use other capacity. */
  isOnly: boolean
}

/** Platform of all images here, which run Linux. */
const PLATFORM = 'Linux/UNIX'

/** Returns why a launch into reservations has no place. */
export function noPlace(
  ec2: Ec2,
  { region, reservationWish: { target } }: Pick<LaunchPlan, 'region' | 'reservationWish'>,
): ApiError {
  const named = target === undefined ? undefined : region.reservations.get(target)
  const { earlyLaunch } = ec2.parts.world.blockMarket
  const isEarly =
    named !== undefined &&
    isBlock(named) &&
    ['payment-pending', 'scheduled'].includes(reservationState(named))
  if (isEarly && earlyLaunch !== 'ReservationCapacityExceeded')
    return new ApiError(earlyLaunch, `Your Capacity Block '${named.id}' is not active yet.`)
  return new ApiError(
    'ReservationCapacityExceeded',
    'The requested reservation does not have sufficient compatible and available capacity for this request.',
  )
}

/** Returns the reserved places for a launch into a zone: the named ones, or matching open ones. */
export function reservedRoom(
  ec2: Ec2,
  {
    region,
    type,
    capacity,
    reservationWish,
  }: Pick<LaunchPlan, 'region' | 'type' | 'capacity' | 'reservationWish'>,
  { zone, wanted }: { zone: string; wanted: number },
): ReservedRoom {
  const { preference, target } = reservationWish
  const isOnly = target !== undefined || preference === 'capacity-reservations-only'
  const isNone = capacity === 'spot' || (preference === 'none' && target === undefined)
  const fits = (each: CapacityReservation): boolean =>
    each.type === type && each.zone.name === zone && each.platform === PLATFORM
  const chosen = [...region.reservations.values()].filter(
    (each) =>
      fits(each) &&
      (target === undefined ? each.matching === 'open' && !each.isInterruptible : each.id === target),
  )
  if (isNone || chosen.length === 0 || isRefused(ec2, { region, type, zone })) return { places: [], isOnly }
  const places = chosen.flatMap((each) => Array.from({ length: freeIn(each, ec2.nowMs) }, () => each))
  return { places: places.slice(0, wanted), isOnly }
}

function isRefused(
  ec2: Ec2,
  { region, type, zone }: Pick<LaunchPlan, 'region' | 'type'> & { zone: string },
): boolean {
  const occasion = { service: 'ec2', region: region.plan.name, zone, type: type.name, capacity: 'reserved' }
  return ec2.parts.faults.first('no-capacity', occasion) !== undefined
}

/** Reads the reservation options of a launch; throws all their errors except lack of capacity. */
export function reservationWishOf(region: Region, fields: LaunchFields): ReservationChoice {
  const { CapacityReservationSpecification: said, InstanceMarketOptions: market } = fields
  const target = said?.CapacityReservationTarget?.CapacityReservationId
  const preference = said?.CapacityReservationPreference
  const isForBlock = market?.MarketType === 'capacity-block'
  if (target === undefined) {
    if (isForBlock) throw wrongMarket()
    return { preference: preference ?? 'open' }
  }
  if ((preference ?? 'capacity-reservations-only') !== 'capacity-reservations-only')
    throw new ApiError(
      'InvalidParameterCombination',
      'A capacity reservation target may only be combined with the preference capacity-reservations-only',
    )
  if (market?.MarketType === 'spot')
    throw new ApiError('InvalidParameterCombination', 'A Spot Instance cannot be launched into a reservation')
  const reservation = findReservation(region, target)
  if (isBlock(reservation) !== isForBlock || reservation.isInterruptible) throw wrongMarket()
  return { preference: 'capacity-reservations-only', target }
}

function wrongMarket(): ApiError {
  return new ApiError(
    'InvalidParameterValue',
    'The market type (purchasing) option is not valid. Choose a different market type and try again.',
  )
}

export function findReservation(
  { reservations }: Pick<Region, 'reservations'>,
  id: string,
): CapacityReservation {
  if (!/^cr-[0-9a-f]{8}([0-9a-f]{9})?$/.test(id))
    throw new ApiError('InvalidCapacityReservationId.Malformed', `Invalid id: "${id}" (expecting "cr-...")`)
  const found = reservations.get(id)
  if (found === undefined)
    throw new ApiError(
      'InvalidCapacityReservationId.NotFound',
      `The capacity reservation ID '${id}' does not exist`,
    )
  return found
}
