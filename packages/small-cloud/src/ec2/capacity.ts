/** Number of machines that a pool can supply, with the reason of a limit. */
import { ApiError } from '../wire/errors'
import { limitExceeded } from '../wire/dispatch'
import type { Pool } from '../world/market'
import { quotaOf } from '../prices/quotas'
import type { Ec2 } from './ec2'
import type { LaunchPlan } from './launch-plan'
import { isAlive, type Instance, type Region, type Subnet } from './model'
import { isBlock, placesIn, reservationState, type CapacityReservation } from './reservation-model'
import { noPlace, reservedRoom } from './reserved-room'

export interface Room {
  /** Number of machines, from 0 to the requested one. */
  count: number
  /** The reservations for the first machines; the others go into the pool. */
  places: CapacityReservation[]
  /** Reason if it is fewer than requested. */
  problem?: ApiError
}

export function poolOf(plan: LaunchPlan, subnet: Subnet): Pool {
  return {
    region: plan.region.plan.name,
    zone: subnet.zone.name,
    type: plan.type.name,
    capacity: plan.capacity,
  }
}

/** Returns the machines that take a place of the pool, including ended ones whose place is not yet free. */
function holdersOf(ec2: Ec2, pool: Pool): Instance[] {
  const { nowMs } = ec2
  return [...ec2.region(pool.region).instances.values()].filter(
    ({ type, subnet, capacity, place, heldUntilMs = Infinity }) =>
      place === undefined &&
      type.name === pool.type &&
      subnet.zone.name === pool.zone &&
      capacity === pool.capacity &&
      heldUntilMs > nowMs,
  )
}

/** Returns the depth of a pool: the number of machines that it could supply now. */
export function depthOf(ec2: Ec2, pool: Pool): number {
  const { market } = ec2.parts
  if (!market.isOffered(pool.type, pool.zone)) return 0
  return Math.max(0, market.stockOf(pool) - holdersOf(ec2, pool).length - keptFrom(ec2, pool))
}

/** Returns the number of places that on-demand reservations keep from a pool; blocks take none. */
function keptFrom(ec2: Ec2, { region, zone, type, capacity }: Pool): number {
  if (capacity !== 'on-demand') return 0
  return reservedOnDemand(ec2.region(region))
    .filter((each) => each.zone.name === zone && each.type.name === type)
    .reduce((sum, each) => sum + placesIn(each), 0)
}

function reservedOnDemand({ reservations }: Region): CapacityReservation[] {
  return [...reservations.values()].filter(
    (each) => !isBlock(each) && ['active', 'pending'].includes(reservationState(each)),
  )
}

/**
 * Returns how many of the requested machines fit now, in reservations first. The query takes no capacity, but the world's faults may strike
 * on it.
 */
export function roomIn(
  ec2: Ec2,
  plan: LaunchPlan,
  { subnet, wanted }: { subnet: Subnet; wanted: number },
): Room {
  const { places, isOnly } = reservedRoom(ec2, plan, { zone: subnet.zone.name, wanted })
  const left = wanted - places.length
  if (left === 0) return { count: wanted, places }
  if (isOnly) return { count: places.length, places, problem: noPlace(ec2, plan) }
  const { count, problem } = roomInPool(ec2, plan, { subnet, wanted: left })
  return { count: places.length + count, places, ...(problem === undefined ? {} : { problem }) }
}

function roomInPool(
  ec2: Ec2,
  plan: LaunchPlan,
  { subnet, wanted }: { subnet: Subnet; wanted: number },
): Omit<Room, 'places'> {
  const pool = poolOf(plan, subnet)
  const { market, faults } = ec2.parts
  if (!market.isOffered(pool.type, pool.zone)) return { count: 0, problem: unsupported(ec2, pool) }
  const tooDear =
    plan.maxUsdPerHour !== undefined && pool.capacity === 'spot' && market.priceOf(pool) > plan.maxUsdPerHour
  if (tooDear)
    return {
      count: 0,
      problem: new ApiError(
        'SpotMaxPriceTooLow',
        `Your Spot request price of ${plan.maxUsdPerHour} is lower than the minimum required Spot request fulfillment price of ${market.priceOf(pool)}.`,
      ),
    }
  const stranger = plan.region.groups.find(
    ({ id, vpcId }) => plan.groupIds.includes(id) && vpcId !== subnet.vpcId,
  )
  if (stranger !== undefined)
    return {
      count: 0,
      problem: new ApiError(
        'InvalidParameter',
        `Security group ${stranger.id} and subnet ${subnet.id} belong to different networks.`,
      ),
    }
  const quota = quotaRoom(ec2, plan)
  const addresses = subnet.addresses - subnet.used
  const isRefused = faults.first('no-capacity', { ...pool, service: 'ec2' }) !== undefined
  const depth = isRefused ? 0 : depthOf(ec2, pool)
  const limits: [number, () => ApiError][] = [
    [quota, () => quotaExceeded(ec2, plan)],
    [depth, () => noCapacity(ec2, pool)],
    [
      addresses,
      () =>
        new ApiError(
          'InsufficientFreeAddressesInSubnet',
          `There are not enough free addresses in subnet '${subnet.id}' to satisfy the requested number of instances.`,
        ),
    ],
  ]
  const count = Math.min(wanted, ...limits.map(([limit]) => limit))
  const short = limits.find(([limit]) => limit < wanted && limit === count)
  return { count, ...(short === undefined ? {} : { problem: short[1]() }) }
}

/** Returns why a stopped machine cannot be started now: others may have taken its place, unless the place is not yet free again. */
export function roomToStart(
  ec2: Ec2,
  instance: Instance,
): { problem: ApiError } | { place: CapacityReservation | undefined } {
  const { region, subnet, type, capacity, place, reservationWish, heldUntilMs = 0 } = instance
  const plan = { region: ec2.region(region), type, capacity, reservationWish }
  if (
    place !== undefined &&
    heldUntilMs > ec2.nowMs &&
    reservationState(place) === 'active' &&
    !place.isEnding
  )
    return { place }
  const reserved = reservedRoom(ec2, plan, { zone: subnet.zone.name, wanted: 1 })
  const [free] = reserved.places
  if (free !== undefined) return { place: free }
  const problem = reserved.isOnly ? noPlace(ec2, plan) : noRoomInPool(ec2, instance, heldUntilMs)
  return problem === undefined ? { place: undefined } : { problem }
}

function noRoomInPool(
  ec2: Ec2,
  { region, subnet, type, capacity }: Instance,
  heldUntilMs: number,
): ApiError | undefined {
  const pool = { region, zone: subnet.zone.name, type: type.name, capacity }
  const plan = { region: ec2.region(region), type, capacity }
  if (quotaRoom(ec2, plan) < 1) return quotaExceeded(ec2, plan)
  const isRefused = ec2.parts.faults.first('no-capacity', { ...pool, service: 'ec2' }) !== undefined
  const hasPlace = heldUntilMs > ec2.nowMs || depthOf(ec2, pool) > 0
  return isRefused || !hasPlace ? noCapacity(ec2, pool) : undefined
}

/** Takes the tokens for this many launches. */
export function takeLaunchTokens(ec2: Ec2, region: string, count: number): void {
  if (!ec2.parts.throttle.take('instances', region, count)) throw limitExceeded()
}

/** Returns how many machines of this type the quota still allows. */
export function quotaRoom(
  ec2: Ec2,
  { region, type, capacity }: Pick<LaunchPlan, 'region' | 'type' | 'capacity'>,
): number {
  const code = quotaOf(type.quota, capacity)
  const limit = ec2.parts.quotas.valueOf({ code, region: region.plan.name })
  const used = [...region.instances.values()]
    .filter(
      (each) =>
        isAlive(each) &&
        each.place === undefined &&
        each.capacity === capacity &&
        each.type.quota === type.quota,
    )
    .reduce((sum, each) => sum + each.type.vcpus, capacity === 'spot' ? 0 : reservedVcpus(region, type))
  return Math.max(0, Math.floor((limit - used) / type.vcpus))
}

/** On-demand reservations count as if all of their places were taken. Blocks and the instances in them do not count. */
function reservedVcpus(region: Region, { quota }: LaunchPlan['type']): number {
  return reservedOnDemand(region)
    .filter((each) => each.type.quota === quota)
    .reduce((sum, each) => sum + placesIn(each) * each.type.vcpus, 0)
}

export function quotaExceeded(
  ec2: Ec2,
  { region, type, capacity }: Pick<LaunchPlan, 'region' | 'type' | 'capacity'>,
): ApiError {
  if (capacity === 'spot')
    return new ApiError('MaxSpotInstanceCountExceeded', 'Max spot instance count exceeded')
  const code = quotaOf(type.quota, capacity)
  const limit = ec2.parts.quotas.valueOf({ code, region: region.plan.name })
  return new ApiError(
    'VcpuLimitExceeded',
    `You have requested more vCPU capacity than your current vCPU limit of ${limit} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
  )
}

export function noCapacity(ec2: Ec2, pool: Pool): ApiError {
  if (pool.capacity === 'spot')
    return new ApiError(
      'InsufficientInstanceCapacity',
      'There is no Spot capacity available that matches your request.',
      500,
    )
  const others = ec2
    .region(pool.region)
    .plan.zones.map(({ name }) => name)
    .filter((zone) => zone !== pool.zone && depthOf(ec2, { ...pool, zone }) > 0)
  const hint =
    others.length === 0
      ? ''
      : ` You can currently get ${pool.type} capacity by not specifying an Availability Zone in your request or choosing ${others.join(', ')}.`
  return new ApiError(
    'InsufficientInstanceCapacity',
    `We currently do not have sufficient ${pool.type} capacity in the Availability Zone you requested (${pool.zone}). Our system will be working on provisioning additional capacity.${hint}`,
    500,
  )
}

function unsupported(ec2: Ec2, { type, zone, region }: Pool): ApiError {
  const others = ec2.region(region).plan.zones.filter(({ name }) => ec2.parts.market.isOffered(type, name))
  const choice = others.length === 0 ? '' : ` or choosing ${others.map(({ name }) => name).join(', ')}`
  return new ApiError(
    'Unsupported',
    `Your requested instance type (${type}) is not supported in your requested Availability Zone (${zone}). Please retry your request by not specifying an Availability Zone${choice}.`,
  )
}
