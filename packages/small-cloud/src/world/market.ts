/** Prices and stock of the world at each instant. */
import { resolve } from 'node:path'
import type { Clock } from '../clock'
import { WorldError } from './load'
import type { CapacityType, PriceRule, StockRule } from './schema'
import { constant, nextChangeMs, seriesOf, valueAt, type Series } from './series'
import { readTrace, TraceError } from './traces'
import type { World } from './world'

/** Machines of one type, zone and capacity type. */
export interface Pool {
  region: string
  zone: string
  type: string
  capacity: CapacityType
}

export interface PriceChange {
  atMs: number
  usdPerHour: number
}

const HOUR_MS = 3_600_000
/** Spot prices without a rule change at this interval, by a few percent. */
const PRICE_STEP_MS = 6 * HOUR_MS
/** Maximum number of changes computed for one answer; more than 90 days at the usual interval. */
const CHANGES_MAX = 400
/** Spot price as a share of the on-demand price when no rule sets it: from cheap to expensive pools. */
const SPOT_SHARE = [0.28, 0.45] as const
const UNLIMITED = 1_000_000

export class Market {
  private readonly startMs: number
  private readonly stocks: readonly { rule: StockRule; series: Series<number> }[]
  private readonly priceRules: readonly { rule: PriceRule; series: Series<number> }[]

  constructor(
    private readonly world: World,
    private readonly clock: Clock,
  ) {
    this.startMs = clock.nowMs()
    this.stocks = world.stock.map((rule, i) => ({ rule, series: this.stockSeries(rule, `stock.${i}`) }))
    this.priceRules = world.prices.map((rule, i) => ({ rule, series: this.priceSeries(rule, `prices.${i}`) }))
  }

  /** Whether a zone offers a type at all. */
  isOffered(type: string, zone: string): boolean {
    const zones = this.world.offered[type]
    return this.world.types.has(type) && (zones === undefined || zones.includes(zone))
  }

  /** Returns the total capacity of the pool, including running machines. */
  stockOf(pool: Pool): number {
    const series = this.stockRule(pool)
    return series === undefined ? UNLIMITED : valueAt(series, this.worldMs())
  }

  /** Returns the time until the pool's stock changes, by the clock; `undefined` when it never does. */
  untilStockChangeMs(pool: Pool): number | undefined {
    const series = this.stockRule(pool)
    const next = series && nextChangeMs(series, this.worldMs())
    return next === undefined ? undefined : Math.ceil((next - this.worldMs()) / this.world.speed)
  }

  /** Returns the current price of a machine in the pool, in USD per hour. */
  priceOf(pool: Pool): number {
    const series = this.priceRule(pool)
    if (series !== undefined) return valueAt(series, this.worldMs())
    return pool.capacity === 'spot'
      ? this.usualSpotPrice(pool, this.stepAt(this.worldMs()))
      : this.listPrice(pool)
  }

  /** Returns the time until the pool's price changes, by the clock. */
  untilPriceChangeMs(pool: Pool): number | undefined {
    const series = this.priceRule(pool)
    const nowMs = this.worldMs()
    const next = series ? nextChangeMs(series, nowMs) : (this.stepAt(nowMs) + 1) * PRICE_STEP_MS
    return next === undefined ? undefined : Math.ceil((next - nowMs) / this.world.speed)
  }

  /** Returns the price in force at the beginning and every change until the end, newest first; both by the clock. */
  priceHistory(pool: Pool, fromMs: number, untilMs: number): PriceChange[] {
    const from = this.worldMs(fromMs)
    const until = this.worldMs(Math.min(untilMs, this.clock.nowMs()))
    const series = this.priceRule(pool) ?? this.usualSeries(pool, from, until)
    const first = series.changes.filter(([atMs]) => atMs <= from).at(-1)
    const within = series.changes.filter(([atMs]) => atMs > from && atMs <= until)
    return [...(first ? [first] : []), ...within]
      .slice(-CHANGES_MAX)
      .map(([atMs, usdPerHour]) => ({ atMs: this.clockMs(atMs), usdPerHour }))
      .reverse()
  }

  private usualSeries(pool: Pool, from: number, until: number): Series<number> {
    const last = this.stepAt(until)
    const first = Math.max(this.stepAt(from), last - CHANGES_MAX)
    const steps = Array.from({ length: last - first + 1 }, (_, i) => first + i)
    return seriesOf(steps.map((step) => [step * PRICE_STEP_MS, this.usualSpotPrice(pool, step)] as const))
  }

  /** An invented price: a pool-specific share of the list price, varying by a few percent. */
  private usualSpotPrice(pool: Pool, step: number): number {
    const name = `price/${pool.type}/${pool.zone}`
    const [low, high] = SPOT_SHARE
    const share = low + (high - low) * this.world.random.at(name)
    const wave = 0.94 + 0.12 * this.world.random.at(`${name}/${step}`)
    return Math.round(this.listPrice(pool) * share * wave * 10_000) / 10_000
  }

  private listPrice(pool: Pool): number {
    return this.world.types.get(pool.type)?.usdPerHour ?? 0
  }

  private stepAt(worldMs: number): number {
    return Math.floor(worldMs / PRICE_STEP_MS)
  }

  /** The last matching rule wins: a file goes from the general to the particular. */
  private stockRule(pool: Pool): Series<number> | undefined {
    return this.stocks.findLast(({ rule }) => fits(rule, pool))?.series
  }

  private priceRule(pool: Pool): Series<number> | undefined {
    return this.priceRules.findLast(({ rule }) => fits(rule, pool))?.series
  }

  private stockSeries({ count, changes, trace }: StockRule, where: string): Series<number> {
    if (count !== undefined) return constant(count)
    if (changes !== undefined) return nonEmpty(changes, where)
    const series = this.recorded(trace!, where).stock
    if (series === undefined)
      throw new WorldError(`${where}.trace: ${trace!.file} records prices and no stock`)
    return series
  }

  private priceSeries({ usdPerHour, changes, trace }: PriceRule, where: string): Series<number> {
    if (usdPerHour !== undefined) return constant(usdPerHour)
    if (changes !== undefined) return nonEmpty(changes, where)
    const series = this.recorded(trace!, where).usdPerHour
    if (series === undefined) throw new WorldError(`${where}.trace: ${trace!.file} records no prices`)
    return series
  }

  private recorded(trace: NonNullable<StockRule['trace']>, where: string): ReturnType<typeof readTrace> {
    try {
      return readTrace(resolve(this.world.directory, trace.file), trace)
    } catch (error) {
      if (error instanceof TraceError) throw new WorldError(`${where}.trace: ${error.message}`)
      throw error
    }
  }

  /** Returns the current value of a series of the world. */
  current<T>(series: Series<T>): T {
    return valueAt(series, this.worldMs())
  }

  /** Converts an instant of the clock to milliseconds of the world since its start. */
  private worldMs(atMs = this.clock.nowMs()): number {
    return (atMs - this.startMs) * this.world.speed
  }

  private clockMs(worldMs: number): number {
    return Math.round(this.startMs + worldMs / this.world.speed)
  }
}

function nonEmpty(changes: readonly [number, number][], where: string): Series<number> {
  if (changes.length === 0)
    throw new WorldError(`${where}.changes is empty; write at least one [when, value]`)
  return seriesOf(changes)
}

function fits(rule: StockRule | PriceRule, pool: Pool): boolean {
  const { region, zone, type, capacity } = rule
  return (
    (region ?? pool.region) === pool.region &&
    (zone ?? pool.zone) === pool.zone &&
    (type ?? pool.type) === pool.type &&
    (capacity ?? pool.capacity) === pool.capacity
  )
}
