import { microUsd } from '../../../core/money/money'
import type { CapacityQuote, CapacityRequest } from '../../../core/reservation/reservation'
import { CLOCK_SLACK_MS, DAY_MS } from '../../../core/time/time'
import { invalid } from '../errors'
import type { Host } from '../host'
import type { Price } from '../market/market'

/** "Create a Capacity Reservation", and "future-dated Capacity Reservations", EC2 user guide and SDK, November 2026. */
const COUNT_MAX = 1_000
const LATER_VCPUS_MIN = 32
const LATER_FAMILIES = /^[cmritg]\d/
const [AHEAD_MIN_MS, AHEAD_MAX_MS] = [5 * DAY_MS, 120 * DAY_MS]
/** The shortest commitment that AWS sells. */
const COMMITTED_MS = 14 * DAY_MS

interface Pool {
  type: string
  zone: string
}

/**
 * Returns on-demand reservations that can be requested in this Region, at the on-demand price; only the purchase shows whether capacity
 * exists. Some types are sold with a future start, 5 to 120 days ahead; for others the answer is empty until their time comes.
 */
export async function hourlyQuotes(
  host: Host,
  wish: CapacityRequest,
  signal: AbortSignal,
): Promise<CapacityQuote[]> {
  if (!Number.isInteger(wish.count) || wish.count < 1 || wish.count > COUNT_MAX)
    throw invalid(`an on-demand reservation has 1 to ${COUNT_MAX} machines`, 'Change the count.')
  const [sold, zones, prices] = await Promise.all([
    host.api.market.typeZones([...wish.types], signal),
    host.places.byZone(signal),
    Promise.all(wish.types.map(async (type) => [type, await priceNow(host, type, signal)] as const)),
  ])
  const pools = sold.filter(({ type }) => wish.types.includes(type))
  if (pools.length === 0)
    throw invalid(
      `${host.config.region} has no machines of type ${wish.types.join(', ')}`,
      'Name types as AWS does, such as g6e.12xlarge.',
    )
  const usable = pools.filter(({ zone }) => zones.has(zone) && (wish.zones ?? [zone]).includes(zone))
  const later = await laterTypes(host, { wish, types: usable.map(({ type }) => type) }, signal)
  return usable
    .filter(({ type }) => later === undefined || later.has(type))
    .flatMap((pool) => quoteOf(pool, { wish, price: new Map(prices).get(pool.type), host }))
}

/** Returns the types that AWS sells for the requested start; undefined if that is now, when it sells all of them. */
async function laterTypes(
  host: Host,
  { wish, types }: { wish: CapacityRequest; types: string[] },
  signal: AbortSignal,
): Promise<ReadonlySet<string> | undefined> {
  const aheadMs = (wish.earliestStartAtMs ?? 0) - host.deps.clock()
  if (aheadMs <= CLOCK_SLACK_MS) return undefined
  const named = [...new Set(types)].filter((type) => LATER_FAMILIES.test(type))
  if (aheadMs < AHEAD_MIN_MS || aheadMs > AHEAD_MAX_MS || named.length === 0) return new Set()
  const known = await host.api.market.types(named, signal)
  return new Set(known.filter(({ cpus }) => cpus * wish.count >= LATER_VCPUS_MIN).map(({ name }) => name))
}

function quoteOf(
  { type, zone }: Pool,
  { wish, price, host }: { wish: CapacityRequest; price: Price | undefined; host: Host },
): CapacityQuote[] {
  // An unknown price cannot be judged.
  if (price === undefined) return []
  const nowMs = host.deps.clock()
  const { count, durationMs, earliestStartAtMs = nowMs, latestStartAtMs = Infinity, latestEndAtMs } = wish
  const isLater = earliestStartAtMs - nowMs > CLOCK_SLACK_MS
  const startsAtMs = isLater ? earliestStartAtMs : nowMs
  const endsAtMs = endOf({ startsAtMs, isLater, durationMs, latestEndAtMs })
  const isTooLate = startsAtMs > latestStartAtMs || (endsAtMs ?? 0) > (latestEndAtMs ?? Infinity)
  if (isTooLate || (endsAtMs !== undefined && endsAtMs <= startsAtMs)) return []
  return [
    {
      id: '',
      kind: 'hourly',
      type,
      count,
      region: host.config.region,
      zone,
      startsAtMs,
      endsAtMs,
      upfrontMicro: 0,
      perHourMicro: price.microUsdPerHour * count,
      currency: 'USD',
      committedMs: isLater ? COMMITTED_MS : undefined,
      readAtMs: nowMs,
      note: price.note,
    },
  ]
}

/** EC2 ends none within its commitment. */
function endOf({
  startsAtMs,
  isLater,
  durationMs,
  latestEndAtMs,
}: {
  startsAtMs: number
  isLater: boolean
  durationMs: number | undefined
  latestEndAtMs: number | undefined
}): number | undefined {
  if (durationMs === undefined) return latestEndAtMs
  return startsAtMs + Math.max(durationMs, isLater ? COMMITTED_MS : 0)
}

/** The price on demand, read anew; the last known one if it cannot be read, and never that of another Region. */
export async function priceNow(host: Host, type: string, signal: AbortSignal): Promise<Price | undefined> {
  try {
    const { region } = host.config
    const usdPerHour = await host.api.market.onDemandPrice({ region, type }, signal)
    if (usdPerHour !== undefined)
      return {
        microUsdPerHour: microUsd(Number(usdPerHour)),
        source: { kind: 'live', observedAtMs: host.deps.clock() },
      }
  } catch (error) {
    if (signal.aborted) throw error
  }
  const known = (await host.market.onDemand(signal))(type)
  return known?.source.standIn === undefined ? known : undefined
}
