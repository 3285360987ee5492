import type { Avoidance } from '../core/ledger'
import { offerKey, placeKey, type Offer } from '../core/offer'

/** Why an offer is avoided for that reason, on its own or with its whole place; `undefined` if it is not. */
export function avoidanceOf(
  offer: Offer,
  avoid: readonly Avoidance[],
  why: Avoidance['why'],
): Avoidance | undefined {
  const keys = [offerKey(offer), placeKey(offer)]
  return avoid.find((avoidance) => avoidance.why === why && keys.includes(avoidance.offerKey))
}

/** Taken only if there is no other. */
export function isDeprioritised(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return avoidanceOf(offer, avoid, 'preference') !== undefined
}

/** Expected to interrupt again soon. Applies to spot only: other machines break at any place. */
export function isShaky(offer: Offer, avoid: readonly Avoidance[]): boolean {
  return offer.capacityType === 'spot' && avoidanceOf(offer, avoid, 'interruption') !== undefined
}
