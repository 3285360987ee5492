import { shown } from '../../../core/figures'
import type { CapacityQuote, CapacityRequest } from '../../../core/reservation/reservation'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { hoursOfDays, soldDays } from '../capacity/block-durations'
import { offeringsIn, offeringUsableUntil, sellable, type OfferingsQuery } from '../capacity/offerings'
import { parsePattern } from '../capacity/patterns'
import { ec2Error, invalid } from '../errors'
import type { Host } from '../host'
import { cutOffOf, isLive, TENANCY } from '../market/reservations'
import type { BlockOffering } from '../sdk/api-capacity'
import type { ExtensionOffering } from '../sdk/api-reserving'
import { microOf } from './fees'

/** Difference between the length of a block and its usable time. */
const CUT_OFF_MS = -cutOffOf({ isBlock: true, isUltraServer: false, endsAtMs: 0 })!

/** Returns Capacity Blocks for sale in this Region. Throws `invalid` if AWS never sells such a request. */
export async function blockQuotes(
  host: Host,
  wish: CapacityRequest,
  signal: AbortSignal,
): Promise<CapacityQuote[]> {
  const { durationMs } = wish
  if (durationMs === undefined)
    throw invalid(
      'a prepaid reservation needs a duration',
      'Give the duration for which the capacity is needed.',
    )
  const found = await offeringsLasting(
    host,
    { wish, lengthsMs: [durationMs, durationMs + CUT_OFF_MS] },
    signal,
  )
  const readAtMs = host.deps.clock()
  return found
    .map((offering) => quoteOf(offering, { region: host.config.region, readAtMs }))
    .filter(
      ({ startsAtMs, usableUntilMs, fault }) =>
        fault !== undefined || usableUntilMs! - startsAtMs >= durationMs,
    )
}

/**
 * AWS answers a length with blocks that are a little shorter or longer: a question for the exact length may find one that is long enough, and
 * one for the next length finds the others.
 */
async function offeringsLasting(
  host: Host,
  { wish, lengthsMs }: { wish: CapacityRequest; lengthsMs: readonly number[] },
  signal: AbortSignal,
): Promise<BlockOffering[]> {
  const patterns = wish.types.map(parsePattern)
  const [exact, ...others] = lengthsMs.map((lengthMs) => soldDays(lengthMs / DAY_MS))
  const asked = [
    exact ?? sellable({ count: wish.count, days: Math.ceil(lengthsMs[0]! / DAY_MS) }).days,
    ...others.filter((days) => days !== undefined),
  ]
  const answers = await Promise.all(
    [...new Set(asked)].map((days) =>
      offeringsIn(host.api.reserving, { patterns, days, ...rangeOf(wish) }, signal),
    ),
  )
  const [{ types, refused }] = answers as [(typeof answers)[0]]
  const { region } = host.config
  if (types.length === 0)
    throw invalid(
      `${region} sells no Capacity Blocks of ${wish.types.join(', ')}`,
      `Name types that it sells: ${(await host.api.reserving.blockTypes(signal)).sort().join(', ')}.`,
    )
  if (refused.length === types.length) throw invalid(refused[0]!.message, 'Change the count or the duration.')
  const zones = await host.places.byZone(signal)
  const found = answers
    .flatMap(({ offerings }) => offerings)
    .filter(({ count, tenancy }) => count === wish.count && tenancy === TENANCY)
  const usable = found.filter(({ zone }) => zones.has(zone))
  if (usable.length === 0 && found.length > 0)
    throw invalid(
      `Capacity Blocks are for sale in ${[...new Set(found.map(({ zone }) => zone))].join(', ')} only, which has no subnet for machines`,
      'Add a subnet of that zone to CRUCIBLE_EC2_SUBNETS.',
    )
  return [...new Map(usable.map((one) => [one.id, one])).values()]
}

function rangeOf(wish: CapacityRequest): Omit<OfferingsQuery, 'patterns' | 'days'> {
  return {
    count: wish.count,
    startsAfterMs: wish.earliestStartAtMs,
    startsBeforeMs: wish.latestStartAtMs,
    endsBeforeMs: wish.latestEndAtMs,
    zones: wish.zones,
  }
}

/** Returns the quote of a block or an extension. A fee that is no number counts as none, and is its fault. */
function quoteOf(
  offering: BlockOffering & Partial<ExtensionOffering>,
  { region, readAtMs }: { region: string; readAtMs: number },
): CapacityQuote {
  const { id, reservation, type, count, zone, startsAtMs, endsAtMs, upfrontFee, currency } = offering
  return {
    id,
    kind: 'prepaid',
    type,
    count,
    region,
    zone,
    startsAtMs,
    endsAtMs,
    usableUntilMs: offeringUsableUntil(offering),
    upfrontMicro: microOf(upfrontFee) ?? 0,
    perHourMicro: 0,
    currency,
    extends: reservation,
    readAtMs,
    fault: faultOf(offering, readAtMs),
  }
}

/** AWS gives dates and length to the minute. */
const LENGTH_SLACK_MS = HOUR_MS

/** Why an offering cannot be what is for sale. */
function faultOf(
  { startsAtMs, endsAtMs, lengthMs = 0, upfrontFee, currency }: BlockOffering,
  readAtMs: number,
): string | undefined {
  if (microOf(upfrontFee) === undefined) return `its fee is ${shown(upfrontFee)}`
  if (currency === '') return 'its fee has no currency'
  if (startsAtMs < readAtMs - DAY_MS) return `it began ${formatInstant(startsAtMs)}`
  if (lengthMs > 0 && Math.abs(endsAtMs - startsAtMs - lengthMs) > LENGTH_SLACK_MS)
    return `it ends ${formatInstant(endsAtMs)}, and lasts ${formatDuration(lengthMs)}`
  return undefined
}

/**
 * Reads the offering of a quote again: with the same capacity, time and fee, except for a start that moves on. AWS may have given it
 * another id since.
 */
export async function offeringAnew(
  host: Host,
  quote: CapacityQuote,
  signal: AbortSignal,
): Promise<CapacityQuote | undefined> {
  const { type, count, zone, startsAtMs, endsAtMs = startsAtMs } = quote
  const lengthMs = endsAtMs - startsAtMs
  // One of these questions found it: the one for its own length, or for the length below.
  const days = [soldDays(lengthMs / DAY_MS), soldDays(lengthMs / DAY_MS - 1)]
  const wish = { startsAfterMs: startsAtMs, endsBeforeMs: endsAtMs }
  const answers = await Promise.all(
    [...new Set(days)]
      .filter((each) => each !== undefined)
      .map((each) =>
        host.api.reserving.offerings({ type, count, durationHours: hoursOfDays(each), ...wish }, signal),
      ),
  )
  const readAtMs = host.deps.clock()
  const same = answers
    .flat()
    .filter((one) => one.type === type && one.count === count && one.zone === zone && one.tenancy === TENANCY)
    .map((one) => quoteOf(one, { region: quote.region, readAtMs }))
    .filter(({ fault }) => fault === undefined)
  const exact = same.filter((one) => hasTermsOf(one, quote))
  return (
    exact.find(({ id }) => id === quote.id) ??
    exact[0] ??
    same.filter((one) => hasMovedOn(one, quote)).sort((a, b) => a.startsAtMs - b.startsAtMs)[0]
  )
}

/** Largest move of a start between the search and the purchase, which is longer if others buy first. */
const MOVED_MAX_MS = 15 * MINUTE_MS
/** Limit for a block that begins as soon as AWS can deliver it, which is in half an hour. */
const SOON_MS = HOUR_MS

/** The start of a block that begins as soon as possible moves on with the clock, and its fee falls with its length. Its end does not change. */
function hasMovedOn(one: CapacityQuote, quote: CapacityQuote): boolean {
  const laterMs = one.startsAtMs - quote.startsAtMs
  return (
    quote.startsAtMs - quote.readAtMs <= SOON_MS &&
    laterMs > 0 &&
    laterMs <= MOVED_MAX_MS &&
    one.endsAtMs === quote.endsAtMs &&
    one.upfrontMicro <= quote.upfrontMicro &&
    one.currency === quote.currency
  )
}

function hasTermsOf(one: CapacityQuote, other: CapacityQuote): boolean {
  return (
    one.startsAtMs === other.startsAtMs &&
    one.endsAtMs === other.endsAtMs &&
    one.upfrontMicro === other.upfrontMicro &&
    one.currency === other.currency
  )
}

/** Returns extensions for a block of this account. */
export async function extensionQuotes(
  host: Host,
  wish: CapacityRequest,
  signal: AbortSignal,
): Promise<CapacityQuote[]> {
  const { extends: { id } = { id: '' }, durationMs = 0, types, count } = wish
  const block = await host.reservations.anew(id, signal)
  if (block === undefined || !isLive(block))
    throw invalid(`there is no reservation ${id} that could be extended`, 'Reserve new capacity.')
  if (!block.isBlock)
    throw invalid(`${id} is not a Capacity Block`, 'Change the end of an on-demand reservation instead.')
  const days = sellable({ count: block.total, days: Math.ceil(durationMs / DAY_MS) }).days
  if (!types.includes(block.type) || count !== block.total) return []
  const offerings = await extensionsFor(host, { reservation: id, durationHours: hoursOfDays(days) }, signal)
  const { region } = host.config
  const readAtMs = host.deps.clock()
  return offerings
    .map((offering) => quoteOf(offering, { region, readAtMs }))
    .filter(({ endsAtMs = 0 }) => endsAtMs <= (wish.latestEndAtMs ?? Infinity))
}

/** AWS refuses the question while a block cannot be extended: in its last hour, or while a payment is pending. */
async function extensionsFor(
  host: Host,
  wish: { reservation: string; durationHours: number },
  signal: AbortSignal,
): Promise<ExtensionOffering[]> {
  try {
    return await host.api.reserving.extensionOfferings(wish, signal)
  } catch (error) {
    if (signal.aborted || !['expired', 'transient'].includes(ec2Error(error).class)) throw error
    return []
  }
}

/** Reads the offering of an extension again. */
export async function extensionAnew(
  host: Host,
  quote: CapacityQuote,
  signal: AbortSignal,
): Promise<CapacityQuote | undefined> {
  const { extends: reservation = '', startsAtMs, endsAtMs = startsAtMs, region } = quote
  const durationHours = Math.round((endsAtMs - startsAtMs) / HOUR_MS)
  const offerings = await extensionsFor(host, { reservation, durationHours }, signal)
  const readAtMs = host.deps.clock()
  const same = offerings
    .filter(({ type, count, zone }) => type === quote.type && count === quote.count && zone === quote.zone)
    .map((one) => quoteOf(one, { region, readAtMs }))
    .filter(({ fault }) => fault === undefined)
    .filter((one) => hasTermsOf(one, quote))
  return same.find(({ id }) => id === quote.id) ?? same[0]
}
