import type { OwnedReservation } from '../../core/reservation/reservation'
import { openPurchases } from '../../storage/purchases'
import type { ObjectStore } from '../../storage/store'
import { isLike, newIn } from './matching'

/**
 * Returns the reservations that other requests may have bought: each matches the order of a purchase without a certain effect, appeared
 * since, and shows no tags. A purchase whose mark cannot be read may have bought any of them.
 */
export async function undecidedAmong(
  store: ObjectStore,
  owned: readonly OwnedReservation[],
  { reservationId, backend }: { reservationId: string; backend: string },
): Promise<Map<string, string>> {
  const untagged = owned.filter(({ intent, kind }) => intent === undefined && kind === 'prepaid')
  if (untagged.length === 0) return new Map()
  const { sent, unreadable } = await openPurchases(store)
  const others = sent.filter(({ order }) => order.intent !== reservationId && order.backend === backend)
  return new Map([
    ...unreadable
      .filter((intent) => intent !== reservationId)
      .flatMap((intent) => untagged.map(({ id }) => [id, intent] as const)),
    ...others.flatMap((mark) =>
      newIn(untagged, mark)
        .filter((one) => isLike(one, mark.order))
        .map(({ id }) => [id, mark.order.intent] as const),
    ),
  ])
}
