/** Creates, changes and cancels capacity reservations. */
import { z } from 'zod'
import { dryRun, flag, instant, integer, list, tagSpecification, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call } from '../wire/service'
import { depthOf, noCapacity, quotaExceeded, quotaRoom } from './capacity'
import type { Ec2 } from './ec2'
import { tagsFor } from './launch-fields'
import { checkReservationTags } from './reservation-tags'
import { reservationWords } from './reservation-words'
import { isBlock, placesIn, reservationState, takenIn, type CapacityReservation } from './reservation-model'
import { findReservation } from './reserved-room'

const matching = z.enum(['open', 'targeted'])
const endType = z.enum(['unlimited', 'limited'])
const PLATFORMS = [
  'Linux/UNIX',
  'Red Hat Enterprise Linux',
  'SUSE Linux',
  'Ubuntu Pro',
  'Windows',
  'Windows with SQL Server',
] as const
/** Maximum number of places per request. */
const COUNT_MAX = 1000

export function reservationActions(ec2: Ec2): Record<string, Action> {
  return {
    CreateCapacityReservation: createReservation(ec2),
    ModifyCapacityReservation: modifyReservation(ec2),
    CancelCapacityReservation: cancelReservation(ec2),
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
  // This request alone uses the plural name.
  TagSpecifications: list(tagSpecification).optional(),
})
type CreateWish = z.output<typeof createInput>

function createReservation(ec2: Ec2): Action {
  return action({
    input: createInput,
    isMutating: true,
    check: (wish, call) => void checked(ec2, wish, call),
    run(wish, call) {
      const { ClientToken: token, ...parameters } = wish
      const scope = `CreateCapacityReservation/${call.region}`
      const reservation = ec2.tokens.once(scope, { token, parameters }, () => make(ec2, wish, call))
      return { capacityReservation: reservationWords(ec2, reservation) }
    },
  })
}

function make(ec2: Ec2, wish: CreateWish, call: Call): CapacityReservation {
  const zone = checked(ec2, wish, call)
  const { InstanceType: type, InstanceCount: count } = wish
  const region = ec2.region(call.region)
  const plan = { region, type: ec2.parts.world.types.get(type)!, capacity: 'on-demand' as const }
  if (quotaRoom(ec2, plan) < count) throw quotaExceeded(ec2, plan)
  const pool = { region: call.region, zone, type, capacity: 'on-demand' as const }
  const isRefused = ec2.parts.faults.first('no-capacity', { ...pool, service: 'ec2' }) !== undefined
  if (isRefused || depthOf(ec2, pool) < count) throw noCapacity(ec2, pool)
  return ec2.reservations.add({
    kind: 'on-demand',
    ...{ region: call.region, zone, type, count, platform: wish.InstancePlatform },
    ...{ matching: wish.InstanceMatchCriteria, payment: 'succeeds', upfrontUsd: 0 },
    startsAtMs: ec2.nowMs,
    endsAtMs: wish.EndDate,
    clientToken: wish.ClientToken,
    tags: tagsFor('capacity-reservation', { TagSpecification: wish.TagSpecifications }),
  })
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
  return zone.name
}

function checkEnd(ec2: Ec2, endsAtMs: number | undefined, kind: 'limited' | 'unlimited' | undefined): void {
  const isLimited = kind === undefined ? endsAtMs !== undefined : kind === 'limited'
  if (isLimited !== (endsAtMs !== undefined))
    throw new ApiError(
      'InvalidParameterCombination',
      'EndDate goes with the EndDateType limited, and with no other',
    )
  if (endsAtMs !== undefined && endsAtMs <= ec2.nowMs)
    throw new ApiError('InvalidParameterValue', 'The EndDate must be in the future')
}

function modifyReservation(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      CapacityReservationId: text,
      InstanceCount: integer.pipe(z.int().min(1)).optional(),
      EndDate: instant.optional(),
      EndDateType: endType.optional(),
      InstanceMatchCriteria: matching.optional(),
    }),
    isMutating: true,
    check: ({ CapacityReservationId: id }, { region }) => void changeable(ec2, region, id),
    run(wish, { region }) {
      const reservation = changeable(ec2, region, wish.CapacityReservationId)
      const { InstanceCount: count, EndDate: endsAtMs, EndDateType: kind } = wish
      if (kind !== undefined || endsAtMs !== undefined) checkEnd(ec2, endsAtMs, kind)
      const taken = takenIn(reservation, ec2.nowMs)
      if (wish.InstanceMatchCriteria !== undefined) {
        if (taken > 0)
          throw new ApiError('InvalidState', 'The criteria can only be changed while no instance is in it')
        reservation.matching = wish.InstanceMatchCriteria
      }
      if (count !== undefined) resize(ec2, reservation, { count, taken })
      if (kind !== undefined || endsAtMs !== undefined) ec2.reservations.endAt(reservation, endsAtMs)
      return { return: true }
    },
  })
}

function resize(
  ec2: Ec2,
  reservation: CapacityReservation,
  { count, taken }: { count: number; taken: number },
): void {
  const { region, zone, type } = reservation
  const more = count - placesIn(reservation)
  if (Math.abs(more) > COUNT_MAX || count < taken)
    throw new ApiError('InvalidParameterValue', `InstanceCount may be ${taken} at least: so many are in use`)
  const plan = { region: ec2.region(region), type, capacity: 'on-demand' as const }
  const pool = { region, zone: zone.name, type: type.name, capacity: 'on-demand' as const }
  if (more > 0 && quotaRoom(ec2, plan) < more) throw quotaExceeded(ec2, plan)
  if (more > 0 && depthOf(ec2, pool) < more) throw noCapacity(ec2, pool)
  ec2.reservations.resize(reservation, count)
}

function cancelReservation(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, CapacityReservationId: text }),
    isMutating: true,
    check: ({ CapacityReservationId: id }, { region }) => void changeable(ec2, region, id),
    run({ CapacityReservationId: id }, { region }) {
      ec2.reservations.cancel(changeable(ec2, region, id))
      return { return: true }
    },
  })
}

/** Blocks, and reservations of other accounts, can be neither changed nor cancelled. */
function changeable(ec2: Ec2, region: string, id: string): CapacityReservation {
  const reservation = findReservation(ec2.region(region), id)
  if (isBlock(reservation))
    throw new ApiError('OperationNotPermitted', "You can't modify or cancel a Capacity Block.")
  if (reservation.ownerId !== ec2.account)
    throw new ApiError('UnauthorizedOperation', 'Only the owner can change a capacity reservation.', 403)
  if (!['active', 'scheduled'].includes(reservationState(reservation)))
    throw new ApiError(
      'InvalidCapacityReservationState',
      `The capacity reservation '${id}' is ${reservationState(reservation)}.`,
    )
  return reservation
}
