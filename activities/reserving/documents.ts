import type { ReservationDocuments } from '../../core/reserving-activities'
import { monthBefore, monthOf } from '../../core/treasury'
import { putReservationEntry } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'
import { allBeating, type Signalled } from '../heartbeat'
import type { Treasury } from '../treasury'

/** The orchestrator's part in reservations: money and record. */
export function createReservationDocuments({
  store,
  now,
  treasury,
}: {
  store: ObjectStore
  now: () => number
  treasury?: Pick<Treasury, 'settle' | 'settlePurchase'> | undefined
}): ReservationDocuments {
  const releaseBudget: Signalled<ReservationDocuments>['releaseBudget'] = async (
    { reservationId, sends },
    signal,
  ) => {
    for (const send of sends)
      for (const month of [monthBefore(now()), monthOf(now())])
        await treasury?.settlePurchase(month, { reservationId, send }, signal)
  }
  return allBeating<ReservationDocuments>({
    settleBudget: async ({ month, ...request }, signal) => treasury?.settle(month, request, signal),
    releaseBudget,
    endReservation: async ({ reservationId, recordSeq, status, sends }, signal) => {
      // The last purchase that is known, and the one that may have been about to begin.
      await releaseBudget({ reservationId, sends: [sends, sends + 1] }, signal)
      await putReservationEntry(store, reservationId, {
        seq: recordSeq,
        atMs: now(),
        kind: 'over',
        summary: status.message,
        data: status,
      })
    },
  })
}
