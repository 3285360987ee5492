/** The sale of Capacity Blocks: which are for sale now, at what price, and who has bought them. */
import { createHash } from 'node:crypto'
import { ApiError } from '../wire/errors'
import type { OfferingPlan } from '../world/capacity-schema'
import { HOUR_MS } from './block-rules'
import type { Ec2 } from './ec2'
import { isLive, placesIn, type CapacityReservation } from './reservation-model'

/** A block with fixed dates, before it has an id and a price. */
export interface Period {
  plan: OfferingPlan
  /** The number of instances. */
  count: number
  startsAtMs: number
  endsAtMs: number
}

/** A block for sale, as a list has shown it. */
export interface Offering extends Period {
  id: string
  region: string
  /** The price of the whole block. */
  usd: number
}

/** Instances that another customer holds. */
interface Taken extends Period {
  /** When they are for sale again. */
  untilMs: number
}

export class BlockMarket {
  /** Offerings that lists have shown; a purchase names one of them. */
  private readonly shown = new Map<string, Offering>()
  /** Number of purchases of each block; a block that sells only once gets a new id after each. */
  private readonly sales = new Map<string, number>()
  private taken: Taken[] = []
  private tidiedAtMs = -Infinity

  constructor(private readonly ec2: Ec2) {}

  /** Lists a block for sale; `undefined` when no stock is left for it. */
  offer(period: Period): Offering | undefined {
    if (!this.hasRoom(period)) return undefined
    const { plan, count, startsAtMs, endsAtMs } = period
    const usd = this.feeOf(period)
    const name = [plan.zone, plan.type, count, startsAtMs, endsAtMs, usd, this.sales.get(nameOf(period)) ?? 0]
    const id = `cb-0${createHash('sha256').update(name.join('/')).digest('hex').slice(0, 16)}`
    const offering = { ...period, id, region: plan.zone.slice(0, -1), usd }
    this.forgetPast()
    this.shown.set(id, offering)
    return offering
  }

  /** Returns the offering for a purchase. Throws if it is malformed, was never listed, or no longer exists. */
  forPurchase(id: string, region: string): Offering {
    if (!/^cb-[0-9a-f]{17}$/.test(id))
      throw new ApiError(
        'InvalidCapacityBlockOfferingIdMalformed',
        `The Capacity Block offering ID '${id}' is malformed.`,
      )
    const offering = this.shown.get(id)
    if (offering?.region !== region)
      throw new ApiError(
        'InvalidCapacityBlockOfferingIdNotFound',
        `The Capacity Block offering ID '${id}' cannot be found for this account.`,
      )
    if (!this.isForSale(offering)) throw goneOffering(id)
    return offering
  }

  private isForSale(offering: Offering): boolean {
    const { sellsTwice, keepsPrice } = this.ec2.parts.world.blockMarket
    const isNew = sellsTwice || !this.sales.has(offering.id)
    const isPriceKept = keepsPrice || this.feeOf(offering) === offering.usd
    return isNew && isPriceKept && offering.startsAtMs > this.ec2.nowMs && this.hasRoom(offering)
  }

  /** Records a purchase. */
  sold(offering: Offering): void {
    const { sellsTwice } = this.ec2.parts.world.blockMarket
    this.sales.set(offering.id, (this.sales.get(offering.id) ?? 0) + 1)
    if (!sellsTwice) this.sales.set(nameOf(offering), (this.sales.get(nameOf(offering)) ?? 0) + 1)
  }

  /** Sells to another customer, for a while or forever. */
  sellElsewhere(period: Period, forMs = Infinity): void {
    this.taken.push({ ...period, untilMs: this.ec2.nowMs + forMs })
  }

  /** Returns the price of a block now, in dollars. */
  feeOf({ plan, count, startsAtMs, endsAtMs }: Period): number {
    const usdPerHour = this.ec2.parts.market.current(plan.usdPerInstanceHour)
    return (usdPerHour * count * (endsAtMs - startsAtMs)) / HOUR_MS
  }

  /** Whether the stock allows these instances in addition to sold ones. */
  hasRoom(period: Period): boolean {
    const { plan, count } = period
    const others = this.taken.filter((each) => each.plan === plan && each.untilMs > this.ec2.nowMs)
    // A plan without a number sells any number of blocks, but not one that another customer has just bought.
    if (plan.stock === undefined) return !others.some((each) => nameOf(each) === nameOf(period))
    const held = [...others, ...this.ownBlocks(plan)]
    const instants = [period.startsAtMs, ...held.map(({ startsAtMs }) => startsAtMs)]
    const most = Math.max(...instants.map((atMs) => (covers(period, atMs) ? countAt(held, atMs) : 0)))
    return most + count <= this.ec2.parts.market.current(plan.stock)
  }

  private ownBlocks(plan: OfferingPlan): Period[] {
    const region = this.ec2.region(plan.zone.slice(0, -1))
    return [...region.reservations.values()].filter(isLive).flatMap((each) => periodsOf(each, plan))
  }

  /** Forgets blocks that have begun, because they are no longer for sale. */
  private forgetPast(): void {
    const { nowMs } = this.ec2
    if (nowMs < this.tidiedAtMs + HOUR_MS) return
    this.tidiedAtMs = nowMs
    this.taken = this.taken.filter(({ untilMs, endsAtMs }) => Math.min(untilMs, endsAtMs) > nowMs)
    for (const [id, { startsAtMs }] of this.shown) {
      if (startsAtMs > nowMs - FORGET_MS) continue
      this.shown.delete(id)
      this.sales.delete(id)
    }
  }
}

/** A past offering is reported as gone for this long, and afterwards as never seen. */
const FORGET_MS = 24 * HOUR_MS

/** AWS documents the codes of an offering that is gone, malformed or unknown, but not their messages. */
export function goneOffering(id: string): ApiError {
  return new ApiError(
    'InvalidCapacityBlockOfferingIdExpired',
    `The Capacity Block offering ID '${id}' is no longer available.`,
  )
}

function nameOf({ plan, count, startsAtMs, endsAtMs }: Period): string {
  return [plan.zone, plan.type, count, startsAtMs, endsAtMs].join('/')
}

function covers({ startsAtMs, endsAtMs }: Period, atMs: number): boolean {
  return startsAtMs <= atMs && atMs < endsAtMs
}

function countAt(periods: readonly Period[], atMs: number): number {
  return periods.filter((each) => covers(each, atMs)).reduce((sum, { count }) => sum + count, 0)
}

/** Returns the periods for which a block of the account holds instances of a plan. An extension counts while it is being paid for. */
function periodsOf(block: CapacityReservation, plan: OfferingPlan): Period[] {
  const { startsAtMs, endsAtMs = Infinity, soldFrom, extensions } = block
  const count = placesIn(block)
  const extended = extensions.filter((each) => each.plan === plan && each.status !== 'payment-failed')
  // A paid extension has moved the end of the block, which may be of another plan.
  const pending = extended.filter((each) => soldFrom !== plan || each.status === 'payment-pending')
  const own = soldFrom === plan ? [{ plan, count, startsAtMs, endsAtMs }] : []
  return [
    ...own,
    ...pending.map((each) => ({ plan, count, startsAtMs: each.startsAtMs, endsAtMs: each.endsAtMs })),
  ]
}
