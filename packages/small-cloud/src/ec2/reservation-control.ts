/** The operator's requests about reservations, and changes in the place of AWS. */
import { z } from 'zod'
import { inWords } from '../issues'
import { reservationPlan } from '../world/capacity-schema'
import { moment } from '../world/durations'
import { misnomersOfReservation } from '../world/names'
import { reservationBillOf, type ReservationBill } from './bill'
import type { Ec2 } from './ec2'
import {
  freeIn,
  isBlock,
  isLive,
  placesIn,
  reservationState,
  type CapacityReservation,
} from './reservation-model'
import { addPlanned, instantOf } from './reservation-plans'

const anotherEnd = z.strictObject({ reservation: z.string(), ends: moment })

/** AWS takes a reservation back. */
const withdrawal = z.strictObject({
  reservation: z.string(),
  state: z.enum(['cancelled', 'failed', 'unavailable']).default('cancelled'),
  /** Part of a block's price that AWS pays back. */
  refundUsd: z.number().min(0).default(0),
})

export interface ReservationSummary {
  id: string
  kind: string
  state: string
  type: string
  zone: string
  tags: Record<string, string>
  createdAtMs: number
  /** The id of a Capacity Block. */
  block?: string
  total: number
  free: number
  startsAtMs: number
  endsAtMs?: number
  /** Extensions of a block, oldest first. */
  extensions: { status: string; endsAtMs: number; usd: number }[]
  /** Events sent to its owner. */
  notices: string[]
  /** Cost so far, without the instances in it. */
  bill: ReservationBill
}

export class ReservationControl {
  constructor(private readonly ec2: Ec2) {}

  list(): ReservationSummary[] {
    return this.all().map((each) => summaryOf(this.ec2, each))
  }

  /** Gives the account a reservation, as a world file does. */
  add(wish: unknown): ReservationSummary {
    const plan = reservationPlan.parse(wish, { error: inWords })
    const [wrong] = misnomersOfReservation(this.ec2.parts.world, plan)
    if (wrong !== undefined) throw new Error(wrong)
    return summaryOf(this.ec2, addPlanned(this.ec2, plan))
  }

  /** Moves the end of a Capacity Block to a later instant, without a purchase. */
  extend(wish: unknown): void {
    const { block, endsAtMs } = this.movable(wish)
    if (endsAtMs <= (block.endsAtMs ?? 0)) throw new Error(`${block.id} ends later than that already`)
    this.ec2.reservations.endAt(block, endsAtMs)
  }

  /** Moves the end of a Capacity Block to an earlier instant: AWS needs the capacity. */
  shorten(wish: unknown): void {
    const { block, endsAtMs } = this.movable(wish)
    if (endsAtMs >= (block.endsAtMs ?? Infinity))
      throw new Error(`${block.id} ends earlier than that already`)
    if (endsAtMs < Math.max(block.startsAtMs, this.ec2.nowMs))
      throw new Error(`${block.id} cannot end in the past, nor before its start`)
    this.ec2.reservations.endAt(block, endsAtMs)
  }

  withdraw(wish: unknown): void {
    const { reservation: id, state, refundUsd } = withdrawal.parse(wish, { error: inWords })
    const found = this.all().find((each) => each.id === id)
    if (found === undefined) throw new Error(`there is no reservation ${id}`)
    if (!isLive(found)) throw new Error(`${id} is ${reservationState(found)} already`)
    const { upfrontUsd } = reservationBillOf(this.ec2, found)
    if (refundUsd > upfrontUsd) throw new Error(`${id} has cost $${upfrontUsd} upfront; refund no more`)
    found.refundedUsd += refundUsd
    this.ec2.reservations.withdraw(found, state)
  }

  private movable(wish: unknown): { block: CapacityReservation; endsAtMs: number } {
    const { reservation: id, ends } = anotherEnd.parse(wish, { error: inWords })
    const block = this.all().find((each) => each.id === id)
    if (block === undefined || !isBlock(block)) throw new Error(`there is no Capacity Block ${id}`)
    if (block.isEnding || !['active', 'scheduled'].includes(reservationState(block)))
      throw new Error(`the end of ${id} can be moved no more`)
    return { block, endsAtMs: instantOf(this.ec2, ends) }
  }

  private all(): CapacityReservation[] {
    return [...this.ec2.regions.values()].flatMap(({ reservations }) => [...reservations.values()])
  }
}

function summaryOf(ec2: Ec2, reservation: CapacityReservation): ReservationSummary {
  const { id, kind, type, zone, tags, blockId, createdAtMs, startsAtMs, endsAtMs } = reservation
  return {
    id,
    kind,
    createdAtMs,
    startsAtMs,
    ...(blockId === undefined ? {} : { block: blockId }),
    tags: Object.fromEntries(tags),
    state: reservationState(reservation),
    type: type.name,
    zone: zone.name,
    total: placesIn(reservation),
    free: freeIn(reservation, ec2.nowMs),
    ...(endsAtMs === undefined ? {} : { endsAtMs }),
    extensions: reservation.extensions.map(({ status, endsAtMs: untilMs, usd }) => ({
      status,
      endsAtMs: untilMs,
      usd,
    })),
    notices: reservation.notices.map(({ what, instance }) => (instance ? `${what}: ${instance}` : what)),
    bill: reservationBillOf(ec2, reservation),
  }
}
