/** Creates on-demand reservations that begin at once or at a future date. */
import { z } from 'zod'
import { dryRun, flag, instant, integer, list, tagSpecification, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call } from '../wire/service'
import { depthOf, noCapacity, quotaExceeded, quotaRoom } from './capacity'
import type { Ec2 } from './ec2'
import { futureWish } from './future-reservations'
import { tagsFor } from './launch-fields'
import { checkReservationTags } from './reservation-tags'
import { reservationWords } from './reservation-words'
import type { CapacityReservation } from './reservation-model'

export const matching = z.enum(['open', 'targeted'])
export const endType = z.enum(['unlimited', 'limited'])
const PLATFORMS = [
  'Linux/UNIX',
  'Red Hat Enterprise Linux',
  'SUSE Linux',
  'Ubuntu Pro',
  'Windows',
  'Windows with SQL Server',
] as const
/** Maximum number of places per request. */
export const COUNT_MAX = 1000

export function reservationActions(ec2: Ec2): Record<string, Action> {
  return {
    CreateCapacityReservation: createReservation(ec2),
  }
}

const createInput = z.strictObject({
  ...dryRun,
  ClientToken: text.optional(),
  InstanceType: text,
  InstancePlatform: z.enum(PLATFORMS),
  InstanceCount: integer.pipe(z.int().min(1).max(COUNT_MAX)),
  AvailabilityZone: text.optional(),
  AvailabilityZoneId: text.optional(),
  Tenancy: z.literal('default').optional(),
  EbsOptimized: flag.optional(),
  EndDate: instant.optional(),
  EndDateType: endType.optional(),
  InstanceMatchCriteria: matching.default('open'),
  StartDate: instant.optional(),
  CommitmentDuration: integer.optional(),
  DeliveryPreference: z.literal('incremental').optional(),
  // This request alone uses the plural name.
  TagSpecifications: list(tagSpecification).optional(),
})
type CreateWish = z.output<typeof createInput>

function createReservation(ec2: Ec2): Action {
  return action({
    input: createInput,
    isMutating: true,
    check(wish, call) {
      if (!ec2.tokens.knows(scopeIn(call), wish.ClientToken)) checked(ec2, wish, call)
    },
    run(wish, call) {
      const { ClientToken: token, ...parameters } = wish
      const scope = scopeIn(call)
      const reservation = ec2.tokens.once(scope, { token, parameters }, () => make(ec2, wish, call))
      return { capacityReservation: reservationWords(ec2, reservation) }
    },
  })
}

const scopeIn = ({ region }: Call): string => `CreateCapacityReservation/${region}`

function make(ec2: Ec2, wish: CreateWish, call: Call): CapacityReservation {
  const zone = checked(ec2, wish, call)
  const { InstanceType: type, InstanceCount: count } = wish
  const future = futureWish(ec2, wish)
  if (future === undefined) checkRoom(ec2, { region: call.region, zone, type, count })
  return ec2.reservations.add({
    kind: 'on-demand',
    region: call.region,
    zone,
    type,
    count,
    platform: wish.InstancePlatform,
    matching: wish.InstanceMatchCriteria,
    payment: 'succeeds',
    upfrontUsd: 0,
    startsAtMs: future?.startsAtMs ?? ec2.nowMs,
    commitment: future?.commitment,
    endsAtMs: wish.EndDate,
    clientToken: wish.ClientToken,
    tags: tagsFor('capacity-reservation', { TagSpecification: wish.TagSpecifications }),
  })
}

/** An immediate reservation needs quota and stock; EC2 assesses a future-dated one later. */
function checkRoom(
  ec2: Ec2,
  { count, ...where }: { region: string; zone: string; type: string; count: number },
): void {
  const pool = { ...where, capacity: 'on-demand' as const }
  const plan = {
    region: ec2.region(where.region),
    type: ec2.parts.world.types.get(where.type)!,
    capacity: pool.capacity,
  }
  if (quotaRoom(ec2, plan) < count) throw quotaExceeded(ec2, plan)
  const isRefused = ec2.parts.faults.first('no-capacity', { ...pool, service: 'ec2' }) !== undefined
  if (isRefused || depthOf(ec2, pool) < count) throw noCapacity(ec2, pool)
}

/** Returns the zone. */
function checked(ec2: Ec2, wish: CreateWish, call: Call): string {
  const { world, market } = ec2.parts
  const { InstanceType: type, AvailabilityZone: name, AvailabilityZoneId: id } = wish
  checkReservationTags(wish.TagSpecifications)
  checkEnd(ec2, wish.EndDate, wish.EndDateType)
  if (name === undefined && id === undefined)
    throw new ApiError('MissingParameter', 'The request must contain AvailabilityZone or AvailabilityZoneId')
  const zone = ec2
    .region(call.region)
    .plan.zones.find((each) => (name ?? each.name) === each.name && (id ?? each.id) === each.id)
  if (zone === undefined)
    throw new ApiError('InvalidParameterValue', `Invalid availability zone: [${name ?? id}]`)
  if (!world.types.has(type))
    throw new ApiError('InvalidParameterValue', `Invalid value '${type}' for InstanceType.`)
  if (!market.isOffered(type, zone.name))
    throw new ApiError(
      'Unsupported',
      `Your requested instance type (${type}) is not supported in your requested Availability Zone (${zone.name}).`,
    )
  futureWish(ec2, wish)
  return zone.name
}

export function checkEnd(
  ec2: Ec2,
  endsAtMs: number | undefined,
  kind: 'limited' | 'unlimited' | undefined,
): void {
  const isLimited = kind === undefined ? endsAtMs !== undefined : kind === 'limited'
  if (isLimited !== (endsAtMs !== undefined))
    throw new ApiError(
      'InvalidParameterCombination',
      'EndDate goes with the EndDateType limited, and with no other',
    )
  if (endsAtMs !== undefined && endsAtMs <= ec2.nowMs)
    throw new ApiError('InvalidParameterValue', 'The EndDate must be in the future')
}
