import type { ReservingBackend } from '../../../backends/backend'
import type {
  CapacityQuote,
  CapacityRequest,
  ReservationOrder,
  ReserveOutcome,
} from '../../../core/reservation/reservation'
import type { FindPurchaseOutcome } from '../../../core/reservation/activities'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import {
  decidePurchase,
  findPurchase,
  purchase,
  type PurchaseDeps,
} from '../../../activities/reserving/purchase'
import { Purchases } from '../../../storage/purchases'
import { patiently } from '../../backends/harness'
import { DrivenClock } from '../../backends/scripted/clock'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { ReservationMarket, type MarketOptions } from '../../backends/scripted/reserving/market'
import { createScriptedReserving } from '../../backends/scripted/reserving/reserving'

export const START_MS = Date.UTC(2026, 10, 2)
export const INTENT = 'res-a'
const WISH: CapacityRequest = {
  backend: 'scripted',
  kind: 'prepaid',
  types: ['p5'],
  count: 4,
  durationMs: DAY_MS,
}

/** A market with three blocks for sale, a store, and the calls of workers that buy there; time passes only when a test lets it. */
export class BuyingPlace {
  readonly clock = new DrivenClock(START_MS)
  readonly store = new MemoryStore(() => this.clock.now())
  readonly market: ReservationMarket
  readonly reserving: ReservingBackend
  readonly purchases = new Purchases(this.store, () => this.clock.now())

  constructor(options: Partial<MarketOptions> = {}) {
    this.market = new ReservationMarket({
      clock: this.clock,
      payment: { kind: 'confirmed', afterMs: 0 },
      ...options,
    })
    this.market.sell({
      kind: 'prepaid',
      type: 'p5',
      region: 'east',
      zone: 'east-a',
      count: 4,
      stock: 3,
      startsAtMs: START_MS + DAY_MS,
      durationMs: 2 * DAY_MS,
      upfrontMicro: 1_000_000,
    })
    this.reserving = createScriptedReserving(this.market)
  }

  order(changes: Partial<ReservationOrder> = {}, wish: Partial<CapacityRequest> = {}): ReservationOrder {
    const [quote] = this.market.quotes({ ...WISH, ...wish }, 'east') as [CapacityQuote]
    return {
      intent: INTENT,
      send: 1,
      deployment: 'dep',
      owner: 'ada',
      backend: 'scripted',
      quote,
      ...changes,
    }
  }

  deps(changes: Partial<PurchaseDeps> = {}): PurchaseDeps {
    return { reserving: this.reserving, store: this.store, now: () => this.clock.now(), ...changes }
  }

  buy(order = this.order(), changes: Partial<PurchaseDeps> = {}): Promise<ReserveOutcome> {
    return purchase(this.deps(changes), order, patiently().signal)
  }

  find(order = this.order()): Promise<FindPurchaseOutcome> {
    return findPurchase(this.deps(), order, patiently().signal)
  }

  decide(ownedId: string | null, order = this.order()): Promise<FindPurchaseOutcome> {
    const task = { reservationId: order.intent, deployment: 'dep', owner: 'ada', recordSeq: 1 }
    return decidePurchase(this.deps(), { ...task, order, by: 'ada', ownedId }, patiently().signal)
  }

  /** A block like the order that carries no tags, and is old enough to show all it will ever have. */
  untagged(changes: Partial<Parameters<ReservationMarket['hold']>[0]> = {}): string {
    const { startsAtMs, endsAtMs } = this.order().quote
    return this.market.hold({
      kind: 'prepaid',
      type: 'p5',
      region: 'east',
      zone: 'east-a',
      total: 4,
      startsAtMs,
      endsAtMs: endsAtMs!,
      createdAtMs: START_MS - HOUR_MS,
      ...changes,
    })
  }

  /** The store refuses the first write of a document, as if its worker had died before it, or after it. */
  killAt(document: '1.json' | '1-effect.json', moment: 'before' | 'after'): void {
    const put = this.store.putIfAbsent.bind(this.store)
    this.store.putIfAbsent = async (key, body) => {
      if (!key.endsWith(`00${document}`)) return put(key, body)
      this.store.putIfAbsent = put
      if (moment === 'after') await put(key, body)
      throw new Error('the worker died')
    }
  }

  get sent(): number {
    return this.market.calls.filter(({ verb }) => verb === 'reserve').length
  }
}
