import type { Avoidance } from '../../core/job/ledger'
import { isInterruptible, offerKey, placeKey, type Offer } from '../../core/offer'
import { formatDuration, HOUR_MS, MINUTE_MS } from '../../core/time/time'

/** How long an offer without capacity is avoided, because stock changes within minutes. */
export const AVOID_CAPACITY_MS = 3 * MINUTE_MS
/** How long an offer refused for quota is avoided, because a person must raise a quota. */
export const AVOID_QUOTA_MS = HOUR_MS
/** How long a reservation that has ended, or is about to, is avoided. A new one has another name. */
export const AVOID_ENDED_MS = HOUR_MS
/** How long a migration avoids its origin, if another place exists. */
export const AVOID_LEFT_MS = 10 * MINUTE_MS
/**
 * How long a pool that interrupted a job is expected to do so again: in the traces of 0012 it interrupts the next machine within the hour
 * in two of three cases, and after two hours barely more often than other pools.
 */
export const SHAKY_MS = 2 * HOUR_MS
/** How long a place with an unreachable machine ranks last, because networks are rarely fixed within minutes. */
export const AVOID_UNREACHABLE_MS = HOUR_MS

export function avoidAll(offerKeys: string[], why: Avoidance['why'], forMs: number): Avoidance[] {
  return offerKeys.map((offerKey) => ({ offerKey, forMs, why }))
}

/** The avoidances that remain after this time. */
export function stillAvoided(avoid: readonly Avoidance[], passedMs: number): Avoidance[] {
  return avoid
    .filter(({ forMs }) => forMs > passedMs)
    .map((each) => ({ ...each, forMs: each.forMs - passedMs }))
}

/** Returns why an offer is avoided for that reason, individually or with its whole place; `undefined` if it is not avoided. */
function avoidanceOf(
  offer: Offer,
  avoid: readonly Avoidance[],
  why: Avoidance['why'],
): Avoidance | undefined {
  if (avoid.length === 0) return undefined
  const keys = [offerKey(offer), placeKey(offer)]
  return avoid.find((avoidance) => avoidance.why === why && keys.includes(avoidance.offerKey))
}

/** Whether an offer is only the last resort. */
export function isDeprioritised(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return avoidanceOf(offer, avoid, 'preference') !== undefined
}

/** Expected to interrupt again soon. Applies to what its provider takes back: other machines break at any place. */
export function isShaky(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return isInterruptible(offer) && avoidanceOf(offer, avoid, 'interruption') !== undefined
}

/** Why an offer is avoided, in words. */
export function whyAvoided(
  offer: Offer,
  avoid: readonly Avoidance[],
  why: 'quota' | 'capacity',
): string | undefined {
  const avoidance = avoidanceOf(offer, avoid, why)
  if (avoidance === undefined) return undefined
  const what = why === 'quota' ? 'refused for missing quota' : 'had no capacity'
  return `${what} recently; avoided for ${formatDuration(avoidance.forMs)}`
}
