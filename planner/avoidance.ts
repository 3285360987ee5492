import type { Avoidance } from '../core/ledger'
import { offerKey, placeKey, type Offer } from '../core/offer'

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
