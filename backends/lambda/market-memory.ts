import { MINUTE_MS } from '../../core/time/time'

/** This process's memory of the market. Losing it costs a try, never a machine. */
export interface MarketMemory {
  /** Returns the Regions that once had the type in stock, in addition to those that have it now. */
  regionsOf(type: string, inStock: readonly string[]): string[]
  /** A launch was refused for want of capacity, although the list showed some. */
  missed(type: string, region: string): void
  isMissed(type: string, region: string): boolean
  /** A launch was refused because the account may run no more machines. */
  quotaReached(use: QuotaUse): void
  /** Returns the use of the quota; undefined if it was not reached lately. */
  quotaUse(): QuotaUse | undefined
}

/** Whether machines of the account use the quota up, or it allows none at all. */
type QuotaUse = 'in-use' | 'none'

/** A refused type is forgotten after this, because stock changes within minutes. */
const MISSED_FOR_MS = MINUTE_MS
/** A reached quota is forgotten after this, because a machine may have ended. */
const QUOTA_FOR_MS = 3 * MINUTE_MS

export function createMarketMemory(clock: () => number): MarketMemory {
  const regions = new Map<string, Set<string>>()
  const misses = new Map<string, number>()
  let quota: { use: QuotaUse; untilMs: number } | undefined
  return {
    regionsOf: (type, inStock) => {
      const known = regions.get(type) ?? new Set()
      for (const region of inStock) known.add(region)
      regions.set(type, known)
      return [...known].sort()
    },
    missed: (type, region) => void misses.set(`${type} ${region}`, clock() + MISSED_FOR_MS),
    isMissed: (type, region) => (misses.get(`${type} ${region}`) ?? 0) > clock(),
    quotaReached: (use) => void (quota = { use, untilMs: clock() + QUOTA_FOR_MS }),
    quotaUse: () => (quota !== undefined && quota.untilMs > clock() ? quota.use : undefined),
  }
}
