/** The lifecycle of capacity reservations: paid, active, ended by time, by request or by AWS. */
import type { OfferingPlan, ReservationPlan } from '../world/capacity-schema'
import type { Ec2 } from './ec2'
import { blockPayment } from './payments'
import { isBlock, placesIn, reservationState } from './reservation-model'
import type { CapacityReservation, Commitment, ReservationState } from './reservation-model'
import { eventOf, instanceWarning } from './reservation-events'

/** A planned reservation, in instants of the clock. */
export interface ReservationSpec extends Pick<
  ReservationPlan,
  'kind' | 'matching' | 'payment' | 'ultraserver' | 'isInterruptible'
> {
  region: string
  zone: string
  type: string
  platform: string
  count: number
  startsAtMs: number
  endsAtMs?: number | undefined
  upfrontUsd: number
  /** Offering of a bought block. */
  soldFrom?: OfferingPlan
  /** Makes it a future-dated reservation. */
  commitment?: Commitment | undefined
  /** Whether it gets existing places of another reservation. */
  isMoved?: boolean
  ownerId?: string | undefined
  clientToken?: string | undefined
  tags?: ReadonlyMap<string, string>
}

/** The next scheduled change of a reservation. */
interface Step {
  atMs: number
  act: () => void
}

/** End of its first state, decided at the creation. */
interface Outcome {
  atMs: number
  state: ReservationState
}

export class ReservationLife {
  private readonly waits = new Map<CapacityReservation, () => void>()
  private readonly warned = new Set<CapacityReservation>()
  private readonly outcomes = new Map<CapacityReservation, Outcome>()
  private readonly deliveredAtMs = new Map<CapacityReservation, number>()

  constructor(private readonly ec2: Ec2) {}

  add(wish: ReservationSpec): CapacityReservation {
    const { ec2 } = this
    const { nowMs } = ec2
    const { world, ids } = ec2.parts
    const region = ec2.region(wish.region)
    const { endsAtMs, soldFrom, commitment, ultraserver, isInterruptible } = wish
    const first = this.firstState(wish)
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
      ...(endsAtMs === undefined ? {} : { endsAtMs }),
      upfrontUsd: wish.upfrontUsd,
      refundedUsd: 0,
      ...(soldFrom === undefined ? {} : { soldFrom }),
      ...(ultraserver === undefined ? {} : { ultraserver }),
      ...(commitment === undefined ? {} : { commitment }),
      isInterruptible: isInterruptible === true,
      tags: new Map(wish.tags),
      history: [{ atMs: nowMs, state: first.state }],
      totals: [{ atMs: nowMs, count: wish.count }],
      stays: [],
      extensions: [],
      notices: [],
      isEnding: false,
    }
    if (first.outcome !== undefined) this.outcomes.set(reservation, first.outcome)
    region.reservations.set(reservation.id, reservation)
    this.wait(reservation)
    return reservation
  }

  /** Returns the first state. A block that has begun has already been paid for. */
  private firstState(wish: ReservationSpec): { state: ReservationState; outcome?: Outcome } {
    const { nowMs } = this.ec2
    const hasBegun = wish.startsAtMs <= nowMs
    if (isBlock(wish)) {
      if (hasBegun && wish.payment === 'succeeds') return { state: 'active' }
      const { atMs, succeeds } = blockPayment(this.ec2, wish, wish.startsAtMs)
      const isPaid = succeeds && wish.payment === 'succeeds'
      return { state: 'payment-pending', outcome: { atMs, state: isPaid ? 'scheduled' : 'payment-failed' } }
    }
    const { faults } = this.ec2.parts
    if (wish.commitment !== undefined) {
      const isRefused = faults.first('reservation-unsupported', occasionOf(wish)) !== undefined
      const atMs = Math.min(nowMs + this.ec2.drawMs('assessment'), wish.startsAtMs)
      return { state: 'assessing', outcome: { atMs, state: isRefused ? 'unsupported' : 'scheduled' } }
    }
    if (!hasBegun) return { state: 'scheduled' }
    const pending = wish.isMoved === true ? undefined : faults.first('reservation-pending', occasionOf(wish))
    if (pending === undefined) return { state: 'active' }
    const state = pending.fails ? 'failed' : 'active'
    return { state: 'pending', outcome: { atMs: nowMs + pending.for, state } }
  }

  /** Sets another end, or none. */
  endAt(reservation: CapacityReservation, endsAtMs: number | undefined): void {
    if (endsAtMs === undefined) delete reservation.endsAtMs
    else reservation.endsAtMs = endsAtMs
    // Warning and termination happen again before the new end.
    this.warned.delete(reservation)
    reservation.isEnding = false
    this.wait(reservation)
  }

  /** Delivers it at another instant. */
  startAt(reservation: CapacityReservation, startsAtMs: number): void {
    reservation.startsAtMs = startsAtMs
    this.wait(reservation)
  }

  resize(reservation: CapacityReservation, count: number): void {
    if (count !== placesIn(reservation)) reservation.totals.push({ atMs: this.ec2.nowMs, count })
  }

  cancel(reservation: CapacityReservation): void {
    this.end(reservation, 'cancelled')
    this.wait(reservation)
  }

  /** Releases the capacity of a future-dated reservation, which is charged for some more time. */
  windDown(reservation: CapacityReservation, chargedUntilMs: number): void {
    reservation.chargedUntilMs = chargedUntilMs
    if (reservation.commitment !== undefined) this.resize(reservation, reservation.commitment.count)
    this.end(reservation, 'cancelling')
    this.wait(reservation)
  }

  /** Lets AWS withdraw the reservation; the instances of a block end with it. */
  withdraw(reservation: CapacityReservation, state: 'cancelled' | 'failed' | 'unavailable'): void {
    if (isBlock(reservation)) this.takeBack(reservation)
    this.end(reservation, state)
    this.wait(reservation)
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
      case 'pending':
      case 'assessing': {
        const { atMs, state } = this.outcomes.get(reservation)!
        return { atMs, act: () => this.change(reservation, state) }
      }
      case 'scheduled':
        return { atMs: reservation.startsAtMs, act: () => this.deliver(reservation) }
      case 'delayed':
        return {
          atMs: this.deliveredAtMs.get(reservation)!,
          act: () => this.change(reservation, 'active'),
        }
      case 'active':
        return this.nextOfActive(reservation)
      case 'cancelling':
        return { atMs: reservation.chargedUntilMs!, act: () => this.change(reservation, 'cancelled') }
      case 'payment-failed':
      case 'failed':
      case 'unsupported':
      case 'expired':
      case 'cancelled':
      case 'unavailable':
        return undefined
    }
  }

  private nextOfActive(reservation: CapacityReservation): Step | undefined {
    const { endsAtMs, ultraserver } = reservation
    if (endsAtMs === undefined) return undefined
    const expire = (): void => this.end(reservation, 'expired')
    if (!isBlock(reservation)) return { atMs: endsAtMs + this.ec2.drawMs('endDelay'), act: expire }
    const termination = ultraserver === undefined ? 'blockTermination' : 'ultraserverTermination'
    const steps: Step[] = [{ atMs: endsAtMs, act: expire }]
    if (!reservation.isEnding)
      steps.push({
        atMs: endsAtMs - this.ec2.drawMs(termination),
        act: () => this.takeBack(reservation),
      })
    if (!this.warned.has(reservation))
      steps.push({ atMs: endsAtMs - this.ec2.drawMs('blockWarning'), act: () => this.warn(reservation) })
    // The earliest; of two at the same instant the warning comes first.
    return steps.reduce((first, each) => (each.atMs <= first.atMs ? each : first))
  }

  /** EC2 may deliver a future-dated reservation late. */
  private deliver(reservation: CapacityReservation): void {
    const { commitment, region, zone, type } = reservation
    const occasion = occasionOf({ region, zone: zone.name, type: type.name })
    const late = commitment && this.ec2.parts.faults.first('reservation-late', occasion)
    if (late === undefined) return this.change(reservation, 'active')
    this.deliveredAtMs.set(reservation, this.ec2.nowMs + late.by)
    this.change(reservation, 'delayed')
  }

  private warn(reservation: CapacityReservation): void {
    this.warned.add(reservation)
    const { nowMs } = this.ec2
    reservation.notices.push({ atMs: nowMs, what: 'Capacity Block Expiration Warning' })
    reservation.notices.push(...instanceWarning(reservation, nowMs))
  }

  private takeBack(reservation: CapacityReservation): void {
    reservation.isEnding = true
    for (const { instance } of reservation.stays) this.ec2.parts.lifecycle.reclaim(instance)
  }

  /** Instances of an on-demand reservation keep running without it. */
  private end(reservation: CapacityReservation, state: ReservationState): void {
    this.change(reservation, state)
    if (isBlock(reservation)) return
    for (const stay of reservation.stays) {
      if (stay.untilMs !== undefined) continue
      stay.untilMs = this.ec2.nowMs
      if (stay.instance.place === reservation) delete stay.instance.place
    }
  }

  private change(reservation: CapacityReservation, state: ReservationState): void {
    const { nowMs } = this.ec2
    reservation.history.push({ atMs: nowMs, state })
    const what = eventOf(reservation, state)
    if (what !== undefined) reservation.notices.push({ atMs: nowMs, what })
  }
}

function occasionOf({ region, zone, type }: { region: string; zone: string; type: string }) {
  return { service: 'ec2', region, zone, type, capacity: 'reserved' as const }
}
