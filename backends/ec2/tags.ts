import { startsWithinMs } from '../../core/money/budget'
import type { OwnerTags } from '../../core/handle'
import { offerKey, type Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { CLOCK_SLACK_MS } from '../../core/time/time'
import { stoppingMs } from '../../core/time/timing'
import { readOwnTags } from './own-tags'

/** Names of our tags. The machine reads them in its metadata, which allows no `/` and no space in a name. */
export const TAGS = {
  deployment: 'crucible:deployment',
  job: 'crucible:job',
  attempt: 'crucible:attempt',
  /** Milliseconds: within which the runner must have started, and from the end of its lease until the power-off. */
  timer: 'crucible:timer',
  /** Price of each pool of the order, so that a machine that is found later has its price; in parts, `-1`, `-2`, ... */
  prices: 'crucible:prices',
  /** Upper bound of the micro-dollars per hour for disk and address. */
  beside: 'crucible:beside',
  /** Whether the machine got credentials for its own attempt; without the tag it uses the store with its role. */
  grant: 'crucible:grant',
  /** Tags of a reservation: its intent, the purchase of the intent, and the owner. */
  intent: 'crucible:intent',
  intentSend: 'crucible:intent-send',
  owner: 'crucible:owner',
  /** The offering that was bought, and its fee: `1234.5 USD`. */
  offering: 'crucible:offering',
  fee: 'crucible:fee',
} as const

/** A tag's value has at most 256 characters. */
const VALUE_MAX = 250

/** Everything that the machine and its finder must know; set from the start. */
export function tagsOf(order: Order, hasGrant = false): Record<string, string> {
  return {
    ...order.tags,
    // As its offers say, so that a repeated order is the same. The deployment's own tags prevail.
    ...readOwnTags(order.offers[0]?.data),
    Name: `crucible ${order.attemptId}`,
    [TAGS.deployment]: order.deployment,
    [TAGS.job]: order.jobId,
    [TAGS.attempt]: order.attemptId,
    [TAGS.timer]: `${startsWithinMs(order.runner)} ${stoppingMs(order.runner) + CLOCK_SLACK_MS}`,
    ...pricesOf(order.offers),
    [TAGS.beside]: String(Math.max(0, ...order.offers.map(besideOf))),
    ...(hasGrant && { [TAGS.grant]: 'attempt' }),
  }
}

const besideOf = ({ besideMicroUsdPerHour = 0 }: Offer): number => besideMicroUsdPerHour

export function ownerOf(tags: Record<string, string>): OwnerTags {
  return {
    deployment: tags[TAGS.deployment] ?? '',
    jobId: tags[TAGS.job] ?? '',
    attemptId: tags[TAGS.attempt] ?? '',
  }
}

function poolOf({ type, place }: Pick<Offer, 'type' | 'place'>): string {
  return `${type}@${place}`
}

function pricesOf(offers: Offer[]): Record<string, string> {
  const pieces: string[] = []
  const seen = new Set<string>()
  for (const offer of offers) {
    if (seen.has(offerKey(offer))) continue
    seen.add(offerKey(offer))
    const entry = `${poolOf(offer)}=${offer.priceMicroUsdPerHour}`
    const last = pieces.at(-1)
    if (last === undefined || last.length + entry.length + 1 > VALUE_MAX) pieces.push(entry)
    else pieces[pieces.length - 1] = `${last} ${entry}`
  }
  return Object.fromEntries(pieces.map((piece, at) => [`${TAGS.prices}-${at + 1}`, piece]))
}

/** The price at which a machine was ordered, from its tags; the highest of its order for a pool that was not ordered. */
export function priceOn(tags: Record<string, string>, pool: { type: string; place: string }): number {
  const entries = Object.entries(tags)
    .filter(([name]) => name.startsWith(`${TAGS.prices}-`))
    .flatMap(([, piece]) => piece.split(' '))
    .map((entry) => entry.split('='))
  const own = entries.find(([name]) => name === poolOf(pool))
  if (own !== undefined) return Number(own[1])
  return Math.max(0, ...entries.map(([, price]) => Number(price)))
}
