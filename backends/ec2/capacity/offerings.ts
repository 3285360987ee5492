import { usdInWords } from '../../../core/money/money'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { ec2Error, invalid } from '../errors'
import { cutOffOf } from '../market/reservations'
import type { BlockOffering, CapacityApi } from '../sdk/api-capacity'
import {
  BLOCK_COUNT_MAX,
  BLOCK_DAYS_MAX,
  hoursOfDays,
  OFFERINGS_MAX,
  ORGANIZATION_COUNT_MAX,
  soldDays,
  WEEKS_AHEAD_MAX,
} from './block-durations'
import { coverageOf, isCovered, perUsefulHour, type Coverage } from './coverage'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import { fitting, type TypePattern } from './patterns'

export interface OfferingsQuery {
  patterns: readonly TypePattern[]
  count: number
  days: number
  startsAfterMs?: number | undefined
  startsBeforeMs?: number | undefined
  endsBeforeMs?: number | undefined
  zones?: readonly string[]
}

/** Offerings in one Region. */
export interface ForSale {
  region: string
  offerings: BlockOffering[]
  /** Types that were asked for; empty if the Region sells none of the requested ones. */
  types: string[]
  /** Questions that AWS refused, such as a size that it does not sell there. */
  refused: { type: string; message: string }[]
}

/** Returns the request in AWS's terms; throws if it cannot be sold. */
export function sellable({ count, days }: Pick<OfferingsQuery, 'count' | 'days'>): {
  days: number
  note?: string
} {
  if (count > BLOCK_COUNT_MAX)
    throw invalid(
      `a Capacity Block has at most ${BLOCK_COUNT_MAX} instances, not ${count}`,
      `Ask for ${BLOCK_COUNT_MAX} at most; an Organization may hold ${ORGANIZATION_COUNT_MAX} on one date, in several blocks.`,
    )
  const sold = soldDays(days)
  if (sold === undefined)
    throw invalid(
      `a Capacity Block lasts ${BLOCK_DAYS_MAX} days at most, not ${days}`,
      'Ask for fewer days; a block can be extended while it runs, if there is capacity.',
    )
  return sold === days
    ? { days }
    : {
        days: sold,
        note: `AWS sells blocks of 1 to 14 days and of whole weeks: searched ${sold} instead of ${days}.`,
      }
}

/** Asks every Region for blocks of one length. */
export async function findOfferings(inquiry: Inquiry, wish: OfferingsQuery): Promise<RegionAnswers<ForSale>> {
  return inquiry.each(async (api, region) => ({
    region,
    ...(await offeringsIn(api.capacity, wish, inquiry.signal)),
  }))
}

/** Asks one Region for blocks of one length, the earliest first. */
export async function offeringsIn(
  api: Pick<CapacityApi, 'blockTypes' | 'offerings'>,
  wish: OfferingsQuery,
  signal: AbortSignal,
): Promise<Omit<ForSale, 'region'>> {
  const durationHours = hoursOfDays(sellable(wish).days)
  const types = await typesFor(api.blockTypes(signal), wish.patterns, signal)
  const refused: ForSale['refused'] = []
  const found = await Promise.all(
    types.map(async (type) => {
      const asked = { type, count: wish.count, durationHours, ...rangeOf(wish, durationHours) }
      try {
        return await api.offerings(asked, signal)
      } catch (error) {
        const { failure } = ec2Error(error)
        if (signal.aborted || failure.class !== 'invalid') throw error
        refused.push({ type, message: failure.message })
        return []
      }
    }),
  )
  const offerings = found
    .flat()
    .filter((offering) => isWithin(offering, wish))
    .sort((a, b) => a.startsAtMs - b.startsAtMs || Number(a.upfrontFee) - Number(b.upfrontFee))
  return { offerings, types, refused }
}

/** Returns the types to ask for; without permission to list block types, the named ones. */
async function typesFor(
  sold: Promise<string[]>,
  patterns: readonly TypePattern[],
  signal: AbortSignal,
): Promise<string[]> {
  try {
    const names = (await sold).map((name) => ({ name }))
    return fitting(names, patterns)
      .map(({ name }) => name)
      .sort()
  } catch (error) {
    const named = patterns.map(({ filter }) => filter).filter((filter) => !/[*?]/.test(filter))
    if (signal.aborted || ec2Error(error).class !== 'auth' || named.length === 0) throw error
    return named
  }
}

/** AWS filters by the earliest start and the latest end. */
function rangeOf(
  { startsAfterMs, startsBeforeMs, endsBeforeMs }: OfferingsQuery,
  durationHours: number,
): { startsAfterMs?: number; endsBeforeMs?: number } {
  // Every block ends at 11:30 UTC, so one that starts in time may last up to a day longer than requested.
  const latestEnd =
    endsBeforeMs ??
    (startsBeforeMs === undefined ? undefined : startsBeforeMs + durationHours * HOUR_MS + DAY_MS)
  return {
    startsAfterMs,
    endsBeforeMs: latestEnd,
  }
}

function isWithin({ startsAtMs, endsAtMs, zone }: BlockOffering, wish: OfferingsQuery): boolean {
  const { startsAfterMs = -Infinity, startsBeforeMs = Infinity, endsBeforeMs = Infinity, zones = [] } = wish
  return (
    startsAtMs >= startsAfterMs &&
    startsAtMs <= startsBeforeMs &&
    endsAtMs <= endsBeforeMs &&
    (zones.length === 0 || zones.includes(zone))
  )
}

export interface OfferingPrice {
  perDay: number
  perInstanceHour: number
}

/** The fee of an offering, which is paid at once. */
export function feeInWords({ upfrontFee, currency }: Pick<BlockOffering, 'upfrontFee' | 'currency'>): string {
  const fee = Number(upfrontFee)
  return currency === 'USD' ? usdInWords(fee) : `${fee} ${currency}`
}

/** Returns the fee per day and per instance-hour, in the offering's currency. */
export function priceOf({ upfrontFee, count, startsAtMs, endsAtMs }: BlockOffering): OfferingPrice {
  const hours = (endsAtMs - startsAtMs) / HOUR_MS
  const fee = Number(upfrontFee)
  return { perDay: rounded((fee / hours) * 24), perInstanceHour: rounded(fee / hours / Math.max(1, count)) }
}

const rounded = (amount: number): number => Math.round(amount * 10_000) / 10_000

/** Returns when EC2 would begin to end machines in it. */
export function offeringUsableUntil({ endsAtMs, ultraServerType }: BlockOffering): number {
  return cutOffOf({ isBlock: true, isUltraServer: ultraServerType !== undefined, endsAtMs })!
}

/** How much of a run of some days an offering covers, and at what price. */
export interface OfferingCoverage extends Coverage {
  /** Upfront fee per hour in which one machine works for the run; undefined if nothing of it fits. */
  perUsefulHour: number | undefined
}

export function coverageOfOffering(
  offering: BlockOffering,
  { days, nowMs }: { days: number; nowMs: number },
): OfferingCoverage {
  const { startsAtMs, upfrontFee, count } = offering
  const window = { fromMs: Math.max(nowMs, startsAtMs), untilMs: offeringUsableUntil(offering) }
  const coverage = coverageOf(window, days)
  return { ...coverage, perUsefulHour: perUsefulHour(Number(upfrontFee), count, coverage) }
}

type Compared = OfferingCoverage & { value: BlockOffering }

/** Orders offerings: those that cover the run first, then by the start or by the price for the hours that they give to it. */
export function compareOfferings(by: 'start' | 'price'): (a: Compared, b: Compared) => number {
  return (a, b) => {
    const start = a.value.startsAtMs - b.value.startsAtMs
    const price = (a.perUsefulHour ?? Infinity) - (b.perUsefulHour ?? Infinity) || 0
    return Number(!isCovered(a)) - Number(!isCovered(b)) || (by === 'price' ? price || start : start || price)
  }
}

/** Describes in sentences what a search for offerings does not cover. */
export function notCovered(
  { days }: { days: number },
  { answers, unanswered }: RegionAnswers<ForSale>,
): string[] {
  const without = answers.filter(({ value }) => value.types.length === 0).map(({ region }) => region)
  const full = answers.filter(
    ({ value }) => value.offerings.length >= OFFERINGS_MAX * Math.max(1, value.types.length),
  )
  const sold = sellable({ count: 1, days }).days
  return [
    `Only blocks of ${sold} ${sold === 1 ? 'day' : 'days'} were searched; AWS sells 1 to 14 days, and whole weeks up to ${BLOCK_DAYS_MAX} days.`,
    `AWS lists starts from 30 minutes to ${WEEKS_AHEAD_MAX} weeks ahead, and at most ${OFFERINGS_MAX} blocks for each question, the cheapest of a range.`,
    'Zones that the account has not opted in to, such as Local Zones, and UltraServers were not searched.',
    ...(full.length > 0
      ? [
          `There may be more in ${full.map(({ region }) => region).join(', ')}: narrow the dates with --start-after and --start-before.`,
        ]
      : []),
    ...(without.length > 0 ? [`No Capacity Blocks of these types are sold in ${without.join(', ')}.`] : []),
    ...answers.flatMap(({ region, value }) =>
      value.refused.map(({ type, message }) => `${region} refused the question for ${type}: ${message}`),
    ),
    ...(unanswered.length > 0
      ? [`No answer from ${unanswered.map(({ region }) => region).join(', ')}.`]
      : []),
  ]
}
