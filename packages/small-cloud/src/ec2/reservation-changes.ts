/** Changes, splits and cancels on-demand reservations. */
import { z } from 'zod'
import { dryRun, instant, integer, list, tagSpecification, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import { depthOf, noCapacity, quotaExceeded, quotaRoom } from './capacity'
import type { Ec2 } from './ec2'
import { tagsFor } from './launch-fields'
import {
  commitmentEndMs,
  freeIn,
  isBlock,
  isCommitted,
  isFutureDated,
  needsQuote,
  placesIn,
  reservationState,
  takenIn,
  type CapacityReservation,
  type ReservationState,
} from './reservation-model'
import { checkReservationTags } from './reservation-tags'
import { reservationWords } from './reservation-words'
import { checkEnd, COUNT_MAX, endType, matching } from './reservations'
import { findReservation } from './reserved-room'

export function reservationChangeActions(ec2: Ec2): Record<string, Action> {
  return {
    ModifyCapacityReservation: modifyReservation(ec2),
    CreateCapacityReservationBySplitting: splitReservation(ec2),
    CancelCapacityReservation: cancelReservation(ec2),
  }
}

const modifyInput = z.strictObject({
  ...dryRun,
  CapacityReservationId: text,
  InstanceCount: integer.pipe(z.int().min(1)).optional(),
  EndDate: instant.optional(),
  EndDateType: endType.optional(),
  InstanceMatchCriteria: matching.optional(),
  StartDate: instant.optional(),
  QuoteId: text.optional(),
  AcceptModificationTerms: z.literal('true').optional(),
})
type ModifyWish = z.output<typeof modifyInput>

function modifyReservation(ec2: Ec2): Action {
  return action({
    input: modifyInput,
    isMutating: true,
    check: (wish, { region }) => void (wish.StartDate ?? checkedChange(ec2, wish, region)),
    run(wish, { region }) {
      if (wish.StartDate !== undefined) return postpone(ec2, wish, region)
      const reservation = checkedChange(ec2, wish, region)
      const { InstanceCount: count, EndDate: endsAtMs, EndDateType: kind } = wish
      if (wish.InstanceMatchCriteria !== undefined) reservation.matching = wish.InstanceMatchCriteria
      if (count !== undefined) ec2.reservations.resize(reservation, count)
      if (kind !== undefined || endsAtMs !== undefined) ec2.reservations.endAt(reservation, endsAtMs)
      return { return: true }
    },
  })
}

function postpone(ec2: Ec2, wish: ModifyWish, region: string): { return: boolean } {
  const { StartDate: startsAtMs = 0, QuoteId: id, AcceptModificationTerms: isAccepted } = wish
  const reservation = changeable(ec2, region, wish.CapacityReservationId)
  if (id === undefined || isAccepted === undefined)
    throw new ApiError('OperationNotPermitted', 'StartDate needs QuoteId and AcceptModificationTerms.')
  ec2.dateChanges.accept(reservation, { id, startsAtMs })
  return { return: true }
}

function checkedChange(ec2: Ec2, wish: ModifyWish, region: string): CapacityReservation {
  const reservation = changeable(ec2, region, wish.CapacityReservationId)
  const { InstanceCount: count, EndDate: endsAtMs, EndDateType: kind } = wish
  const state = reservationState(reservation)
  requireState(reservation, isFutureDated(reservation) ? ['active'] : ['active', 'scheduled'])
  const isBound = isCommitted(reservation, ec2.nowMs)
  if (isBound && (count ?? Infinity) < placesIn(reservation))
    throw notWithinCommitment(reservation, 'InstanceCount cannot be decreased')
  if (isBound && (endsAtMs ?? Infinity) < commitmentEndMs(reservation)!)
    throw notWithinCommitment(reservation, 'EndDate cannot be set')
  if (kind !== undefined || endsAtMs !== undefined) checkEnd(ec2, endsAtMs, kind)
  const taken = takenIn(reservation, ec2.nowMs)
  if (wish.InstanceMatchCriteria !== undefined && taken > 0)
    throw new ApiError('InvalidState', 'The criteria can only be changed while no instance is in it')
  if (count !== undefined && state === 'active') checkSize(ec2, reservation, { count, taken })
  return reservation
}

function notWithinCommitment(reservation: CapacityReservation, what: string): ApiError {
  const end = new Date(commitmentEndMs(reservation)!).toISOString()
  return new ApiError(
    'OperationNotPermitted',
    `${what} within the commitment duration, which ends at ${end}.`,
  )
}

function checkSize(
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
}

/** A split takes free places of an active reservation. One place at least stays. */
function splitReservation(ec2: Ec2): Action {
  const input = z.strictObject({
    ...dryRun,
    ClientToken: text.optional(),
    SourceCapacityReservationId: text,
    InstanceCount: integer.pipe(z.int().min(1)),
    TagSpecification: list(tagSpecification).optional(),
  })
  return action({
    input,
    isMutating: true,
    check({ SourceCapacityReservationId: id, TagSpecification: tags }, { region }) {
      checkReservationTags(tags)
      changeable(ec2, region, id)
    },
    run(wish, { region }) {
      const { ClientToken: token, ...parameters } = wish
      const { SourceCapacityReservationId: id, InstanceCount: count } = wish
      const source = changeable(ec2, region, id)
      const scope = `CreateCapacityReservationBySplitting/${region}`
      const destination = ec2.tokens.once(scope, { token, parameters }, () => {
        checkSplit(ec2, source, count)
        ec2.reservations.resize(source, placesIn(source) - count)
        return ec2.reservations.add({
          kind: 'on-demand',
          payment: 'succeeds',
          upfrontUsd: 0,
          startsAtMs: ec2.nowMs,
          isMoved: true,
          region,
          zone: source.zone.name,
          type: source.type.name,
          count,
          clientToken: token,
          platform: source.platform,
          matching: source.matching,
          endsAtMs: source.endsAtMs,
          tags: tagsFor('capacity-reservation', wish),
        })
      })
      return {
        sourceCapacityReservation: reservationWords(ec2, source),
        destinationCapacityReservation: reservationWords(ec2, destination),
        instanceCount: count,
      }
    },
  })
}

function checkSplit(ec2: Ec2, source: CapacityReservation, count: number): void {
  requireState(source, ['active'])
  if (isCommitted(source, ec2.nowMs)) throw notWithinCommitment(source, 'A reservation cannot be split')
  if (count > freeIn(source, ec2.nowMs) || count >= placesIn(source))
    throw new ApiError(
      'InvalidParameterValue',
      `InstanceCount may be at most the free places of '${source.id}', and less than all of its places.`,
    )
}

const CANCELLABLE: readonly ReservationState[] = ['assessing', 'scheduled', 'delayed', 'active']

function cancelReservation(ec2: Ec2): Action {
  const input = z.strictObject({
    ...dryRun,
    CapacityReservationId: text,
    ApplyCancellationCharges: z.literal('commitment-wind-down').optional(),
    QuoteId: text.optional(),
  })
  /** Returns the end of the charges for the cancelled reservation. */
  const checked = (wish: z.output<typeof input>, region: string): number => {
    const reservation = changeable(ec2, region, wish.CapacityReservationId)
    requireState(reservation, CANCELLABLE)
    const { QuoteId: quoteId, ApplyCancellationCharges: charges } = wish
    if (!needsQuote(reservation, ec2.nowMs)) {
      if (quoteId === undefined && charges === undefined) return ec2.nowMs
      throw new ApiError(
        'InvalidParameterCombination',
        `The capacity reservation '${reservation.id}' is cancelled without a quote.`,
      )
    }
    if (quoteId === undefined || charges === undefined)
      throw new ApiError(
        'OperationNotPermitted',
        `The capacity reservation '${reservation.id}' is within its commitment: cancel it with QuoteId and ApplyCancellationCharges.`,
      )
    return ec2.quotes.forCancellation(quoteId, reservation).chargedUntilMs
  }
  return action({
    input,
    isMutating: true,
    check: (wish, { region }) => void checked(wish, region),
    run(wish, { region }) {
      const chargedUntilMs = checked(wish, region)
      const reservation = findReservation(ec2.region(region), wish.CapacityReservationId)
      if (chargedUntilMs > ec2.nowMs) ec2.reservations.windDown(reservation, chargedUntilMs)
      else ec2.reservations.cancel(reservation)
      return { return: true }
    },
  })
}

/** Blocks, and reservations of other accounts, can be neither changed nor cancelled. */
export function changeable(ec2: Ec2, region: string, id: string): CapacityReservation {
  const reservation = findReservation(ec2.region(region), id)
  if (isBlock(reservation))
    throw new ApiError('OperationNotPermitted', "You can't modify or cancel a Capacity Block.")
  if (reservation.ownerId !== ec2.account)
    throw new ApiError('UnauthorizedOperation', 'Only the owner can change a capacity reservation.', 403)
  return reservation
}

function requireState(reservation: CapacityReservation, states: readonly ReservationState[]): void {
  const state = reservationState(reservation)
  if (!states.includes(state))
    throw new ApiError(
      'InvalidCapacityReservationState',
      `The capacity reservation '${reservation.id}' is ${state}.`,
    )
}
