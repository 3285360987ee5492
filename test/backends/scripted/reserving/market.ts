import {
  isHeld,
  type CapacityQuote,
  type CapacityRequest,
  type OwnedReservation,
  type ReleaseTerms,
  type ReservationChange,
  type ReservationOrder,
  type ReservationRef,
} from '../../../../core/reservation/reservation'
import { HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import type { Failure } from '../../../../core/failure'
import { BackendError } from '../../../../backends/errors'
import type { Clock } from '../clock'
import { FaultScript } from '../faults'
import { endOf, phaseOf, settlement, shown, type Holding, type Payment } from './holding'
import { valueAt, type Lot } from './lots'
import { quotesOf } from './quotes'

export type ReservingVerb =
  'account' | 'reservable' | 'reservations' | 'reserve' | 'change' | 'releaseTerms' | 'release'

/** What goes wrong with one call. Whatever is not scripted keeps every promise of the contract. */
export type ReservingFault =
  /** Thrown before any effect. */
  | { kind: 'throws'; failure: Failure }
  /** A purchase that certainly buys nothing. */
  | { kind: 'refuses'; failure: Failure }
  | { kind: 'slow'; durationMs: number }
  /** Not answered until the caller leaves. */
  | { kind: 'hangs'; hasEffect: boolean }
  /** A purchase is `unconfirmed`; another call throws. */
  | { kind: 'loses-answer'; hasEffect: boolean }
  /** A purchase without an answer that is made only after so long. */
  | { kind: 'late'; effectAfterMs: number }
  /** Another customer buys the quote in the moment of the purchase. */
  | { kind: 'gone' }

/** One purchase that the provider really made: what it charges for. */
export interface Purchase {
  /** Of the reservation. */
  id: string
  /** `extension` of a reservation that was bought before. */
  kind: 'reservation' | 'extension'
  intent: string
  send: number
  deployment: string
  owner: string
  quote: CapacityQuote
  atMs: number
  /** Undefined while the payment is pending. */
  readonly isPaid: boolean | undefined
}

export interface MarketOptions {
  clock: Clock
  /** The account that pays. Deployments that share a market share it. */
  account?: string
  lots?: Lot[]
  /** Of every purchase; confirmed after five minutes if missing. */
  payment?: Payment
  /** How long before its end a prepaid reservation stops being usable. */
  cutOffMs?: number
  /** How long lists miss a purchase, and an extension. */
  listsLagMs?: number
  /** How long the provider takes to accept a start in the future. */
  assessedAfterMs?: number
  /** How long ended reservations are listed; for ever if missing. */
  forgetsAfterMs?: number
}

const TERMS_VALID_MS = 24 * HOUR_MS

/** What a provider sells in advance, and what an account holds there. Each test makes its own; deployments may share one. */
export class ReservationMarket {
  readonly clock: Clock
  readonly account: string
  readonly lots: Lot[]
  readonly faults = new FaultScript<ReservingVerb, ReservingFault>()
  readonly calls: { verb: ReservingVerb; atMs: number; intent?: string }[] = []
  /** The truth for the tests: every purchase with an effect, oldest first. */
  readonly purchases: Purchase[] = []
  /** Regions that do not answer. */
  readonly silent = new Set<string>()
  payment: Payment
  listsLagMs: number
  readonly cutOffMs: number
  readonly #o: MarketOptions
  readonly #holdings: Holding[] = []
  readonly #sold = new Map<Lot, number>()
  /** Machines in prepaid reservations. */
  readonly #watches = new Set<() => void>()
  readonly #splits = new Map<string, string>()
  readonly #terms = new Map<string, { id: string; untilMs: number; chargedUntilMs: number }>()

  constructor(options: MarketOptions) {
    this.#o = options
    this.clock = options.clock
    this.account = options.account ?? 'account-1'
    this.lots = [...(options.lots ?? [])]
    this.payment = options.payment ?? { kind: 'confirmed', afterMs: 5 * MINUTE_MS }
    this.listsLagMs = options.listsLagMs ?? 0
    this.cutOffMs = options.cutOffMs ?? 30 * MINUTE_MS
  }

  /** Puts capacity on sale; its fields may be changed while it is. */
  sell<T extends Lot>(lot: T): T {
    this.lots.push(lot)
    return lot
  }

  withdraw(lot: Lot): void {
    const at = this.lots.indexOf(lot)
    if (at >= 0) this.lots.splice(at, 1)
  }

  get regions(): string[] {
    const named = [...this.lots, ...this.#holdings].flatMap((one) => ('region' in one ? [one.region] : []))
    return [...new Set(named)]
  }

  /** What can be bought now in one Region. */
  quotes(wish: CapacityRequest, region: string): CapacityQuote[] {
    return quotesOf(
      { lots: this.lots.filter((lot) => this.#regionOf(lot) === region), cutOffMs: this.cutOffMs },
      { wish, nowMs: this.clock.now(), leftOf: (lot) => this.#leftOf(lot), held: (id) => this.#shownBy(id) },
    )
  }

  listed(region: string): OwnedReservation[] {
    const nowMs = this.clock.now()
    const { forgetsAfterMs = Infinity } = this.#o
    return this.#holdings
      .filter((one) => one.region === region && one.shownFromMs <= nowMs)
      .filter((one) => nowMs < (endOf(one, nowMs) ?? Infinity) + forgetsAfterMs)
      .map((one) => this.#shown(one))
  }

  /** Buys; or says why certainly nothing was bought. */
  buy(order: ReservationOrder): OwnedReservation | Failure {
    const { quote, intent, send, deployment } = order
    const token = this.#holdings.find(
      ({ kind, tags }) =>
        kind === 'hourly' && quote.kind === 'hourly' && tags.intent === intent && tags.send === send,
    )
    if (token !== undefined) return this.#shown(token)
    const lot = this.lots.find((one) => this.#sells(one, quote))
    if (lot === undefined) return gone('nothing is sold under these terms')
    if (this.#leftOf(lot) < (lot.kind === 'hourly' ? quote.count : 1)) return gone('another customer has it')
    this.#sold.set(lot, (this.#sold.get(lot) ?? 0) + 1)
    const nowMs = this.clock.now()
    const shownFromMs = nowMs + this.listsLagMs
    const payment = settlement(
      quote.kind === 'hourly' ? { kind: 'confirmed', afterMs: 0 } : this.payment,
      nowMs,
    )
    const extended = quote.extends === undefined ? undefined : this.#holding(quote.extends)
    extended?.extensions.push({ endsAtMs: quote.endsAtMs!, boughtAtMs: nowMs, payment, shownFromMs })
    const startsAtMs = Math.max(quote.startsAtMs, nowMs)
    const holding =
      extended ??
      this.#hold({
        kind: quote.kind,
        type: quote.type,
        region: quote.region,
        zone: quote.zone,
        total: quote.count,
        startsAtMs,
        payment,
        shownFromMs,
        perHourMicro: quote.perHourMicro / quote.count,
        tags: {
          deployment,
          intent,
          send,
          upfrontMicroUsd: quote.currency === 'USD' ? quote.upfrontMicro : undefined,
        },
        endsAtMs: quote.endsAtMs,
        ...(quote.committedMs !== undefined && {
          committedUntilMs: startsAtMs + quote.committedMs,
          assessedAtMs: nowMs + (this.#o.assessedAfterMs ?? 0),
        }),
      })
    const { clock } = this
    this.purchases.push({
      id: holding.id,
      kind: extended ? 'extension' : 'reservation',
      quote,
      atMs: nowMs,
      intent,
      send,
      deployment,
      owner: order.owner,
      get isPaid() {
        return clock.now() < payment.atMs ? undefined : payment.isPaid
      },
    })
    return this.#shown(holding)
  }

  /** A reservation that was not bought by an order: by a person, another program or another account. */
  hold(one: Partial<Holding> & Pick<Holding, 'kind' | 'type' | 'region' | 'zone' | 'total'>): string {
    return this.#hold(one).id
  }

  /** Lists show it without its tags. */
  untag(id: string): void {
    this.#holding(id)!.tags = {}
  }

  change({ id }: ReservationRef, change: ReservationChange): OwnedReservation {
    const one = this.#hourly(id)
    if (!isHeld(phaseOf(one, this.clock.now()))) throw refusal('expired', `${id} is over`)
    if (change.kind === 'end') {
      if (change.endsAtMs === null) delete one.endsAtMs
      else one.endsAtMs = change.endsAtMs
      return this.#shown(one)
    }
    if (change.kind === 'start') {
      const laterMs = change.startsAtMs - one.startsAtMs
      if (one.committedUntilMs !== undefined) one.committedUntilMs += laterMs
      one.startsAtMs = change.startsAtMs
      return this.#shown(one)
    }
    if (change.kind === 'count') {
      if (change.count < one.used) throw refusal('invalid', `${one.used} of its places are in use`)
      const lot = this.lots.find((each) => each.kind === 'hourly' && isSame(each, one))
      if (change.count > one.total && (lot === undefined || this.#leftOf(lot) < change.count - one.total))
        throw refusal('capacity', 'there are no more machines')
      one.total = change.count
      return this.#shown(one)
    }
    const known = this.#splits.get(change.intent)
    if (known !== undefined) return this.#shown(this.#holding(known)!)
    if (change.count >= one.total || change.count > one.total - one.used)
      throw refusal('invalid', `only ${one.total - one.used} of its ${one.total} places are free`)
    one.total -= change.count
    const { kind, type, region, zone, perHourMicro, endsAtMs, startsAtMs, committedUntilMs } = one
    const made = this.#hold({
      kind,
      type,
      region,
      zone,
      perHourMicro,
      startsAtMs,
      total: change.count,
      tags: { deployment: change.deployment, intent: change.intent, send: 1 },
      shownFromMs: this.clock.now() + this.listsLagMs,
      endsAtMs,
      committedUntilMs,
    })
    this.#splits.set(change.intent, made.id)
    return this.#shown(made)
  }

  terms({ id }: ReservationRef): ReleaseTerms {
    const one = this.#hourly(id)
    const nowMs = this.clock.now()
    const { committedUntilMs = -Infinity } = one
    if (!isHeld(phaseOf(one, nowMs)) || committedUntilMs <= nowMs) return { chargeMicroUsd: 0 }
    const hours = (committedUntilMs - Math.max(nowMs, one.startsAtMs)) / HOUR_MS
    const quoteId = `terms-${this.#terms.size + 1}`
    this.#terms.set(quoteId, { id, untilMs: nowMs + TERMS_VALID_MS, chargedUntilMs: committedUntilMs })
    return {
      chargeMicroUsd: Math.round(hours * one.perHourMicro * one.total),
      chargedUntilMs: committedUntilMs,
      quoteId,
    }
  }

  release({ id }: ReservationRef, { quoteId }: ReleaseTerms): void {
    if (this.#holding(id) === undefined) return
    const one = this.#hourly(id)
    const nowMs = this.clock.now()
    if (!isHeld(phaseOf(one, nowMs))) return
    const terms = quoteId === undefined ? undefined : this.#terms.get(quoteId)
    if ((one.committedUntilMs ?? 0) > nowMs && (terms?.id !== id || terms.untilMs <= nowMs))
      throw refusal('invalid', 'these terms are no longer valid')
    one.released = { atMs: nowMs, chargedUntilMs: Math.max(nowMs, terms?.chargedUntilMs ?? nowMs) }
  }

  /** Another customer buys the last of it. */
  sellOut(quote: CapacityQuote): void {
    const lot = this.lots.find((one) => this.#sells(one, quote))
    if (lot !== undefined) this.withdraw(lot)
  }

  /** The provider decides a pending payment: of the last extension if there is one. */
  settle(id: string, outcome: 'confirmed' | 'failed'): void {
    const one = this.#holding(id)!
    const { payment } = one.extensions.at(-1) ?? one
    payment.atMs = this.clock.now()
    payment.isPaid = outcome === 'confirmed'
  }

  /** Machines that use places. */
  use(id: string, places: number): void {
    this.#holding(id)!.used = places
  }

  /** One more machine in it, or one less. */
  occupy(id: string, by: 1 | -1): void {
    this.#holding(id)!.used += by
  }

  /** What holds capacity, now or later, whatever lists show. */
  held(): OwnedReservation[] {
    return this.#holdings.map((one) => this.#shown(one)).filter(({ phase }) => isHeld(phase))
  }

  /** Ends a machine when its prepaid reservation stops being usable, as it was bought, extended or shortened. */
  endsWith(id: string, end: () => void): void {
    const { kind, usableUntilMs = Infinity, phase } = this.reservation(id)!
    if (kind !== 'prepaid') return
    if (phase !== 'active' || usableUntilMs <= this.clock.now()) return end()
    const look = (): void => {
      forget()
      this.#watches.delete(look)
      this.endsWith(id, end)
    }
    const forget = this.clock.at(usableUntilMs, look)
    this.#watches.add(look)
  }

  #looksAgain(): void {
    for (const look of [...this.#watches]) look()
  }

  /** The provider ends it sooner. */
  shorten(id: string, endsAtMs: number): void {
    const one = this.#holding(id)!
    one.endsAtMs = endsAtMs
    one.extensions = []
    this.#looksAgain()
  }

  /** The provider takes it away now. */
  cancel(id: string): void {
    this.#holding(id)!.cancelledAtMs = this.clock.now()
    this.#looksAgain()
  }

  /** The capacity comes later than its start. */
  delay(id: string, arrivesAtMs: number): void {
    this.#holding(id)!.arrivesAtMs = arrivesAtMs
  }

  /** The provider does not accept a start in the future. */
  refuse(id: string): void {
    const one = this.#holding(id)!
    one.assessedAtMs = this.clock.now()
    one.isRefused = true
  }

  /** When its capacity came, or comes. */
  activeFromMs(id: string): number | undefined {
    const one = this.#holding(id)
    return one && Math.max(one.startsAtMs, one.arrivesAtMs ?? 0)
  }

  reservation(id: string): OwnedReservation | undefined {
    const one = this.#holding(id)
    return one && this.#shown(one)
  }

  #hold(one: Partial<Holding> & Pick<Holding, 'kind' | 'type' | 'region' | 'zone' | 'total'>): Holding {
    const nowMs = this.clock.now()
    const holding: Holding = {
      id: `r-${this.#holdings.length + 1}`,
      used: 0,
      createdAtMs: nowMs,
      startsAtMs: nowMs,
      perHourMicro: 0,
      payment: { atMs: nowMs, isPaid: true },
      tags: {},
      shownFromMs: nowMs,
      extensions: [],
      isTargeted: true,
      ...one,
    }
    this.#holdings.push(holding)
    return holding
  }

  #sells(lot: Lot, quote: CapacityQuote): boolean {
    const nowMs = this.clock.now()
    if (lot.kind === 'extension')
      return (
        quote.extends === lot.reservation &&
        valueAt(lot.upfrontMicro, nowMs) === quote.upfrontMicro &&
        endOf(this.#holding(lot.reservation)!, nowMs)! + lot.durationMs === quote.endsAtMs
      )
    if (quote.extends !== undefined || lot.kind !== quote.kind || !isSame(lot, quote)) return false
    if (lot.kind === 'hourly') return valueAt(lot.perHourMicro, nowMs)! * quote.count === quote.perHourMicro
    return (
      lot.count === quote.count &&
      lot.startsAtMs === quote.startsAtMs &&
      lot.startsAtMs + lot.durationMs === quote.endsAtMs &&
      valueAt(lot.upfrontMicro, nowMs) === quote.upfrontMicro
    )
  }

  #leftOf(lot: Lot): number {
    const stock = valueAt(lot.stock ?? (lot.kind === 'hourly' ? Infinity : 1), this.clock.now()) ?? 0
    if (lot.kind !== 'hourly') return stock - (this.#sold.get(lot) ?? 0)
    const nowMs = this.clock.now()
    const held = this.#holdings.filter(
      (one) => one.kind === 'hourly' && isSame(lot, one) && isHeld(phaseOf(one, nowMs)),
    )
    return stock - held.reduce((sum, { total }) => sum + total, 0)
  }

  #regionOf(lot: Lot): string | undefined {
    return lot.kind === 'extension' ? this.#holding(lot.reservation)?.region : lot.region
  }

  #holding(id: string): Holding | undefined {
    return this.#holdings.find((one) => one.id === id)
  }

  #hourly(id: string): Holding {
    const one = this.#holding(id)
    if (one === undefined) throw refusal('expired', `there is no reservation ${id}`)
    if (one.kind === 'prepaid')
      throw refusal('invalid', `${id} is paid for, and cannot be changed or returned`)
    return one
  }

  #shownBy(id: string): OwnedReservation | undefined {
    return this.reservation(id)
  }

  #shown(one: Holding): OwnedReservation {
    return shown(one, { nowMs: this.clock.now(), cutOffMs: this.cutOffMs })
  }
}

interface Pool {
  type: string
  region: string
  zone: string
}

function isSame(one: Pool, other: Pool): boolean {
  return one.type === other.type && one.region === other.region && one.zone === other.zone
}

function gone(message: string): Failure {
  return { class: 'capacity', message }
}

function refusal(failureClass: Failure['class'], message: string): BackendError {
  return new BackendError({ class: failureClass, message })
}
