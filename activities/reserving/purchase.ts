import type { ReservingBackend } from '../../backends/backend'
import { BackendError, failureOf } from '../../backends/errors'
import { isWithoutEffect, type Failure } from '../../core/failure'
import type { OwnedReservation, ReservationOrder, ReserveOutcome } from '../../core/reservation/reservation'
import { PURCHASE_LIMIT_MS } from '../../core/reservation/purchase-limits'
import type { DecidePurchaseTask, FindPurchaseOutcome } from '../../core/reservation/activities'
import { formatInstant } from '../../core/time/time'
import { Purchases, type RecordedEffect } from '../../storage/purchases'
import { claimReservation } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'
import { sendWithin } from '../machine/send-limit'
import { isLike, newIn, ofOrder, whyNotAnswer, whyNotIt, type SentMark } from './matching'

export interface PurchaseDeps {
  reserving: ReservingBackend
  store: ObjectStore
  now: () => number
  /** Limit on one send; `PURCHASE_LIMIT_MS` if missing. */
  purchaseLimitMs?: number
}

/**
 * Sends a purchase so that it is made at most once, regardless of repetitions and of the step in which a worker dies. It looks for owned
 * capacity first, then puts a mark that only one caller can put, then sends the request. A call that finds the mark never sends.
 */
export async function purchase(
  deps: PurchaseDeps,
  order: ReservationOrder,
  signal: AbortSignal,
): Promise<ReserveOutcome> {
  const { reserving, store, now } = deps
  const purchases = new Purchases(store, now)
  const owned = await reserving.reservations({ signal, within: [order.quote.region] })
  const before = ofOrder(owned, order)
  if (before !== undefined) return { kind: 'reserved', reservation: before }
  const was = whatWas(owned, order)
  const mark = await purchases.mark(order, was)
  if (mark === undefined) return standing(await purchases.effect(order), owned)
  const outcome = checked(await send(deps, { order, sentAtMs: mark.atMs, signal }), order, was.ownedBefore)
  await conclude(deps, order, outcome)
  return outcome
}

/** Returns a snapshot that later distinguishes this purchase. */
function whatWas(
  owned: readonly OwnedReservation[],
  { quote }: ReservationOrder,
): Pick<SentMark, 'ownedBefore' | 'extendedBeforeAtMs'> {
  const ownedBefore = owned.map(({ id }) => id)
  if (quote.extends === undefined) return { ownedBefore }
  const { extension } = owned.find(({ id }) => id === quote.extends) ?? {}
  return { ownedBefore, extendedBeforeAtMs: extension?.boughtAtMs ?? null }
}

/** Returns the recorded outcome of an order that another call has sent. */
function standing(effect: RecordedEffect | undefined, owned: OwnedReservation[]): ReserveOutcome {
  if (effect?.kind === 'no-effect') return { kind: 'refused', failure: effect.failure }
  const reservation = owned.find(({ id }) => effect?.kind === 'bought' && id === effect.reservationId)
  if (reservation !== undefined) return { kind: 'reserved', reservation }
  return {
    kind: 'unconfirmed',
    failure: {
      class: 'unclassified',
      message: 'This purchase was sent before, and its outcome is still unknown.',
    },
  }
}

async function send(
  { reserving, now, purchaseLimitMs = PURCHASE_LIMIT_MS }: PurchaseDeps,
  { order, sentAtMs, signal }: { order: ReservationOrder; sentAtMs: number; signal: AbortSignal },
): Promise<ReserveOutcome> {
  const untilMs = sentAtMs + purchaseLimitMs
  try {
    return await sendWithin({ untilMs, now, signal }, (within) => reserving.reserve(order, within))
  } catch (error) {
    const failure = failureOf(error)
    return { kind: isWithoutEffect(failure) ? 'refused' : 'unconfirmed', failure }
  }
}

/** An answer about something else does not prove the purchase. */
function checked(outcome: ReserveOutcome, order: ReservationOrder, ownedBefore: string[]): ReserveOutcome {
  if (outcome.kind !== 'reserved') return outcome
  const why = whyNotAnswer(outcome.reservation, order, ownedBefore)
  if (why === undefined) return outcome
  const message = `The answer is about another purchase: ${why}`
  return { kind: 'unconfirmed', failure: { class: 'unclassified', message } }
}

/** Records the effect. Without these documents the purchase is searched for, which is slower and as safe. */
async function conclude(
  { store, now }: PurchaseDeps,
  order: ReservationOrder,
  outcome: ReserveOutcome,
): Promise<void> {
  if (outcome.kind === 'unconfirmed') return
  try {
    if (outcome.kind === 'reserved') return await bought({ store, now }, order, outcome.reservation.id)
    await new Purchases(store, now).conclude(order, { kind: 'no-effect', failure: outcome.failure })
  } catch {
    // The look for it repeats this.
  }
}

/** Claims the reservation first: until its tags show, the open mark or the claim keeps other requests from it. */
async function bought(
  { store, now }: Pick<PurchaseDeps, 'store' | 'now'>,
  order: ReservationOrder,
  reservationId: string,
): Promise<void> {
  const { backend, intent } = order
  await claimReservation(store, { backend, ownedId: reservationId, intent })
  await new Purchases(store, now).conclude(order, { kind: 'bought', reservationId })
}

/** Searches for a purchase by its tags, its recorded effect, and the difference of owned reservations. Seals one that was never sent. */
export async function findPurchase(
  { reserving, store, now }: PurchaseDeps,
  order: ReservationOrder,
  signal: AbortSignal,
): Promise<FindPurchaseOutcome> {
  const purchases = new Purchases(store, now)
  const mark = await purchases.seal(order)
  if (mark.kind === 'sealed') return { kind: 'no-effect', failure: NEVER_SENT }
  const owned = await reserving.reservations({ signal, within: [order.quote.region] })
  // A reservation whose payment has failed meanwhile was bought too; one from before the mark is another purchase of the same request.
  const found = ofOrder(owned, order) ?? ofOrder(newIn(owned, mark), order, 'in any phase')
  if (found !== undefined) {
    await bought({ store, now }, order, found.id)
    return { kind: 'found', reservation: found }
  }
  const effect = await purchases.effect(order)
  if (effect?.kind === 'no-effect') return { kind: 'no-effect', failure: effect.failure }
  const decided = owned.find(({ id }) => effect?.kind === 'bought' && id === effect.reservationId)
  if (decided !== undefined) return { kind: 'found', reservation: decided }
  if (hasFailed(owned, mark)) {
    await purchases.conclude(order, { kind: 'no-effect', failure: UNPAID_EXTENSION })
    return { kind: 'no-effect', failure: UNPAID_EXTENSION }
  }
  return absent(mark, owned, now())
}

const UNPAID_EXTENSION: Failure = {
  class: 'quota',
  message: 'The extension was bought, and its payment failed: the end of the reservation does not change.',
  hint: "Check the account's means of payment.",
}

/** Whether the reservation shows this extension as one whose payment failed. An extension that was shown before the send does not count. */
function hasFailed(owned: readonly OwnedReservation[], { order, extendedBeforeAtMs }: SentMark): boolean {
  const { quote } = order
  const { extension } = owned.find(({ id }) => id === quote.extends) ?? {}
  return (
    extension?.phase === 'failed' &&
    extension.endsAtMs === quote.endsAtMs &&
    extension.boughtAtMs !== undefined &&
    extendedBeforeAtMs !== undefined &&
    extension.boughtAtMs > (extendedBeforeAtMs ?? -Infinity)
  )
}

const NEVER_SENT: Failure = {
  class: 'transient',
  message: 'The purchase was not sent before its worker stopped.',
}

function absent(mark: SentMark, owned: OwnedReservation[], nowMs: number): FindPurchaseOutcome {
  const { order, atMs } = mark
  const news = newIn(owned, mark)
  const candidates = news.filter((one) => isLike(one, order))
  const { id, region } = order.quote
  const saw =
    `${formatInstant(nowMs)}: of ${owned.length} reservations in ${region}, none has the tag of ${order.intent}; ` +
    `${news.length} appeared since ${id === '' ? 'it' : id} was ordered, ${candidates.length} of them match the order and have no tags.`
  return { kind: 'absent', sentAtMs: atMs, saw, candidates }
}

/** Records a person's decision after comparing it with owned reservations. */
export async function decidePurchase(
  deps: PurchaseDeps,
  { order, ownedId, by }: DecidePurchaseTask,
  signal: AbortSignal,
): Promise<FindPurchaseOutcome> {
  const now = await findPurchase(deps, order, signal)
  if (now.kind !== 'absent') return contradicted(now, ownedId)
  const purchases = new Purchases(deps.store, deps.now)
  if (ownedId === null) {
    const failure: Failure = { class: 'transient', message: `${by} has determined that it was not bought.` }
    await purchases.conclude(order, { kind: 'no-effect', failure, by })
    return { kind: 'no-effect', failure }
  }
  const owned = await deps.reserving.reservations({ signal, within: [order.quote.region] })
  const reservation = owned.find(({ id }) => id === ownedId)
  if (reservation === undefined)
    throw invalid(`The account has no reservation ${ownedId} in ${order.quote.region}.`)
  const why = whyNotIt(reservation, order, await purchases.read(order))
  if (why !== undefined) throw invalid(why)
  // Without tags, only the claim keeps another request from it.
  const { backend, intent } = order
  const owner = await claimReservation(deps.store, { backend, ownedId, intent })
  if (owner !== intent) throw invalid(`${ownedId} serves ${owner} already.`)
  await purchases.conclude(order, { kind: 'bought', reservationId: ownedId, by })
  return { kind: 'found', reservation }
}

/** Returns whether certain facts contradict a person's decision. */
function contradicted(
  now: Exclude<FindPurchaseOutcome, { kind: 'absent' }>,
  ownedId: string | null,
): FindPurchaseOutcome {
  if (now.kind === 'found' && ownedId === null)
    throw invalid(`It was bought: it is ${now.reservation.id}, which carries its tag.`)
  return now
}

function invalid(message: string): BackendError {
  return new BackendError({ class: 'invalid', message })
}
