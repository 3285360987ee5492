/** What instances cost by the cloud's own meter, against which whoever reckons for himself is measured. */
import type { PriceChange } from '../world/market'
import type { Ec2 } from './ec2'
import type { Instance } from './model'

export interface Bill {
  /** When it came to run; an instance that never did costs nothing. */
  fromMs?: number
  /** When it last began to shut down or to stop; missing while it costs on. */
  untilMs?: number
  usd: number
}

const HOUR_MS = 3_600_000
const SECOND_MS = 1_000

/** A stretch of `running`. */
interface Run {
  fromMs: number
  untilMs: number | undefined
}

/** By the started second of each run, and for `billedAtLeast`, at the prices in force meanwhile. While it is stopped it costs nothing. */
export function billOf(ec2: Ec2, instance: Instance): Bill {
  const runs = instance.history.flatMap(({ state, atMs }, i): Run[] =>
    state === 'running' ? [{ fromMs: atMs, untilMs: instance.history[i + 1]?.atMs }] : [],
  )
  const [first, last] = [runs[0], runs.at(-1)]
  if (first === undefined) return { usd: 0 }
  const usd = runs.reduce((sum, run) => sum + costOfRun(ec2, instance, run), 0)
  return { fromMs: first.fromMs, ...(last?.untilMs === undefined ? {} : { untilMs: last.untilMs }), usd }
}

function costOfRun(ec2: Ec2, instance: Instance, { fromMs, untilMs = ec2.nowMs }: Run): number {
  const seconds = Math.ceil((untilMs - fromMs) / SECOND_MS)
  const endMs = fromMs + Math.max(seconds * SECOND_MS, ec2.drawMs('billedAtLeast'))
  // What is charged beyond the end is charged at the price of the end.
  return costOf(pricesOf(ec2, instance, { fromMs, untilMs }), fromMs, endMs)
}

/** Of a stretch of time, the newest first. */
function pricesOf(
  { parts: { market } }: Ec2,
  instance: Instance,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): PriceChange[] {
  const { region, subnet, type, capacity } = instance
  const pool = { region, zone: subnet.zone.name, type: type.name, capacity }
  if (capacity === 'on-demand') return [{ atMs: fromMs, usdPerHour: market.priceOf(pool) }]
  return market.priceHistory(pool, fromMs, untilMs)
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
