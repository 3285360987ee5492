import { HOUR_MS } from '../../../core/time/time'
import type { MachineType } from '../sdk/api'
import type { PriceChange } from '../sdk/api-capacity'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import { filtersOf, fitting, type TypePattern } from './patterns'
import { onDemandPrices } from './search'

/** Spot machines of a type in a zone. */
export interface SpotPool {
  region: string
  zone: string
  type: MachineType
  /** Dollars per hour now, and since when. */
  usdPerHour: number
  changedAtMs: number
  /** The price at equal intervals of the time that was asked for, oldest first. */
  history: number[]
  onDemandUsdPerHour?: number
}

export interface SpotAnswer {
  pools: SpotPool[]
  notes: string[]
}

export interface SpotQuery {
  patterns: readonly TypePattern[]
  lookbackMs: number
  /** Whether to add the on-demand price for comparison. */
  hasSavings: boolean
}

/** Samples of a history. */
const SAMPLES = 24
/** EC2 takes this many types in one question at most. */
const TYPES_MAX = 100

/** The spot price of every fitting type in every zone. */
export async function findSpot(inquiry: Inquiry, wish: SpotQuery): Promise<RegionAnswers<SpotAnswer>> {
  const { signal } = inquiry
  // The start is rounded to the hour, so that the same question soon after finds the cached answer.
  const fromAtMs = Math.floor((inquiry.clock() - wish.lookbackMs) / HOUR_MS) * HOUR_MS
  return inquiry.each(async (api, region) => {
    const known = await api.market.types(filtersOf(wish.patterns), signal)
    const types = fitting(known, wish.patterns).filter(({ usageClasses }) => usageClasses.includes('spot'))
    const names = types.map(({ name }) => name)
    const [changes, prices] = await Promise.all([
      Promise.all(chunks(names).map((some) => api.capacity.spotChanges({ types: some, fromAtMs }, signal))),
      wish.hasSavings ? onDemandPrices(api, { region, types: names }, signal) : undefined,
    ])
    const pools = poolsOf(changes.flat(), { types, region, fromAtMs, nowMs: inquiry.clock() })
    return {
      pools: pools.map((pool) => {
        const usd = prices?.usd.get(pool.type.name)
        return usd === undefined ? pool : { ...pool, onDemandUsdPerHour: usd }
      }),
      notes: prices?.notes ?? [],
    }
  })
}

function chunks(names: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(names.length / TYPES_MAX) }, (_, at) =>
    names.slice(at * TYPES_MAX, (at + 1) * TYPES_MAX),
  )
}

function poolsOf(
  changes: readonly PriceChange[],
  {
    types,
    region,
    fromAtMs,
    nowMs,
  }: { types: readonly MachineType[]; region: string; fromAtMs: number; nowMs: number },
): SpotPool[] {
  const byPool = new Map<string, PriceChange[]>()
  for (const change of changes) {
    const key = `${change.type} ${change.zone}`
    byPool.set(key, [...(byPool.get(key) ?? []), change])
  }
  return [...byPool.values()].flatMap((own): SpotPool[] => {
    const last = own.at(-1)!
    const type = types.find(({ name }) => name === last.type)
    if (type === undefined) return []
    return [
      {
        region,
        zone: last.zone,
        type,
        usdPerHour: Number(last.usdPerHour),
        changedAtMs: last.atMs,
        history: sampled(own, { fromAtMs, nowMs }),
      },
    ]
  })
}

/** The price in force at equal intervals. */
function sampled(
  changes: readonly PriceChange[],
  { fromAtMs, nowMs }: { fromAtMs: number; nowMs: number },
): number[] {
  const stepMs = (nowMs - fromAtMs) / (SAMPLES - 1)
  return Array.from({ length: SAMPLES }, (_, at) => {
    const atMs = fromAtMs + at * stepMs
    const inForce = changes.findLast((change) => change.atMs <= atMs) ?? changes[0]!
    return Number(inForce.usdPerHour)
  })
}

/** Whole per cent that a spot machine costs less than on demand. */
export function savingsPercentOf({ usdPerHour, onDemandUsdPerHour }: SpotPool): number | undefined {
  if (onDemandUsdPerHour === undefined || onDemandUsdPerHour <= 0) return undefined
  return Math.round((1 - usdPerHour / onDemandUsdPerHour) * 100)
}

/** Fewest types for useful scores: with fewer, the scores are low regardless of the capacity ("Spot placement score", EC2 user guide). */
export const SCORE_TYPES_MIN = 3
/** EC2 scores at most ten places. */
export const SCORES_MAX = 10
/** EC2 scores capacity for so many types in so many zones. */
const CAPACITY_TYPES_MAX = 50
const CAPACITY_ZONES_MAX = 10

type Pool = Pick<SpotPool, 'type' | 'region' | 'zone'>

/** Scores the capacity of pools for a number of machines; of many pools only the first zones and types. Throws if the account may not ask. */
export async function scoreCapacity(
  inquiry: Inquiry,
  pools: readonly Pool[],
  { market, count }: { market: 'on-demand' | 'spot'; count: number },
): Promise<(pool: Pool) => string | undefined> {
  const { signal } = inquiry
  const regions = [...new Set(pools.map(({ region }) => region))]
  const idsByRegion = new Map(
    await Promise.all(
      regions.map(async (region) => [region, await inquiry.at(region).capacity.zoneIds(signal)] as const),
    ),
  )
  const idOf = ({ region, zone }: Pool): string => idsByRegion.get(region)?.get(zone) ?? ''
  const zoneIds = [...new Set(pools.map(idOf))].filter((id) => id !== '').slice(0, CAPACITY_ZONES_MAX)
  const types = [...new Set(pools.map(({ type }) => type.name))].slice(0, CAPACITY_TYPES_MAX)
  const { capacity } = inquiry.at(inquiry.homeRegion)
  const scores = await capacity.capacityScores({ market, types, zoneIds, count }, signal)
  return (pool) => scores.find(({ type, zoneId }) => type === pool.type.name && zoneId === idOf(pool))?.score
}
