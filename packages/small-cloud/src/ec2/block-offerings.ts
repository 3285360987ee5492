/** Lists Capacity Blocks for sale. */
import { z } from 'zod'
import { dryRun, flag, instant, integer, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { OfferingPlan } from '../world/capacity-schema'
import type { Offering, Period } from './block-market'
import { AHEAD_MS, checkHours, COUNT_MAX, DAY_MS, endOfDay, HOUR_MS, LEAD_MS } from './block-rules'
import type { Ec2 } from './ec2'
import { page } from './filters'
import { instantOf } from './reservation-plans'

const ANSWERS_MAX = 6

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
type OfferingInput = z.output<typeof input>

export function offeringActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityBlockOfferings: action({
      input,
      run(wish, { region }) {
        checkWish(ec2, wish)
        const { blocks } = ec2
        const found = ec2.parts.world.blockOfferings
          .filter((plan) => plan.zone.startsWith(region) && fits(plan, wish))
          .flatMap((plan) => periodsOf(ec2, plan, wish))
          .filter((each) => blocks.hasRoom(each))
          .sort((a, b) => blocks.feeOf(a) - blocks.feeOf(b) || a.startsAtMs - b.startsAtMs)
          .slice(0, ANSWERS_MAX)
          .flatMap((each) => blocks.offer(each) ?? [])
        const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
        return { capacityBlockOfferingSet: items.map(offeringWords), nextToken }
      },
    }),
  }
}

function fits({ type, count: most, ultraserver }: OfferingPlan, wish: OfferingInput): boolean {
  if (ultraserver !== wish.UltraserverType) return false
  return ultraserver !== undefined || (type === wish.InstanceType && (wish.InstanceCount ?? 1) <= most)
}

function checkWish(
  ec2: Ec2,
  { InstanceType: type, InstanceCount: count = 1, CapacityDurationHours: hours, ...wish }: OfferingInput,
): void {
  checkHours(hours, 'CapacityDurationHours')
  if (wish.UltraserverType !== undefined) return checkUltraserver(wish)
  if (type === undefined) throw new ApiError('MissingParameter', 'The request must contain InstanceType')
  if (!ec2.parts.world.types.has(type))
    throw new ApiError('InvalidParameterValue', `Invalid value '${type}' for InstanceType.`)
  if (count > COUNT_MAX)
    throw new ApiError('InvalidParameterValue', `InstanceCount may be ${COUNT_MAX} at most.`)
}

function checkUltraserver({ UltraserverCount: count = 1 }: Pick<OfferingInput, 'UltraserverCount'>): void {
  if (count !== 1)
    throw new ApiError('InvalidParameterValue', 'This small cloud sells UltraServers one by one: ask for 1.')
}

/** A block that begins soon, a little shorter or longer than asked, and one for each later day. */
function periodsOf(ec2: Ec2, plan: OfferingPlan, wish: OfferingInput): Period[] {
  const { nowMs } = ec2
  const count = plan.ultraserver === undefined ? (wish.InstanceCount ?? 1) : plan.count
  const lengthMs = wish.CapacityDurationHours * HOUR_MS
  const firstMs = Math.max(instantOf(ec2, plan.starts, ec2.startMs), nowMs + LEAD_MS)
  const lastMs = plan.ends === undefined ? Infinity : instantOf(ec2, plan.ends, ec2.startMs)
  const soonEndMs = endOfDay(firstMs + lengthMs)
  const soon = [soonEndMs - DAY_MS, soonEndMs]
    .filter((endsAtMs) => endsAtMs - firstMs >= DAY_MS / 2)
    .map((endsAtMs) => ({ plan, count, startsAtMs: firstMs, endsAtMs }))
  const days = Math.floor(AHEAD_MS / DAY_MS)
  const later = Array.from({ length: days }, (_, day) => endOfDay(firstMs) + day * DAY_MS).map(
    (startsAtMs) => ({ plan, count, startsAtMs, endsAtMs: startsAtMs + lengthMs }),
  )
  return [...soon, ...later].filter(
    ({ startsAtMs, endsAtMs }) =>
      startsAtMs <= nowMs + AHEAD_MS &&
      endsAtMs <= Math.min(lastMs, wish.EndDateRange ?? Infinity) &&
      startsAtMs >= (wish.StartDateRange ?? 0),
  )
}

function offeringWords({ id, plan, count, startsAtMs, endsAtMs, usd }: Offering) {
  const minutes = Math.round((endsAtMs - startsAtMs) / 60_000)
  return {
    capacityBlockOfferingId: id,
    instanceType: plan.type,
    availabilityZone: plan.zone,
    instanceCount: count,
    startDate: new Date(startsAtMs),
    endDate: new Date(endsAtMs),
    capacityBlockDurationHours: Math.floor(minutes / 60),
    capacityBlockDurationMinutes: minutes % 60,
    upfrontFee: usd.toFixed(6),
    currencyCode: 'USD',
    tenancy: 'default',
    ...(plan.ultraserver === undefined ? {} : { ultraserverType: plan.ultraserver, ultraserverCount: 1 }),
  }
}
