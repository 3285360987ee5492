import type { CapacityType, Offer } from '../../../core/offer'

/** How a machine of EC2 can be bought; `reservation` and `block` are `reserved`. */
export const WAYS = ['on-demand', 'spot', 'reservation', 'block'] as const
export type Way = (typeof WAYS)[number]

export function capacityTypeOf(way: Way): CapacityType {
  return way === 'on-demand' || way === 'spot' ? way : 'reserved'
}

/** The offers that an order of this capacity type is for; where it may be either, of the way. */
export function offersFor(offers: Offer[], way: Way, capacityType: CapacityType): Offer[] {
  const ofType = offers.filter((offer) => offer.capacityType === capacityType)
  if (capacityType !== 'reserved') return ofType.filter(({ type }) => type === 'g5.xlarge')
  // What runs in a block ends with it; in a reservation on demand it keeps running.
  return ofType.filter(({ usableUntilMs }) => (usableUntilMs !== undefined) === (way === 'block'))
}
