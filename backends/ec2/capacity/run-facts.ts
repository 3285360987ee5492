import { DAY_MS } from '../../../core/time/time'
import { ec2Error } from '../errors'
import { quotaOf } from '../market/shapes'
import type { RegionApi } from '../sdk/api-capacity'
import { BLOCK_COUNT_MAX, hoursOfDays, soldDays } from './block-durations'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import type { VcpuQuota } from './quotas'
import { onDemandPrices } from './search'
import type { RegionFacts, RunNeeds } from './validate'

export interface RunAnswer {
  facts: RegionFacts
  notes: string[]
}

/** Everything that decides about a run, in every Region. A part that cannot be read is missing, and a note says so. */
export async function findRunFacts(inquiry: Inquiry, wish: RunNeeds): Promise<RegionAnswers<RunAnswer>> {
  const { signal } = inquiry
  return inquiry.each(async (api, region) => {
    const notes: string[] = []
    const [[type], offered, reservations] = await Promise.all([
      api.market.types([wish.type], signal),
      api.market.typeZones([wish.type], signal),
      api.market.reservations(signal),
    ])
    const orNote = async <T>(what: string, otherwise: T, asked: () => Promise<T>): Promise<T> => {
      try {
        return await asked()
      } catch (error) {
        if (signal.aborted) throw error
        notes.push(`${region}: ${what} cannot be read: ${ec2Error(error).failure.message}`)
        return otherwise
      }
    }
    const isSold = type !== undefined
    const [offerings, subnets, quota, prices] = await Promise.all([
      isSold ? orNote('offerings', [], () => offeringsFor(api, wish, signal)) : [],
      orNote('subnets', [], () => api.capacity.subnetsOfAll(signal)),
      isSold
        ? orNote('the quota', undefined, () => quotaFor(api, { region, type: wish.type }, signal))
        : undefined,
      isSold ? onDemandPrices(api, { region, types: [wish.type] }, signal) : undefined,
    ])
    return {
      notes: [...notes, ...(prices?.notes ?? [])],
      facts: {
        region,
        type,
        reservations,
        offerings,
        subnets,
        quota,
        zones: offered.map(({ zone }) => zone).sort(),
        usdPerHour: prices?.usd.get(wish.type),
      },
    }
  })
}

async function offeringsFor(
  { capacity }: RegionApi,
  { type, count, days, startsAtMs }: RunNeeds,
  signal: AbortSignal,
): ReturnType<RegionApi['capacity']['offerings']> {
  const sold = soldDays(days)
  const isSold = sold !== undefined && count <= BLOCK_COUNT_MAX
  if (!isSold || !(await capacity.blockTypes(signal)).includes(type)) return []
  // A block that begins on the day of the wanted start, whatever its hour, is worth knowing.
  const range = startsAtMs === undefined ? {} : { startsAfterMs: Math.floor(startsAtMs / DAY_MS) * DAY_MS }
  return capacity.offerings({ type, count, durationHours: hoursOfDays(sold), ...range }, signal)
}

async function quotaFor(
  { account, capacity }: RegionApi,
  { region, type }: { region: string; type: string },
  signal: AbortSignal,
): Promise<VcpuQuota | undefined> {
  const codes = quotaOf(type)
  if (codes === undefined) return undefined
  const [limit, machines] = await Promise.all([
    account.quota(codes['on-demand'], signal),
    capacity.countedMachines(signal).catch(() => undefined),
  ])
  const used = machines
    ?.filter((one) => !one.isSpot && !one.isInBlock && quotaOf(one.type) === codes)
    .reduce((sum, { vcpus }) => sum + vcpus, 0)
  return {
    region,
    code: codes['on-demand'],
    family: codes.words,
    market: 'on-demand',
    limit,
    used,
    isRequestOpen: false,
  }
}
