/** What instances cost by the cloud's own meter, against which whoever reckons for himself is measured. */
import type { PriceChange } from '../world/market'
import type { Ec2 } from './ec2'
import type { Instance } from './model'

export interface Bill {
  /** When it came to run; an instance that never did costs nothing. */
  fromMs?: number
  /** When it began to shut down; missing while it costs on. */
  untilMs?: number
  usd: number
}

const HOUR_MS = 3_600_000
const SECOND_MS = 1_000

/** By the started second from `running` to `shutting-down`, and for `billedAtLeast`, at the prices in force meanwhile. */
export function billOf(ec2: Ec2, instance: Instance): Bill {
  const { history } = instance
  const begin = history.findIndex(({ state }) => state === 'running')
  if (begin < 0) return { usd: 0 }
  const fromMs = history[begin]!.atMs
  const untilMs = history[begin + 1]?.atMs
  const seconds = Math.ceil(((untilMs ?? ec2.nowMs) - fromMs) / SECOND_MS)
  const endMs = fromMs + Math.max(seconds * SECOND_MS, ec2.drawMs('billedAtLeast'))
  const usd = costOf(pricesOf(ec2, instance, fromMs), fromMs, endMs)
  return { fromMs, ...(untilMs === undefined ? {} : { untilMs }), usd }
}

/** Since a moment, the newest first. */
function pricesOf({ parts: { market }, nowMs }: Ec2, instance: Instance, fromMs: number): PriceChange[] {
  const { region, subnet, type, capacity } = instance
  const pool = { region, zone: subnet.zone.name, type: type.name, capacity }
  if (capacity === 'on-demand') return [{ atMs: fromMs, usdPerHour: market.priceOf(pool) }]
  return market.priceHistory(pool, fromMs, nowMs)
}

function costOf(prices: PriceChange[], fromMs: number, endMs: number): number {
  let usd = 0
  let untilMs = endMs
  prices.forEach(({ atMs, usdPerHour }, i) => {
    // The oldest was in force before.
    const sinceMs = i === prices.length - 1 ? fromMs : Math.min(atMs, untilMs)
    usd += ((untilMs - sinceMs) / HOUR_MS) * usdPerHour
    untilMs = sinceMs
  })
  return usd
}
