/** Interrupts spot machines whose pools have lost their capacity, or whose price exceeds their owners' maximum. */
import type { Clock } from '../clock'
import type { Market, Pool } from '../world/market'
import { isAlive, type Instance, type Region } from './model'

export interface EvictionParts {
  clock: Clock
  market: Market
  regionOf: (instance: Instance) => Region
}

export type Evict = (instance: Instance, cause: 'no-capacity' | 'by-price') => void

/** Checks a pool whenever its stock or price changes, while one of its machines is alive. */
export class Evictions {
  private readonly watched = new Set<string>()

  constructor(
    private readonly parts: EvictionParts,
    private readonly evict: Evict,
  ) {}

  watch(instance: Instance): void {
    if (instance.capacity !== 'spot') return
    const pool: Pool = {
      region: instance.region,
      zone: instance.subnet.zone.name,
      type: instance.type.name,
      capacity: 'spot',
    }
    const key = `${pool.zone} ${pool.type}`
    if (this.watched.has(key)) return
    this.watched.add(key)
    this.wait(pool, key, this.parts.regionOf(instance))
  }

  private wait(pool: Pool, key: string, region: Region): void {
    const { clock, market } = this.parts
    const delays = [market.untilStockChangeMs(pool), market.untilPriceChangeMs(pool)].filter(
      (ms) => ms !== undefined,
    )
    if (delays.length === 0) return void this.watched.delete(key)
    clock.after(Math.max(1, Math.min(...delays)), () => {
      this.look(pool, region)
      if (members(region, pool).length > 0) this.wait(pool, key, region)
      else this.watched.delete(key)
    })
  }

  private look(pool: Pool, region: Region): void {
    const { market } = this.parts
    const price = market.priceOf(pool)
    for (const instance of members(region, pool))
      if (instance.maxUsdPerHour !== undefined && price > instance.maxUsdPerHour)
        this.evict(instance, 'by-price')
    const kept = members(region, pool).filter(({ isMarked }) => !isMarked)
    // The youngest machines are interrupted first.
    const excess = Math.max(0, kept.length - market.stockOf(pool))
    for (const instance of kept.reverse().slice(0, excess)) this.evict(instance, 'no-capacity')
  }
}

/** Returns the living machines of a pool, oldest first. */
function members({ instances }: Region, pool: Pool): Instance[] {
  return [...instances.values()].filter(
    (each) =>
      isAlive(each) &&
      each.capacity === 'spot' &&
      each.subnet.zone.name === pool.zone &&
      each.type.name === pool.type,
  )
}
