import type { ReservingBackend } from '../../../../backends/backend'
import type { Offer } from '../../../../core/offer'
import type { CapacityRequest, ReservationKind } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS } from '../../../../core/time/time'
import type { ReservingHarness, TruePurchase } from '../../reserving-harness'
import { patiently } from '../../harness'
import { DrivenClock } from '../clock'
import { MemoryStore } from '../memory-store'
import { createScriptedBackend } from '../scripted-backend'
import { ScriptedWorld } from '../world'
import { ReservationMarket } from './market'
import { createScriptedReserving } from './reserving'

const START_MS = Date.UTC(2026, 10, 2)
const TYPE = 'h100x8'

/** A scripted market of two Regions for the contract of reservations, in driven time. */
export class ScriptedReservingHarness implements ReservingHarness {
  readonly regions = ['east', 'west'] as const
  readonly clock = new DrivenClock(START_MS)
  readonly market = new ReservationMarket({ clock: this.clock, payment: { kind: 'pending' } })
  readonly reserving: ReservingBackend

  #outcome: 'confirmed' | 'failed' = 'confirmed'

  constructor() {
    const { market } = this
    market.sell({
      kind: 'prepaid',
      type: TYPE,
      region: 'east',
      zone: 'east-a',
      count: 2,
      stock: 10,
      startsAtMs: START_MS + DAY_MS,
      durationMs: 2 * DAY_MS,
      upfrontMicro: 4_000_000_001,
    })
    for (const region of this.regions)
      market.sell({
        kind: 'hourly',
        type: TYPE,
        region,
        zone: `${region}-a`,
        stock: 20,
        perHourMicro: 98_320_000,
        committedMs: 14 * DAY_MS,
      })
    this.reserving = createScriptedReserving(market)
  }

  reopen(): ReservingBackend {
    return createScriptedReserving(this.market)
  }

  async offered(id: string): Promise<Offer | undefined> {
    const store = new MemoryStore(() => this.nowMs())
    const world = new ScriptedWorld({ clock: this.clock, store, wares: [], market: this.market })
    const offers = await createScriptedBackend(world).offers({}, patiently())
    return offers.find(({ reservationId }) => reservationId === id)
  }

  nowMs(): number {
    return this.clock.now()
  }

  wish(kind: ReservationKind): CapacityRequest {
    const wish = { backend: 'scripted', kind, types: [TYPE], count: kind === 'prepaid' ? 2 : 1 }
    return kind === 'prepaid' ? { ...wish, durationMs: 2 * DAY_MS - HOUR_MS } : wish
  }

  committedWish(): CapacityRequest {
    return { ...this.wish('hourly'), earliestStartAtMs: START_MS + 60 * DAY_MS }
  }

  neverSold(): CapacityRequest {
    return { ...this.wish('prepaid'), types: ['none'] }
  }

  async sellOut(): Promise<void> {
    for (const lot of this.market.lots) lot.stock = 0
  }

  async raisePrices(): Promise<void> {
    for (const lot of this.market.lots)
      if (lot.kind === 'hourly') lot.perHourMicro = (lot.perHourMicro as number) + 1
      else lot.upfrontMicro = (lot.upfrontMicro as number) + 1
  }

  sent(): number {
    return this.market.calls.filter(({ verb }) => verb === 'reserve').length
  }

  purchases(): TruePurchase[] {
    return this.market.purchases.map(({ id, intent, deployment }) => ({
      reservation: id,
      intent,
      deployment,
    }))
  }

  loseNextAnswer(): void {
    this.market.faults.add('reserve', { kind: 'loses-answer', hasEffect: true })
  }

  failNextPurchase(): void {
    this.market.faults.add('reserve', { kind: 'loses-answer', hasEffect: false })
  }

  refuseNextPurchase(): void {
    const failure = { class: 'auth', message: 'this role may not buy' } as const
    this.market.faults.add('reserve', { kind: 'refuses', failure })
  }

  silence(region: string): void {
    this.market.silent.add(region)
  }

  buyByHand(): string {
    return this.market.hold({ kind: 'hourly', type: TYPE, region: 'west', zone: 'west-a', total: 1 })
  }

  failPayments(): void {
    this.#outcome = 'failed'
  }

  async settlePayment(id: string): Promise<void> {
    this.market.settle(id, this.#outcome)
    const { endsAtMs } = this.market.reservation(id)!
    const isSold = this.market.lots.some((lot) => lot.kind === 'extension' && lot.reservation === id)
    if (!isSold && endsAtMs !== undefined)
      this.market.sell({
        kind: 'extension',
        reservation: id,
        durationMs: DAY_MS,
        upfrontMicro: 2_000_000_000,
      })
  }

  pass(durationMs: number): Promise<void> {
    return this.clock.advance(durationMs)
  }

  async use(id: string): Promise<void> {
    this.market.use(id, 1)
  }

  async dispose(): Promise<void> {}
}
