import { defined } from '../../core/defined'
import { plural } from '../../core/plural'
import { formatUsd, type MicroUsd } from '../../core/money'
import { isInRegion } from '../../core/offer'
import {
  isHeld,
  isTaggedFor,
  type CapacityQuote,
  type CapacityWish,
  type OwnedReservation,
} from '../../core/reservation'
import { isAsApproved, quoteKey, type JudgedQuote, type PurchaseRule } from '../../core/reserving'
import type { CapacityVerdict } from '../../core/reserving-activities'
import { capital, lostInWords, priceInWords, quoteInWords, sentence } from './words'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS } from '../../core/time'

/** What one look has found. */
export interface CapacityFacts {
  wish: CapacityWish
  rule: PurchaseRule
  reservationId: string
  deployment: string
  account: string
  /** Purchases of this wish that are over. */
  sends: number
  quotes: readonly CapacityQuote[]
  owned: readonly OwnedReservation[]
  /** The wish that each owned reservation serves already. */
  claims: ReadonlyMap<string, string>
  unseen: readonly string[]
  /** Why the provider never sells what is wanted, in its words. */
  unsold?: string | undefined
  isFirst: boolean
  nowMs: number
  /** The quote that a person has approved. */
  approved?: CapacityQuote | undefined
  /** Paid for capacity of this wish that was lost. */
  earlierMicroUsd?: MicroUsd
}

/** Quotes kept for display. */
const ALTERNATIVES_MAX = 5

/** Uses what is owned, otherwise what may be bought, otherwise says when to look again. Nothing is bought that breaks any limit of the rule. */
export function judgeCapacity(facts: CapacityFacts): CapacityVerdict {
  const { account, unseen, sends } = facts
  const judged = rankQuotes(facts, facts.quotes)
  const [best, ...others] = judged.filter(({ refusal }) => refusal === undefined)
  const refused = judged.filter(({ refusal }) => refusal !== undefined)
  const common = {
    account,
    ...{ unseen: [...unseen], sends },
    alternatives: [...others, ...refused].slice(0, ALTERNATIVES_MAX),
  }
  const adopted = adoptable(facts)
  if (adopted !== undefined) {
    const message = `${adopted.id} (${adopted.count} × ${adopted.reservation.type}) is owned already and fits: nothing is bought.`
    return { ...common, kind: 'adopt', message, reservation: adopted.reservation }
  }
  if (facts.unsold !== undefined && facts.isFirst)
    return { ...common, kind: 'give-up', isInvalid: true, message: sentence(facts.unsold) }
  const lookInMs = nextLookMs(facts)
  const { searchUntilAtMs = Infinity } = facts.rule
  if (best !== undefined && facts.nowMs < searchUntilAtMs) {
    const mayBuy = isUnasked(facts, best)
    const price = priceInWords(best)
    return mayBuy
      ? {
          ...common,
          kind: 'buy',
          judged: best,
          lookInMs,
          message: `Buying ${quoteInWords(best.quote)}: ${price}.`,
        }
      : {
          ...common,
          ...{ kind: 'ask', judged: best, lookInMs },
          message: `${capital(quoteInWords(best.quote))} is for sale: ${price}. ${lostInWords(facts.earlierMicroUsd ?? 0)}It waits for approval.`,
        }
  }
  const why =
    best === undefined
      ? whyNothing(facts, refused)
      : `${quoteInWords(best.quote)} is for sale, and was not bought in time.`
  return isSearchOver(facts)
    ? { ...common, kind: 'give-up', message: `The search is over: ${why}` }
    : {
        ...common,
        kind: 'wait',
        lookInMs,
        message: `${capital(why)} The next look is in ${formatDuration(lookInMs)}.`,
      }
}

/** Quotes for a wish, the best first. */
export function rankQuotes(
  facts: Pick<CapacityFacts, 'wish' | 'rule' | 'approved'>,
  quotes: readonly CapacityQuote[],
): JudgedQuote[] {
  return quotes.map((quote) => judgeQuote(facts, quote)).sort(byPreference(facts))
}

/** The figures of a quote, and the first limit that it breaks. The provider's own filters are not trusted. */
export function judgeQuote(
  { wish, rule }: Pick<CapacityFacts, 'wish' | 'rule'>,
  quote: CapacityQuote,
): JudgedQuote {
  const machineHourMicro = machineHourOf(quote)
  const refusal = unlike(wish, quote) ?? tooDear(rule, quote, machineHourMicro)
  return { quote, machineHourMicro, ...defined({ refusal }) }
}

/** The whole price: paid upfront, or for as long as an hourly one is committed or wanted. */
export function wholePriceOf({
  upfrontMicro,
  perHourMicro,
  startsAtMs,
  endsAtMs,
  committedMs = 0,
}: CapacityQuote): number {
  const heldMs = Math.max(committedMs, endsAtMs === undefined ? 0 : endsAtMs - startsAtMs)
  return upfrontMicro + Math.ceil((perHourMicro * heldMs) / HOUR_MS)
}

function machineHourOf({
  count,
  startsAtMs,
  endsAtMs,
  usableUntilMs,
  upfrontMicro,
  perHourMicro,
  readAtMs,
}: CapacityQuote): number {
  const usableMs = (usableUntilMs ?? endsAtMs ?? startsAtMs) - Math.max(startsAtMs, readAtMs)
  const upfront = upfrontMicro === 0 ? 0 : usableMs <= 0 ? Infinity : (upfrontMicro * HOUR_MS) / usableMs
  return Math.ceil((upfront + perHourMicro) / count)
}

function unlike(wish: CapacityWish, quote: CapacityQuote): string | undefined {
  const {
    kind,
    types,
    count,
    durationMs = 0,
    earliestStartAtMs = -Infinity,
    latestStartAtMs = Infinity,
  } = wish
  const { latestEndAtMs = Infinity, regions = [], zones = [], extends: extended } = wish
  const { startsAtMs, endsAtMs = Infinity, usableUntilMs = endsAtMs, readAtMs } = quote
  if (quote.kind !== kind || quote.extends !== extended?.id) return 'it is another kind of reservation'
  if (!types.includes(quote.type)) return `it is for ${quote.type}`
  if (quote.count !== count) return `it has ${plural(quote.count, 'machine')}, not ${count}`
  if (zones.length > 0 && !zones.includes(quote.zone)) return `it is in ${quote.zone}`
  if (
    regions.length > 0 &&
    !regions.some((name) => isInRegion({ region: quote.region, place: quote.zone }, name))
  )
    return `it is in ${quote.region}`
  if (extended !== undefined)
    return endsAtMs - startsAtMs < durationMs
      ? `it adds ${formatDuration(endsAtMs - startsAtMs)}, and ${formatDuration(durationMs)} are needed`
      : undefined
  if (startsAtMs < earliestStartAtMs) return `it begins ${formatInstant(startsAtMs)}, before the wanted time`
  if (startsAtMs > latestStartAtMs) return `it begins ${formatInstant(startsAtMs)}, after the wanted time`
  if (endsAtMs !== Infinity && endsAtMs > latestEndAtMs)
    return `it ends ${formatInstant(endsAtMs)}, after the wanted time`
  // By the provider's clock: its answer took time, and one that begins at once lasts exactly as long as wanted.
  const usableMs = usableUntilMs - Math.max(startsAtMs, readAtMs)
  if (usableMs < durationMs)
    return `it can be used for ${formatDuration(usableMs)}, and ${formatDuration(durationMs)} are needed`
  return undefined
}

function tooDear(rule: PurchaseRule, quote: CapacityQuote, machineHourMicro: MicroUsd): string | undefined {
  const { upfrontMaxMicroUsd, machineHourMaxMicroUsd, spendMaxMicroUsd } = rule
  if (quote.currency !== 'USD') return `it is sold in ${quote.currency}, and the limits are in USD`
  if (upfrontMaxMicroUsd !== undefined && quote.upfrontMicro > upfrontMaxMicroUsd)
    return `it costs ${formatUsd(quote.upfrontMicro)}, above the limit of ${formatUsd(upfrontMaxMicroUsd)}`
  if (machineHourMaxMicroUsd !== undefined && machineHourMicro > machineHourMaxMicroUsd)
    return `a machine costs ${formatUsd(machineHourMicro)} per hour, above the limit of ${formatUsd(machineHourMaxMicroUsd)}`
  const whole = wholePriceOf(quote)
  if (quote.kind === 'hourly' && spendMaxMicroUsd !== undefined && whole > spendMaxMicroUsd)
    return `it costs ${formatUsd(whole)} if it stays unused, above the limit of ${formatUsd(spendMaxMicroUsd)}`
  return undefined
}

/** Whether it is bought without a person, or a person has approved exactly this. */
function isUnasked(
  { rule: { unaskedMaxMicroUsd = 0, spendMaxMicroUsd }, approved, earlierMicroUsd = 0 }: CapacityFacts,
  { quote }: JudgedQuote,
): boolean {
  if (approved !== undefined && isAsApproved(quote, approved)) return true
  // Without an end, it may cost everything up to the limit after which it is released.
  const whole =
    quote.kind === 'hourly' && quote.endsAtMs === undefined
      ? (spendMaxMicroUsd ?? Infinity)
      : wholePriceOf(quote)
  return earlierMicroUsd + whole <= unaskedMaxMicroUsd
}

/** What a person has approved, then the preferred type, the lower price, the earlier start. */
function byPreference({ wish: { types }, approved }: Pick<CapacityFacts, 'wish' | 'approved'>) {
  const isApproved = ({ quote }: JudgedQuote): number =>
    Number(approved !== undefined && isAsApproved(quote, approved))
  return (a: JudgedQuote, b: JudgedQuote): number =>
    isApproved(b) - isApproved(a) ||
    types.indexOf(a.quote.type) - types.indexOf(b.quote.type) ||
    wholePriceOf(a.quote) - wholePriceOf(b.quote) ||
    a.quote.startsAtMs - b.quote.startsAtMs ||
    quoteKey(a.quote).localeCompare(quoteKey(b.quote))
}

/**
 * What is owned and fits the wish: bought for this very wish, whatever else is true; otherwise idle prepaid capacity that no other
 * wish or deployment has.
 */
function adoptable(
  facts: CapacityFacts,
): { id: string; count: number; reservation: OwnedReservation } | undefined {
  const { wish, reservationId, deployment, claims, nowMs } = facts
  if (wish.extends !== undefined) return undefined
  const isOwn = (one: OwnedReservation): boolean =>
    isHeld(one.phase) &&
    isTaggedFor(one, { intent: reservationId, deployment, kind: wish.kind }) &&
    wish.types.includes(one.type)
  const isFree = (one: OwnedReservation): boolean =>
    one.kind === 'prepaid' &&
    wish.kind === 'prepaid' &&
    ['scheduled', 'active'].includes(one.phase) &&
    !one.isShared &&
    one.unfit === undefined &&
    one.intent === undefined &&
    (one.deployment ?? deployment) === deployment &&
    [undefined, reservationId].includes(claims.get(one.id)) &&
    (one.phase !== 'active' || one.free === one.total) &&
    unlike(wish, asQuote(one, wish.count, nowMs)) === undefined
  const reservation =
    facts.owned.find(isOwn) ??
    [...facts.owned].filter(isFree).sort((a, b) => (a.startsAtMs ?? 0) - (b.startsAtMs ?? 0))[0]
  return reservation && { id: reservation.id, count: reservation.total, reservation }
}

/** A larger one serves, too. */
function asQuote(owned: OwnedReservation, wanted: number, nowMs: number): CapacityQuote {
  const { id, kind, type, total, region, zone, startsAtMs = nowMs, endsAtMs, usableUntilMs } = owned
  return {
    ...{
      id,
      kind,
      type,
      count: Math.min(total, wanted),
      region,
      zone,
      upfrontMicro: 0,
      perHourMicro: 0,
      currency: 'USD',
      readAtMs: nowMs,
    },
    // One that has begun serves a wish for as soon as possible.
    startsAtMs: Math.max(startsAtMs, nowMs),
    ...defined({ endsAtMs, usableUntilMs }),
  }
}

const isSearchOver = (facts: CapacityFacts): boolean => facts.nowMs >= searchEndOf(facts)

/** The last moment at which a purchase still makes sense. */
function searchEndOf({ wish, rule }: Pick<CapacityFacts, 'wish' | 'rule'>): number {
  return Math.min(rule.searchUntilAtMs ?? Infinity, wish.latestStartAtMs ?? Infinity)
}

/** Daily while there is time, more often towards the end of the search. */
function nextLookMs(facts: CapacityFacts): number {
  const leftMs = searchEndOf(facts) - facts.nowMs
  const usual = leftMs > 7 * DAY_MS ? DAY_MS : leftMs > DAY_MS ? HOUR_MS : 10 * MINUTE_MS
  return Math.max(MINUTE_MS, Math.min(usual, leftMs))
}

function whyNothing({ wish, unseen, unsold }: CapacityFacts, refused: JudgedQuote[]): string {
  const what = `${wish.count} × ${wish.types.join(' or ')}`
  const blind =
    unseen.length === 0
      ? ''
      : ` ${unseen.length === 1 ? 'One part' : `${unseen.length} parts`} of the provider did not answer (${unseen[0]}).`
  if (unsold !== undefined) return sentence(unsold)
  const [nearest] = refused
  if (nearest === undefined) return `nothing is for sale for ${what}.${blind}`
  return `${refused.length} found for ${what}, and none may be bought; the nearest is ${quoteInWords(nearest.quote)}: ${nearest.refusal}.${blind}`
}
