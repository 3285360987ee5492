/** The sale of extensions of Capacity Blocks. An extension has no client token and no tags. */
import { createHash } from 'node:crypto'
import { ApiError } from '../wire/errors'
import type { OfferingPlan } from '../world/capacity-schema'
import type { Period } from './block-market'
import { checkHours, DAY_MS, HOUR_MS, HOURS_MAX } from './block-rules'
import type { Ec2 } from './ec2'
import { extensionPayment } from './payments'
import { isBlock, isLive, placesIn, reservationState } from './reservation-model'
import type { BlockExtension, CapacityReservation } from './reservation-model'

/** An extension for sale, as a list has shown it. */
export interface ExtensionOffering extends Period {
  id: string
  reservation: CapacityReservation
  hours: number
  usd: number
}

/** An extension is bought this long before the end of the block at the latest, and at the earliest. */
const LEAST_BEFORE_MS = HOUR_MS
const MOST_BEFORE_MS = 56 * DAY_MS

export class ExtensionMarket {
  private readonly shown = new Map<string, ExtensionOffering>()

  constructor(private readonly ec2: Ec2) {}

  /** Returns the offerings; empty without capacity. Throws if the block cannot be extended, or not by that duration. */
  offer(reservation: CapacityReservation, hours: number): ExtensionOffering[] {
    checkHours(hours, 'CapacityBlockExtensionDurationHours')
    checkExtendable(this.ec2, reservation)
    const { startsAtMs: beganAtMs, endsAtMs: startsAtMs = 0 } = reservation
    const lengthHours = (startsAtMs - beganAtMs) / HOUR_MS + hours
    if (lengthHours > HOURS_MAX)
      throw new ApiError(
        'InvalidParameterValue',
        `Invalid value '${hours}' for CapacityBlockExtensionDurationHours: a block may last 182 days at most.`,
      )
    const plan = this.planFor(reservation)
    if (plan === undefined) return []
    const endsAtMs = startsAtMs + hours * HOUR_MS
    const period = { plan, count: placesIn(reservation), startsAtMs, endsAtMs }
    if (!this.ec2.blocks.hasRoom(period)) return []
    const usd = this.ec2.blocks.feeOf(period)
    const name = [reservation.id, startsAtMs, endsAtMs, usd].join('/')
    const id = `cbe-0${createHash('sha256').update(name).digest('hex').slice(0, 16)}`
    const offering = { ...period, id, reservation, hours, usd }
    for (const [other, { startsAtMs: atMs }] of this.shown)
      if (atMs <= this.ec2.nowMs) this.shown.delete(other)
    this.shown.set(id, offering)
    return [offering]
  }

  /** Returns the offering for a purchase. Throws if it is malformed, was never listed, or no longer exists. */
  forPurchase(id: string, reservation: CapacityReservation): ExtensionOffering {
    if (!/^cbe-[0-9a-f]{17}$/.test(id)) throw unusable(id, 'Malformed', 'is malformed')
    const offering = this.shown.get(id)
    if (offering?.reservation !== reservation)
      throw unusable(id, 'NotFound', 'cannot be found for this account')
    checkExtendable(this.ec2, reservation)
    const isForSale =
      reservation.endsAtMs === offering.startsAtMs &&
      this.ec2.blocks.hasRoom(offering) &&
      (this.ec2.parts.world.blockMarket.keepsPrice || this.ec2.blocks.feeOf(offering) === offering.usd)
    if (!isForSale) throw goneExtension(id)
    return offering
  }

  /** Records a purchase; the block ends later once it is paid for. */
  buy({ reservation, id, plan, hours, startsAtMs, endsAtMs, usd }: ExtensionOffering): BlockExtension {
    const { ec2 } = this
    const bought: BlockExtension = {
      offeringId: id,
      plan,
      hours,
      boughtAtMs: ec2.nowMs,
      startsAtMs,
      endsAtMs,
      usd,
      status: 'payment-pending',
    }
    reservation.extensions.push(bought)
    const { region, zone, type } = reservation
    const payment = extensionPayment(ec2, { region, zone: zone.name, type: type.name }, startsAtMs)
    ec2.parts.clock.after(payment.atMs - ec2.nowMs, () => {
      const isPaid = payment.succeeds && isLive(reservation)
      bought.status = isPaid ? 'payment-succeeded' : 'payment-failed'
      if (isPaid) ec2.reservations.endAt(reservation, endsAtMs)
    })
    return bought
  }

  /** A block that was not bought here is extended from the capacity for sale of its zone and type. */
  private planFor({ soldFrom, zone, type, ultraserver }: CapacityReservation): OfferingPlan | undefined {
    return (
      soldFrom ??
      this.ec2.parts.world.blockOfferings.find(
        (plan) => plan.zone === zone.name && plan.type === type.name && plan.ultraserver === ultraserver,
      )
    )
  }
}

/** AWS documents the rules, not the codes of their violation. */
function checkExtendable(ec2: Ec2, reservation: CapacityReservation): void {
  const { id, endsAtMs = 0, extensions, ownerId } = reservation
  if (!isBlock(reservation))
    throw new ApiError('InvalidParameterValue', `The capacity reservation '${id}' is not a Capacity Block.`)
  if (ownerId !== ec2.account)
    throw new ApiError('UnauthorizedOperation', 'Only the owner can extend a Capacity Block.', 403)
  const state = reservationState(reservation)
  if (state !== 'active' && state !== 'scheduled')
    throw new ApiError('InvalidCapacityReservationState', `The Capacity Block '${id}' is ${state}.`)
  if (extensions.some(({ status }) => status === 'payment-pending'))
    throw new ApiError(
      'InvalidCapacityReservationState',
      `The Capacity Block '${id}' has an extension whose payment is pending.`,
    )
  const leftMs = endsAtMs - ec2.nowMs
  if (leftMs < LEAST_BEFORE_MS || leftMs > MOST_BEFORE_MS)
    throw new ApiError(
      'InvalidCapacityReservationState',
      `The Capacity Block '${id}' can be extended from 56 days until 1 hour before its end.`,
    )
}

/** AWS documents such codes for offerings of blocks; those for extensions are named after them. */
function unusable(id: string, what: 'Malformed' | 'NotFound' | 'Expired', why: string): ApiError {
  return new ApiError(
    `InvalidCapacityBlockExtensionOfferingId${what}`,
    `The Capacity Block extension offering ID '${id}' ${why}.`,
  )
}

export function goneExtension(id: string): ApiError {
  return unusable(id, 'Expired', 'is no longer available')
}
