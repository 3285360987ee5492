/** The lifecycle of capacity reservations: paid, active, ended by time or by request. */
import type { OfferingPlan, ReservationPlan } from '../world/capacity-schema'
import type { Ec2 } from './ec2'
import { blockPayment, type Payment } from './payments'
import { placesIn, reservationState, isBlock } from './reservation-model'
import type { CapacityReservation, ReservationState } from './reservation-model'

/** A planned reservation, in instants of the clock. */
export interface ReservationWish extends Pick<ReservationPlan, 'kind' | 'matching' | 'payment'> {
  region: string
  zone: string
  type: string
  platform: string
  count: number
  startsAtMs: number
  endsAtMs?: number | undefined
  upfrontUsd: number
  /** What a bought block is sold from. */
  soldFrom?: OfferingPlan
  ownerId?: string | undefined
  clientToken?: string | undefined
  tags?: ReadonlyMap<string, string>
}

/** The next scheduled change of a reservation. */
interface Step {
  atMs: number
  act: () => void
}

export class ReservationLife {
  private readonly waits = new Map<CapacityReservation, () => void>()
  private readonly warned = new Set<CapacityReservation>()
  private readonly payments = new Map<CapacityReservation, Payment>()

  constructor(private readonly ec2: Ec2) {}

  add(wish: ReservationWish): CapacityReservation {
    const { ec2 } = this
    const { nowMs } = ec2
    const { world, ids } = ec2.parts
    const region = ec2.region(wish.region)
    const reservation: CapacityReservation = {
      id: ids.resource('cr'),
      kind: wish.kind,
      ...(isBlock(wish) ? { blockId: ids.resource('cb') } : {}),
      clientToken: wish.clientToken ?? '',
      ownerId: wish.ownerId ?? ec2.account,
      region: wish.region,
      zone: region.plan.zones.find(({ name }) => name === wish.zone)!,
      type: world.types.get(wish.type)!,
      platform: wish.platform,
      matching: wish.matching,
      createdAtMs: nowMs,
      startsAtMs: wish.startsAtMs,
      ...(wish.endsAtMs === undefined ? {} : { endsAtMs: wish.endsAtMs }),
      upfrontUsd: wish.upfrontUsd,
      ...(wish.soldFrom === undefined ? {} : { soldFrom: wish.soldFrom }),
      tags: new Map(wish.tags),
      history: [{ atMs: nowMs, state: this.firstState(wish) }],
      totals: [{ atMs: nowMs, count: wish.count }],
      stays: [],
      notices: [],
      isEnding: false,
    }
    if (reservationState(reservation) === 'payment-pending') {
      const { atMs, succeeds } = blockPayment(ec2, wish, wish.startsAtMs)
      this.payments.set(reservation, { atMs, succeeds: succeeds && wish.payment === 'succeeds' })
    }
    region.reservations.set(reservation.id, reservation)
    this.wait(reservation)
    return reservation
  }

  /** A block that has begun has already been paid for. */
  private firstState({ kind, startsAtMs, payment }: ReservationWish): ReservationState {
    if (startsAtMs <= this.ec2.nowMs && payment === 'succeeds') return 'active'
    return isBlock({ kind }) ? 'payment-pending' : 'scheduled'
  }

  /** Sets another end, or none. */
  endAt(reservation: CapacityReservation, endsAtMs: number | undefined): void {
    if (endsAtMs === undefined) delete reservation.endsAtMs
    else reservation.endsAtMs = endsAtMs
    this.warned.delete(reservation)
    this.wait(reservation)
  }

  resize(reservation: CapacityReservation, count: number): void {
    if (count !== placesIn(reservation)) reservation.totals.push({ atMs: this.ec2.nowMs, count })
  }

  cancel(reservation: CapacityReservation): void {
    this.end(reservation, 'cancelled')
  }

  private wait(reservation: CapacityReservation): void {
    this.waits.get(reservation)?.()
    this.waits.delete(reservation)
    const step = this.next(reservation)
    if (step === undefined) return
    const act = (): void => {
      step.act()
      this.wait(reservation)
    }
    this.waits.set(reservation, this.ec2.parts.clock.after(Math.max(0, step.atMs - this.ec2.nowMs), act))
  }

  private next(reservation: CapacityReservation): Step | undefined {
    switch (reservationState(reservation)) {
      case 'payment-pending':
        return this.payment(reservation)
      case 'scheduled':
        return {
          atMs: reservation.startsAtMs,
          act: () => {
            this.change(reservation, 'active')
            if (isBlock(reservation)) this.tell(reservation, 'Capacity Block Delivered')
          },
        }
      case 'active':
        return this.nextOfActive(reservation)
      case 'payment-failed':
      case 'expired':
      case 'cancelled':
        return undefined
    }
  }

  private nextOfActive(reservation: CapacityReservation): Step | undefined {
    const { endsAtMs } = reservation
    if (endsAtMs === undefined) return undefined
    const end = { atMs: endsAtMs, act: () => this.end(reservation, 'expired') }
    if (!isBlock(reservation)) return end
    const earlier = (name: 'blockWarning' | 'blockTermination'): number => endsAtMs - this.ec2.drawMs(name)
    if (!this.warned.has(reservation)) {
      return {
        atMs: earlier('blockWarning'),
        act: () => {
          this.warned.add(reservation)
          this.tell(reservation, 'Capacity Block Expiration Warning')
        },
      }
    }
    if (!reservation.isEnding)
      return { atMs: earlier('blockTermination'), act: () => this.takeBack(reservation) }
    return end
  }

  private payment(reservation: CapacityReservation): Step {
    const { atMs, succeeds } = this.payments.get(reservation)!
    return { atMs, act: () => this.change(reservation, succeeds ? 'scheduled' : 'payment-failed') }
  }

  private takeBack(reservation: CapacityReservation): void {
    reservation.isEnding = true
    for (const { instance } of reservation.stays) this.ec2.parts.lifecycle.reclaim(instance)
  }

  /** Instances of an on-demand reservation keep running without it. */
  private end(reservation: CapacityReservation, state: 'expired' | 'cancelled'): void {
    this.change(reservation, state)
    if (isBlock(reservation)) return
    for (const stay of reservation.stays) {
      if (stay.untilMs !== undefined) continue
      stay.untilMs = this.ec2.nowMs
      if (stay.instance.place === reservation) delete stay.instance.place
    }
  }

  private change(reservation: CapacityReservation, state: ReservationState): void {
    reservation.history.push({ atMs: this.ec2.nowMs, state })
  }

  private tell(reservation: CapacityReservation, what: string): void {
    reservation.notices.push({ atMs: this.ec2.nowMs, what })
  }
}
