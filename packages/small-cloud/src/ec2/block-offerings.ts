/** Capacity Blocks for sale. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { dryRun, flag, instant, integer, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { OfferingPlan } from '../world/schema'
import type { Ec2 } from './ec2'
import { page } from './filters'
import { instantOf } from './reservation-plans'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const WEEK_HOURS = 7 * 24
const DAILY_HOURS_MAX = 14 * 24
const HOURS_MAX = 182 * 24
const COUNT_MAX = 64
/** The earliest start from now. */
const LEAD_MS = 30 * 60_000
/** The latest start from now. */
const AHEAD_MS = 8 * 7 * DAY_MS
const ANSWERS_MAX = 6
/** Every block ends at this time of the day, in UTC. */
const END_OF_DAY_MS = 11 * HOUR_MS + 30 * 60_000

const input = z.strictObject({
  ...dryRun,
  ...paging,
  InstanceType: text.optional(),
  InstanceCount: integer.pipe(z.int().min(1)).optional(),
  CapacityDurationHours: integer,
  StartDateRange: instant.optional(),
  EndDateRange: instant.optional(),
  UltraserverType: text.optional(),
  UltraserverCount: integer.optional(),
  AllAvailabilityZones: flag.optional(),
})
type Wish = z.output<typeof input>

interface Offering {
  plan: OfferingPlan
  startsAtMs: number
  endsAtMs: number
}

export function offeringActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityBlockOfferings: action({
      input,
      run(wish, { region }) {
        checkWish(ec2, wish)
        const count = wish.InstanceCount ?? 1
        const found = ec2.parts.world.blockOfferings
          .filter(
            ({ type, zone, count: most }) =>
              type === wish.InstanceType && zone.startsWith(region) && count <= most,
          )
          .flatMap((plan) => offeringsOf(ec2, plan, wish))
          .sort((a, b) => feeOf(a, count) - feeOf(b, count) || a.startsAtMs - b.startsAtMs)
          .slice(0, ANSWERS_MAX)
        const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
        return { capacityBlockOfferingSet: items.map((each) => offeringWords(each, count)), nextToken }
      },
    }),
  }
}

function checkWish(
  ec2: Ec2,
  { InstanceType: type, InstanceCount: count = 1, CapacityDurationHours: hours, ...wish }: Wish,
): void {
  const isSold =
    hours >= 24 && hours <= HOURS_MAX && hours % (hours <= DAILY_HOURS_MAX ? 24 : WEEK_HOURS) === 0
  if (!isSold)
    throw new ApiError(
      'InvalidParameterValue',
      `Invalid value '${hours}' for CapacityDurationHours: 1 to 14 days, or multiples of 7 days up to 182.`,
    )
  if (wish.UltraserverType !== undefined) return
  if (type === undefined) throw new ApiError('MissingParameter', 'The request must contain InstanceType')
  if (!ec2.parts.world.types.has(type))
    throw new ApiError('InvalidParameterValue', `Invalid value '${type}' for InstanceType.`)
  if (count > COUNT_MAX)
    throw new ApiError('InvalidParameterValue', `InstanceCount may be ${COUNT_MAX} at most.`)
}

/** A block that begins soon, a little shorter or longer than asked, and one for each later day. */
function offeringsOf(ec2: Ec2, plan: OfferingPlan, wish: Wish): Offering[] {
  const { nowMs } = ec2
  const lengthMs = wish.CapacityDurationHours * HOUR_MS
  const firstMs = Math.max(instantOf(ec2, plan.starts), nowMs + LEAD_MS)
  const lastMs = plan.ends === undefined ? Infinity : instantOf(ec2, plan.ends)
  const soonEndMs = endOfDay(firstMs + lengthMs)
  const soon = [soonEndMs - DAY_MS, soonEndMs]
    .filter((endsAtMs) => endsAtMs - firstMs >= DAY_MS / 2)
    .map((endsAtMs) => ({ plan, startsAtMs: firstMs, endsAtMs }))
  const days = Math.floor(AHEAD_MS / DAY_MS)
  const later = Array.from({ length: days }, (_, day) => endOfDay(firstMs) + day * DAY_MS).map(
    (startsAtMs) => ({
      ...{ plan, startsAtMs, endsAtMs: startsAtMs + lengthMs },
    }),
  )
  return [...soon, ...later].filter(
    ({ startsAtMs, endsAtMs }) =>
      startsAtMs <= nowMs + AHEAD_MS &&
      endsAtMs <= Math.min(lastMs, wish.EndDateRange ?? Infinity) &&
      startsAtMs >= (wish.StartDateRange ?? 0),
  )
}

/** The next end of a block at or after an instant. */
function endOfDay(atMs: number): number {
  const day = Math.floor(atMs / DAY_MS) * DAY_MS + END_OF_DAY_MS
  return day >= atMs ? day : day + DAY_MS
}

function feeOf({ plan, startsAtMs, endsAtMs }: Offering, count: number): number {
  return (plan.usdPerInstanceHour * count * (endsAtMs - startsAtMs)) / HOUR_MS
}

function offeringWords(offering: Offering, count: number) {
  const { plan, startsAtMs, endsAtMs } = offering
  const minutes = Math.round((endsAtMs - startsAtMs) / 60_000)
  const name = `${plan.zone}/${plan.type}/${count}/${startsAtMs}/${endsAtMs}`
  return {
    capacityBlockOfferingId: `cb-0${createHash('sha256').update(name).digest('hex').slice(0, 16)}`,
    instanceType: plan.type,
    availabilityZone: plan.zone,
    instanceCount: count,
    startDate: new Date(startsAtMs),
    endDate: new Date(endsAtMs),
    capacityBlockDurationHours: Math.floor(minutes / 60),
    capacityBlockDurationMinutes: minutes % 60,
    upfrontFee: feeOf(offering, count).toFixed(6),
    currencyCode: 'USD',
    tenancy: 'default',
  }
}
