import { quoteFault, ruleFault } from '../../core/figures'
import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { CapacityQuote } from '../../core/reservation/reservation'
import { isAsApproved, quoteKey, type JudgedQuote, type PurchaseRule } from '../../core/reservation/reserving'
import type { CapacityVerdict } from '../../core/reservation/activities'
import { adoptable, type AdoptionFacts } from './adopt'
import { unlike } from './fit'
import { capital, lostInWords, priceInWords, quoteInWords, sentence } from './words'
import { DAY_MS, formatDuration, HOUR_MS, MINUTE_MS } from '../../core/time/time'

/** Facts of one search for capacity. */
export interface CapacityFacts extends AdoptionFacts {
  rule: PurchaseRule
  account: string
  /** Number of finished purchases of this request. */
  sends: number
  quotes: readonly CapacityQuote[]
  unseen: readonly string[]
  /** Why the provider never sells the request, in its words. */
  unsold?: string | undefined
  isFirst: boolean
  /** The quote that a person has approved. */
  approved?: CapacityQuote | undefined
  /** Payments for lost capacity of this request. */
  earlierMicroUsd?: MicroUsd
}

/** Quotes kept for display. */
const ALTERNATIVES_MAX = 5

/**
 * Uses owned capacity, otherwise capacity that may be bought; otherwise returns the time of the next search. Never buys beyond a limit of
 * the rule.
 */
export function judgeCapacity(facts: CapacityFacts): CapacityVerdict {
  const { account, unseen, sends } = facts
  const judged = rankQuotes(facts, facts.quotes)
  const [best, ...others] = judged.filter(({ refusal }) => refusal === undefined)
  const refused = judged.filter(({ refusal }) => refusal !== undefined)
  const common = {
    account,
    unseen: [...unseen],
    sends,
    alternatives: [...others, ...refused].slice(0, ALTERNATIVES_MAX),
  }
  const adopted = adoptable(facts)
  if (adopted?.kind === 'adopt') {
    const { id, total, type } = adopted.reservation
    const message = `${id} (${total} × ${type}) is already owned and fits: nothing is bought.`
    return { ...common, kind: 'adopt', message, reservation: adopted.reservation }
  }
  if (adopted?.kind === 'young') {
    const lookInMs = Math.max(MINUTE_MS, adopted.inMs)
    const message = `${adopted.reservation.id} fits and has just been bought: its tags may not show yet. The next check is in ${formatDuration(lookInMs)}.`
    return { ...common, kind: 'wait', lookInMs, message }
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
          kind: 'ask',
          judged: best,
          lookInMs,
          message: `${capital(quoteInWords(best.quote))} is for sale: ${price}. ${lostInWords(facts.earlierMicroUsd ?? 0)}It waits for approval.`,
        }
  }
  const why =
    best === undefined
      ? whyNothing(facts, refused)
      : `${quoteInWords(best.quote)} was for sale, but not bought in time.`
  return isSearchOver(facts)
    ? { ...common, kind: 'give-up', message: `The search is over: ${why}` }
    : {
        ...common,
        kind: 'wait',
        lookInMs,
        message: `${capital(why)} The next check is in ${formatDuration(lookInMs)}.`,
      }
}

/** Ranks quotes for a request, the best first. */
export function rankQuotes(
  facts: Pick<CapacityFacts, 'wish' | 'rule' | 'approved'>,
  quotes: readonly CapacityQuote[],
): JudgedQuote[] {
  return quotes.map((quote) => judgeQuote(facts, quote)).sort(byPreference(facts))
}

/** Returns the figures of a quote, and the first limit that it breaks. The provider's own filters are not trusted. */
function judgeQuote({ wish, rule }: Pick<CapacityFacts, 'wish' | 'rule'>, quote: CapacityQuote): JudgedQuote {
  const machineHourMicro = machineHourOf(quote)
  const refusal =
    quoteFault(quote) ?? ruleFault(rule) ?? unlike(wish, quote) ?? tooDear(rule, quote, machineHourMicro)
  return { quote, machineHourMicro, refusal }
}

/** The whole price: paid upfront, or for as long as an hourly one is committed or wanted. @internal A test goes over kinds of quotes. */
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

/** Whether the quote is bought without a person, or a person has approved exactly this quote. */
function isUnasked(
  { rule: { unaskedMaxMicroUsd = 0, spendMaxMicroUsd }, approved, earlierMicroUsd = 0 }: CapacityFacts,
  { quote }: JudgedQuote,
): boolean {
  if (approved !== undefined && isAsApproved(quote, approved)) return true
  // Without an end, it may cost everything up to the limit at which it is released.
  const whole =
    quote.kind === 'hourly' && quote.endsAtMs === undefined
      ? (spendMaxMicroUsd ?? Infinity)
      : wholePriceOf(quote)
  return earlierMicroUsd + whole <= unaskedMaxMicroUsd
}

/** Orders quotes by approval of a person, then the preferred type, the lower price, the earlier start. */
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

const isSearchOver = (facts: CapacityFacts): boolean => facts.nowMs >= searchEndOf(facts)

/** Returns the last moment at which a purchase is useful. */
function searchEndOf({ wish, rule }: Pick<CapacityFacts, 'wish' | 'rule'>): number {
  return Math.min(rule.searchUntilAtMs ?? Infinity, wish.latestStartAtMs ?? Infinity)
}

/** Returns the time of the next search: daily while time remains, more often towards the end. */
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
