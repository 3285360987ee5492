import type { ReservationDocuments } from '../../core/reserving-activities'
import { monthBefore, monthOf, reservationBudgetId } from '../../core/treasury'
import { putReservationEntry } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'
import { allBeating } from '../heartbeat'
import type { Treasury } from '../treasury'

/** The orchestrator's part in reservations: money and record. */
export function createReservationDocuments({
  store,
  now,
  treasury,
}: {
  store: ObjectStore
  now: () => number
  treasury?: Pick<Treasury, 'settle'> | undefined
}): ReservationDocuments {
  return allBeating<ReservationDocuments>({
    settleBudget: async ({ month, ...request }) => treasury?.settle(month, request),
    endReservation: async ({ reservationId, recordSeq, status, owner, sends }) => {
      // The last purchase that is known, and the one that may have been about to begin.
      for (const send of [sends, sends + 1])
        for (const month of [monthBefore(now()), monthOf(now())])
          await treasury?.settle(month, {
            ...{ jobId: reservationBudgetId(reservationId, send), owner, spentMicroUsd: 0 },
          })
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
