import { BackendError } from '../../backends/errors'
import { formatUsd } from '../../core/money/money'
import { shareInWords } from '../../core/reservation/hold'
import type { ReservationDocuments } from '../../core/reservation/activities'
import { monthBefore, monthOf } from '../../core/money/treasury'
import { Purchases } from '../../storage/purchases'
import { changeShare, lastReservationEntry, putReservationEntry } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'
import { readWebhook } from '../../storage/webhooks'
import { allBeating, type Signalled } from '../heartbeat'
import type { Treasury } from '../money/treasury'
import { decideExtension, type ExtensionDeps } from './extension'

/** The orchestrator's part in reservations: money and record. */
export function createReservationDocuments({
  store,
  now,
  treasury,
  key,
  post,
  preview = () => Promise.reject(new Error('this worker makes no plans')),
}: {
  store: ObjectStore
  now: () => number
  treasury?: Pick<Treasury, 'settle' | 'settlePurchase'> | undefined
  /** Key that opens the webhooks; without it, no event is posted. */
  key?: Buffer | undefined
  /** Posts a document. Throws if the receiver refuses it. */
  /** Plans where a job could run now. */
  preview?: ExtensionDeps['preview']
  post?: (url: string, body: string, signal: AbortSignal) => Promise<void>
}): ReservationDocuments {
  const releaseBudget: Signalled<ReservationDocuments>['releaseBudget'] = async (
    { reservationId, sends },
    signal,
  ) => {
    if (treasury === undefined) return
    const purchases = new Purchases(store, now)
    for (const send of sends) {
      const mark = await purchases.read({ intent: reservationId, send })
      const paying = mark?.kind === 'sent' ? mark.order.month : undefined
      // Money may be reserved in these months, and in the month that pays, which may be long ago.
      for (const month of new Set([paying ?? monthOf(now()), monthBefore(now()), monthOf(now())].sort()))
        await treasury.settlePurchase(month, { reservationId, send }, signal)
    }
  }
  return allBeating<ReservationDocuments>({
    settleBudget: async ({ month, ...request }, signal) => treasury?.settle(month, request, signal),
    releaseBudget,
    decideExtension: (input) => decideExtension({ store, now, preview }, input),
    tellReservation: async ({ webhookOf, status, news, pageUrl }, signal) => {
      const url = key && (await readWebhook(store, key, webhookOf))
      if (url === undefined || post === undefined)
        throw new BackendError({ class: 'invalid', message: `The webhook of ${webhookOf} is not stored.` })
      const { event, text: words } = news
      const link = pageUrl === undefined ? '' : ` ${pageUrl}`
      const text = `Reservation ${status.id}: ${words}${link}`
      const more = pageUrl === undefined ? {} : { pageUrl }
      await post(
        url,
        JSON.stringify({ schema: 'crucible/1', event, text, ...more, reservation: status }),
        signal,
      )
    },
    shareReservation: async ({ reservationId, recordSeq, owner, share }) => {
      await changeShare(store, reservationId, { owner, share })
      await putReservationEntry(store, reservationId, {
        seq: recordSeq,
        atMs: now(),
        kind: 'changed',
        data: { share },
        summary: `Idle places are for ${shareInWords(share)}.`,
      })
    },
    endReservation: async ({ reservationId, recordSeq, status, sends }, signal) => {
      // The marks include the last known purchase, and one that may have been about to begin.
      await releaseBudget({ reservationId, sends: [sends, sends + 1] }, signal)
      const last = await lastReservationEntry(store, reservationId)
      const { state, message, spentMicroUsd, idleMicroUsd } = status
      const how = last?.summary === message ? `It is over (${state}).` : message
      const costs = `Spent: ${formatUsd(spentMicroUsd)}, of it for unused time ${formatUsd(idleMicroUsd)}.`
      await putReservationEntry(store, reservationId, {
        seq: recordSeq,
        atMs: now(),
        kind: 'over',
        summary: `${how} ${costs}`,
        data: status,
      })
    },
  })
}
