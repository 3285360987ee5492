import type { MachineHandle } from '../../../core/handle'
import { microUsd } from '../../../core/money/money'
import { MINUTE_MS } from '../../../core/time/time'
import type { CallContext, PricedTime, PricePath } from '../../backend'
import { cached, type Cached } from '../../calls'
import { transient } from '../errors'
import type { Host } from '../host'

/** Linux by the second, but at least a minute ("How EC2 On-Demand and Spot Instances are billed"). */
export const BILLED_AT_LEAST_MS = MINUTE_MS

/** Many machines share a pool, whose price changes a few times a day. */
const FRESH_MS = MINUTE_MS

interface Change {
  atMs: number
  usdPerHour: string
}

/** The spot price histories that running machines need. */
export type PriceHistories = Map<string, Cached<Change[]> & { fromAtMs: number }>

/**
 * Returns prices over time. A spot machine costs the pool's price at each moment, plus disk and address; others cost their price at the
 * order.
 */
export async function prices(
  host: Host,
  { realised, data }: MachineHandle,
  { time, ctx: { signal } }: { time: PricedTime; ctx: CallContext },
): Promise<PricePath> {
  const { capacityType, type, place, priceMicroUsdPerHour } = realised
  const { fromAtMs, toAtMs } = time
  if (capacityType !== 'spot') return { prices: [{ fromAtMs, priceMicroUsdPerHour }] }
  const pool = { type, zone: place, fromAtMs }
  const { value, readAtMs } =
    toAtMs === undefined
      ? await historyOf(host, pool).get(signal)
      : { value: await host.api.market.spotPriceHistory(pool, signal), readAtMs: host.deps.clock() }
  const before = value.filter(({ atMs }) => atMs <= fromAtMs).at(-1)
  if (before === undefined) throw transient(`EC2 reports no spot price of ${type} in ${place} for that time`)
  const beside = Number(data?.['beside'] ?? 0)
  const later = value.filter(({ atMs }) => atMs > fromAtMs)
  return {
    prices: [{ ...before, atMs: fromAtMs }, ...later].map(({ atMs, usdPerHour }) => ({
      fromAtMs: atMs,
      priceMicroUsdPerHour: microUsd(Number(usdPerHour)) + beside,
    })),
    knownToAtMs: readAtMs - host.config.staleForMs,
  }
}

/** Reads a pool's history; one read serves every machine of the pool that is not older than the first requester. */
function historyOf(
  { api, deps, histories }: Host,
  pool: { type: string; zone: string; fromAtMs: number },
): Cached<Change[]> {
  const key = `${pool.type} ${pool.zone}`
  const kept = histories.get(key)
  if (kept !== undefined && kept.fromAtMs <= pool.fromAtMs) return kept
  const history = cached({
    freshForMs: FRESH_MS,
    clock: () => deps.clock(),
    read: (signal) => api.market.spotPriceHistory(pool, signal),
  })
  histories.set(key, { ...history, fromAtMs: pool.fromAtMs })
  return history
}
