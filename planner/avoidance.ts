import type { Avoidance } from '../core/ledger'
import { offerKey, placeKey, type Offer } from '../core/offer'
import { formatDuration, HOUR_MS, MINUTE_MS } from '../core/time'

/** How long an offer that had no machine is left alone: stock changes within minutes. */
export const AVOID_CAPACITY_MS = 3 * MINUTE_MS
/** How long an offer refused for quota is left alone: a person must raise it. */
export const AVOID_QUOTA_MS = HOUR_MS
/** How long a reservation that has ended, or is about to, is left alone: what its owner buys anew has another name. */
export const AVOID_ENDED_MS = HOUR_MS
/** How long a migration keeps away from where it came from, if there is anywhere else. */
export const AVOID_LEFT_MS = 10 * MINUTE_MS
/**
 * How long a pool that took a machine back is reckoned to do it again: in the traces of 0012 it takes the next one back within the
 * hour twice in three times, and after two hours hardly more often than others do.
 */
export const SHAKY_MS = 2 * HOUR_MS
/** How long a place whose machine nobody could speak to comes last: a network is not mended within minutes. */
export const AVOID_UNREACHABLE_MS = HOUR_MS

export function avoidAll(offerKeys: string[], why: Avoidance['why'], forMs: number): Avoidance[] {
  return offerKeys.map((offerKey) => ({ offerKey, forMs, why }))
}

/** What of it is left after so long. */
export function stillAvoided(avoid: readonly Avoidance[], passedMs: number): Avoidance[] {
  return avoid
    .filter(({ forMs }) => forMs > passedMs)
    .map((each) => ({ ...each, forMs: each.forMs - passedMs }))
}

/** What stands against an offer for that reason, by itself or with its whole place, if anything does. */
export function avoidanceOf(
  offer: Offer,
  avoid: readonly Avoidance[],
  why: Avoidance['why'],
): Avoidance | undefined {
  const keys = [offerKey(offer), placeKey(offer)]
  return avoid.find((avoidance) => avoidance.why === why && keys.includes(avoidance.offerKey))
}

/** Taken only where there is no other. */
export function isDeprioritised(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return avoidanceOf(offer, avoid, 'preference') !== undefined
}

/** Reckoned to take a machine back soon, as it lately did. What is not spot is not taken back: its machines break, wherever they are. */
export function isShaky(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return offer.capacityType === 'spot' && avoidanceOf(offer, avoid, 'interruption') !== undefined
}

/** Why an offer is left alone, in words. */
export function whyAvoided(
  offer: Offer,
  avoid: readonly Avoidance[],
  why: 'quota' | 'capacity',
): string | undefined {
  const avoidance = avoidanceOf(offer, avoid, why)
  if (avoidance === undefined) return undefined
  const what = why === 'quota' ? 'refused for want of quota' : 'had no machine'
  return `${what} a moment ago; left alone for ${formatDuration(avoidance.forMs)}`
}
