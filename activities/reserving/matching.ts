import { plural } from '../../core/plural'
import {
  isHeld,
  isTaggedFor,
  type OwnedReservation,
  type ReservationOrder,
} from '../../core/reservation/reservation'
import type { PurchaseMark } from '../../storage/purchases'

export type SentMark = Extract<PurchaseMark, { kind: 'sent' }>

/** Returns reservations that appeared since the purchase was sent. */
export function newIn(owned: readonly OwnedReservation[], { ownedBefore }: SentMark): OwnedReservation[] {
  return owned.filter(({ id }) => !ownedBefore.includes(id))
}

/**
 * The reservation that an order has bought, by its tags. An extension has no tags: it shows in a later end, or in the extension that its
 * reservation reports.
 */
export function ofOrder(
  owned: readonly OwnedReservation[],
  order: ReservationOrder,
  which: 'held' | 'in any phase' = 'held',
): OwnedReservation | undefined {
  const { intent, deployment, quote } = order
  if (quote.extends === undefined)
    return owned.find(
      (one) =>
        isTaggedFor(one, { intent, deployment, kind: quote.kind }) && (which !== 'held' || isHeld(one.phase)),
    )
  return owned.find(
    ({ id, endsAtMs = 0, extension }) =>
      id === quote.extends &&
      (endsAtMs >= quote.endsAtMs! ||
        (extension !== undefined && extension.phase !== 'failed' && extension.endsAtMs >= quote.endsAtMs!)),
  )
}

/** Whether an untagged reservation equals the order. */
export function isLike(one: OwnedReservation, { quote }: ReservationOrder): boolean {
  return (
    one.intent === undefined &&
    one.deployment === undefined &&
    one.kind === quote.kind &&
    one.type === quote.type &&
    one.zone === quote.zone &&
    one.total === quote.count &&
    one.endsAtMs === quote.endsAtMs &&
    isHeld(one.phase)
  )
}

/** Returns why a reservation is certainly not the bought one. */
export function whyNotIt(
  { id, kind, type, zone, intent, deployment, isShared }: OwnedReservation,
  { quote, ...order }: ReservationOrder,
  mark: Pick<SentMark, 'kind' | 'ownedBefore'> | { kind: 'sealed' } | undefined,
): string | undefined {
  if (quote.extends !== undefined)
    return id === quote.extends ? undefined : `The purchase was an extension of ${quote.extends}, not ${id}.`
  if (intent !== undefined && intent !== order.intent) return `${id} was bought for ${intent}.`
  if (deployment !== undefined && deployment !== order.deployment)
    return `${id} was bought by another deployment (${deployment}).`
  if (kind !== quote.kind || type !== quote.type)
    return `${id} is ${kind} capacity of type ${type}, and ${quote.kind} capacity of type ${quote.type} was ordered.`
  if (zone !== quote.zone) return `${id} is in ${zone}, and capacity in ${quote.zone} was ordered.`
  if (isShared) return `${id} belongs to another account.`
  if (mark?.kind === 'sent' && mark.ownedBefore.includes(id))
    return `${id} existed before the purchase was sent.`
  return undefined
}

/** Returns why an answer to the purchase is certainly about another one: a provider may mix answers up. */
export function whyNotAnswer(
  one: OwnedReservation,
  order: ReservationOrder,
  ownedBefore: string[],
): string | undefined {
  const { quote } = order
  const why = whyNotIt(one, order, { kind: 'sent', ownedBefore })
  if (why !== undefined || quote.extends !== undefined || one.total === quote.count) return why
  return `${one.id} has ${plural(one.total, 'machine')}, and ${quote.count} were ordered.`
}
