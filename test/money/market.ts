import type { Backend, PricePath } from '../../backends/backend'
import type { Capabilities } from '../../core/capabilities'
import type { MachineHandle } from '../../core/handle'
import type { PriceStep } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import { isInterruptible, type Offer } from '../../core/offer'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { discounted } from '../../service/discount'
import type { Dice } from '../kit/dice'
import type { Outages } from './outages'
import { CAPABILITIES, drawTerms, type Kind, type Terms } from './providers'

/** Changes younger than this may not be told yet. */
const STALE_MS = 5 * MINUTE_MS
/** As the backend keeps a history before it asks again. */
const FRESH_MS = MINUTE_MS
/** Those of a restless pool do for a day; then it rests. */
const PRICES_MAX = 1_000
/** Every world is over by then. */
const WORLD_MS = 30 * DAY_MS

interface Pool {
  type: string
  onDemandMicroUsd: number
  /** Its spot price over time. */
  path: PriceStep[]
  /** Missing spot until then. */
  spotFromMs: number
}

interface Surroundings {
  dice: Dice
  startMs: number
  /** It does not answer: neither about prices nor to an order to end a machine. */
  silence: Outages
  /** Of its clock. */
  skewMs: number
  nowMs: () => number
}

/** A provider: what it sells and on which terms, its prices, which of them it reports, and when. */
export class Market {
  readonly pools: Pool[]
  readonly terms: Terms
  readonly silence: Outages
  readonly capabilities: Capabilities
  /** As workers use it: with the discount of the settings. */
  readonly backend: Backend
  private readonly dice: Dice

  constructor(
    readonly kind: Kind,
    private readonly around: Surroundings,
  ) {
    const { dice } = around
    this.dice = dice
    this.silence = around.silence
    this.capabilities = CAPABILITIES[kind]
    this.terms = drawTerms(dice, kind)
    this.pools = Array.from({ length: dice.between(1, 3) }, (_, i) => this.drawPool(`type-${i}`))
    this.backend = discounted(this.undiscounted(), this.terms.paidShare)
  }

  private undiscounted(): Backend {
    const prices: Backend['prices'] = ({ realised: { type, capacityType, priceMicroUsdPerHour } }, time) =>
      Promise.resolve().then(() =>
        capacityType === 'spot'
          ? this.told(type, time)
          : { prices: [{ fromAtMs: time.fromAtMs, priceMicroUsdPerHour }] },
      )
    return {
      offers: () => Promise.resolve(this.offers()),
      prices: this.kind === 'ec2' ? prices : undefined,
    } as unknown as Backend
  }

  private drawPool(type: string): Pool {
    const { dice, startMs } = this.around
    const onDemandMicroUsd = microUsd(dice.between(50, 40_000) / 1_000)
    const path: PriceStep[] = []
    const pace = dice.oneOf([2 * MINUTE_MS, 30 * MINUTE_MS, 6 * HOUR_MS])
    const least = dice.oneOf([0.1, 0.3, 0.8])
    for (let atMs = startMs - HOUR_MS; atMs < startMs + WORLD_MS && path.length < PRICES_MAX;) {
      const part = dice.chance(0.15) ? 1 : least + (1 - least) * dice.next()
      path.push({ fromAtMs: atMs, priceMicroUsdPerHour: Math.round(onDemandMicroUsd * part) })
      atMs += dice.between(SECOND_MS, 2 * pace)
    }
    const spotFromMs = dice.chance(0.2) ? startMs + dice.between(0, 6 * HOUR_MS) : 0
    return { type, onDemandMicroUsd, path, spotFromMs }
  }

  private offers(): Offer[] {
    const nowMs = this.around.nowMs()
    const { leastMs, stepMs, runMsMax } = this.terms
    return this.pools.flatMap((pool) => {
      const onDemand: Offer = {
        backend: this.kind,
        type: pool.type,
        place: 'a',
        capacityType: 'on-demand',
        priceSource: { kind: 'live', observedAtMs: nowMs },
        shape: { cpus: 8, memoryGiB: 32, gpus: 1 },
        availability: 'available',
        billedAtLeastMs: leastMs > 0 ? leastMs : undefined,
        billedInStepsOfMs: stepMs > SECOND_MS ? stepMs : undefined,
        runMsMax,
        isPreemptible: this.kind === 'modal' ? true : undefined,
        priceMicroUsdPerHour: pool.onDemandMicroUsd,
      }
      if (this.kind !== 'ec2') return [onDemand]
      const spot: Offer = {
        ...onDemand,
        capacityType: 'spot',
        priceMicroUsdPerHour: priceAt(pool.path, nowMs),
        priceMaxMicroUsdPerHour: pool.onDemandMicroUsd,
        availability: nowMs < pool.spotFromMs ? 'unavailable' : 'available',
      }
      return [spot, onDemand]
    })
  }

  /** The provider may take such a machine back. */
  isTakenBack(offer: Offer): boolean {
    return isInterruptible(offer) || (this.kind === 'lambda' && this.dice.chance(0.1))
  }

  /** What a machine really costs over time, discount included. */
  bill({ realised: { type, capacityType } }: MachineHandle): PriceStep[] {
    return this.truth(type, capacityType).map((step) => ({
      ...step,
      priceMicroUsdPerHour: Math.round(step.priceMicroUsdPerHour * this.terms.paidShare),
    }))
  }

  /** The true list prices of a machine. */
  private truth(type: string, capacityType: Offer['capacityType']): PriceStep[] {
    const pool = this.pools.find((each) => each.type === type)!
    return capacityType === 'spot'
      ? pool.path
      : [{ fromAtMs: 0, priceMicroUsdPerHour: pool.onDemandMicroUsd }]
  }

  private readonly readings = new Map<string, { path: PriceStep[]; readAtMs: number }>()

  /** The provider's report while a machine runs: some minutes late. Throws while it is silent. */
  private told(type: string, time: { fromAtMs: number; toAtMs?: number }): PricePath {
    const { path, readAtMs } = this.read(type, time.toAtMs !== undefined)
    const later = path.findIndex(({ fromAtMs }) => fromAtMs > time.fromAtMs)
    const first = later === -1 ? path.length - 1 : later - 1
    return {
      prices: [{ ...path[first]!, fromAtMs: time.fromAtMs }, ...path.slice(first + 1)],
      knownToAtMs: readAtMs - STALE_MS,
    }
  }

  private read(type: string, isOver: boolean): { path: PriceStep[]; readAtMs: number } {
    const { skewMs } = this.around
    const nowMs = this.around.nowMs()
    const kept = this.readings.get(type)
    if (!isOver && kept !== undefined && nowMs - kept.readAtMs < FRESH_MS) return kept
    if (this.silence.isNow(nowMs)) throw new Error('the provider is silent')
    // Running machines may be reported late; ended ones are reported in full.
    const lateMs = isOver ? 0 : this.dice.between(0, STALE_MS - 1)
    const path = this.truth(type, 'spot')
      .filter(({ fromAtMs }) => fromAtMs <= nowMs - lateMs)
      // By its own clock.
      .map((step) => ({ ...step, fromAtMs: step.fromAtMs + skewMs }))
    const reading = { path, readAtMs: nowMs }
    if (!isOver) this.readings.set(type, reading)
    return reading
  }
}

function priceAt(path: readonly PriceStep[], atMs: number): number {
  return (path.filter(({ fromAtMs }) => fromAtMs <= atMs).at(-1) ?? path[0]!).priceMicroUsdPerHour
}
