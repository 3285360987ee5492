import type { OwnedReservation } from '../../core/reservation/reservation'
import { openPurchases } from '../../storage/purchases'
import type { ObjectStore } from '../../storage/store'
import { isLike, newIn } from './matching'

/**
 * Returns the reservations that other requests may have bought: each matches the order of a purchase without a certain effect, appeared
 * since, and shows no tags.
 */
export async function undecidedAmong(
  store: ObjectStore,
  owned: readonly OwnedReservation[],
  { reservationId, backend }: { reservationId: string; backend: string },
): Promise<Map<string, string>> {
  const untagged = owned.filter(({ intent, kind }) => intent === undefined && kind === 'prepaid')
  if (untagged.length === 0) return new Map()
  const open = await openPurchases(store)
  return new Map(
    open
      .filter(({ order }) => order.intent !== reservationId && order.backend === backend)
      .flatMap((mark) =>
        newIn(untagged, mark)
          .filter((one) => isLike(one, mark.order))
          .map(({ id }) => [id, mark.order.intent] as const),
      ),
  )
}
