import type { PricePath } from '../../backends/backend'
import { BILLED_AT_LEAST_MS } from '../../backends/ec2/market/prices'
import type { Capabilities } from '../../core/capabilities'
import type { PriceStep } from '../../core/meter'
import { microUsd } from '../../core/money'
import type { Offer } from '../../core/offer'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time'
import type { Dice } from '../kit/dice'

export const CAPABILITIES: Capabilities = {
  capacityTypes: ['spot', 'on-demand'],
  imageRunner: 'runner',
  runnerStart: 'after-launch',
  idempotency: 'token',
  billsUntil: 'exit',
  price: 'live',
}

/** Changes younger than this may not be told yet. */
const STALE_MS = 5 * MINUTE_MS
/** As the backend keeps a history before it asks again. */
const FRESH_MS = MINUTE_MS
/** Those of a restless pool do for a day; then it rests. */
const PRICES_MAX = 1_000
/** Every world is over by then. */
const WORLD_MS = 30 * DAY_MS

/** Times in which somebody does not answer. */
export class Outages {
  private constructor(private readonly spans: readonly { fromMs: number; toMs: number }[]) {}

  /** About so many in a day, of minutes to hours; the last may be for ever. */
  static draw(dice: Dice, startMs: number, perDay: number): Outages {
    const spans: { fromMs: number; toMs: number }[] = []
    if (perDay === 0) return new Outages(spans)
    for (let atMs = startMs; atMs < startMs + 3 * DAY_MS;) {
      const fromMs = atMs + dice.between(0, (2 * DAY_MS) / perDay)
      const lastsMs = dice.oneOf([2 * MINUTE_MS, 20 * MINUTE_MS, 2 * HOUR_MS, 8 * HOUR_MS])
      const toMs = fromMs + dice.between(SECOND_MS, lastsMs)
      spans.push({ fromMs, toMs })
      atMs = toMs
    }
    return new Outages(spans)
  }

  /** The end of the present one; now without one. */
  overAtMs(nowMs: number): number {
    return this.spans.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs)?.toMs ?? nowMs
  }

  isNow(nowMs: number): boolean {
    return this.overAtMs(nowMs) > nowMs
  }

  get isNever(): boolean {
    return this.spans.length === 0
  }
}

interface Pool {
  type: string
  onDemandMicroUsd: number
  /** Its spot price over time. */
  path: PriceStep[]
  /** Missing spot until then. */
  spotFromMs: number
}

/** A provider's prices: what they are, which of them it reports, and when. */
export class Market {
  readonly pools: Pool[]

  constructor(
    private readonly dice: Dice,
    private readonly startMs: number,
    readonly silence: Outages,
    private readonly skewMs: number,
  ) {
    this.pools = Array.from({ length: dice.between(1, 3) }, (_, i) => this.drawPool(`type-${i}`))
  }

  private drawPool(type: string): Pool {
    const { dice, startMs } = this
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

  offers(nowMs: number): Offer[] {
    return this.pools.flatMap((pool) => {
      const base = {
        ...{
          backend: 'cloud',
          type: pool.type,
          place: 'a',
          priceSource: { kind: 'live' as const, observedAtMs: nowMs },
        },
        ...{ shape: { cpus: 8, memoryGiB: 32, gpus: 1 }, billedAtLeastMs: BILLED_AT_LEAST_MS },
      }
      const spot: Offer = {
        ...base,
        capacityType: 'spot',
        priceMicroUsdPerHour: priceAt(pool.path, nowMs),
        priceMaxMicroUsdPerHour: pool.onDemandMicroUsd,
        availability: nowMs < pool.spotFromMs ? 'unavailable' : 'available',
      }
      const onDemand: Offer = {
        ...{ ...base, capacityType: 'on-demand', availability: 'available' },
        priceMicroUsdPerHour: pool.onDemandMicroUsd,
      }
      return [spot, onDemand]
    })
  }

  /** The true prices of a machine. */
  truth(type: string, capacityType: Offer['capacityType']): PriceStep[] {
    const pool = this.pools.find((each) => each.type === type)!
    return capacityType === 'spot'
      ? pool.path
      : [{ fromAtMs: 0, priceMicroUsdPerHour: pool.onDemandMicroUsd }]
  }

  private readonly readings = new Map<string, { path: PriceStep[]; readAtMs: number }>()

  /** The provider's report while a machine runs: some minutes late. Throws while it is silent. */
  told(type: string, time: { fromAtMs: number; toAtMs?: number }, nowMs: number): PricePath {
    const { path, readAtMs } = this.read(type, nowMs, time.toAtMs !== undefined)
    const later = path.findIndex(({ fromAtMs }) => fromAtMs > time.fromAtMs)
    const first = later === -1 ? path.length - 1 : later - 1
    return {
      prices: [{ ...path[first]!, fromAtMs: time.fromAtMs }, ...path.slice(first + 1)],
      knownToAtMs: readAtMs - STALE_MS,
    }
  }

  private read(type: string, nowMs: number, isOver: boolean): { path: PriceStep[]; readAtMs: number } {
    const kept = this.readings.get(type)
    if (!isOver && kept !== undefined && nowMs - kept.readAtMs < FRESH_MS) return kept
    if (this.silence.isNow(nowMs)) throw new Error('the provider is silent')
    // Running machines may be reported late; ended ones are reported in full.
    const lateMs = isOver ? 0 : this.dice.between(0, STALE_MS - 1)
    const path = this.truth(type, 'spot')
      .filter(({ fromAtMs }) => fromAtMs <= nowMs - lateMs)
      // By its own clock.
      .map((step) => ({ ...step, fromAtMs: step.fromAtMs + this.skewMs }))
    const reading = { path, readAtMs: nowMs }
    if (!isOver) this.readings.set(type, reading)
    return reading
  }
}

function priceAt(path: readonly PriceStep[], atMs: number): number {
  return (path.filter(({ fromAtMs }) => fromAtMs <= atMs).at(-1) ?? path[0]!).priceMicroUsdPerHour
}
