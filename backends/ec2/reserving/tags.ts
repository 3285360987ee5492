import { createHash } from 'node:crypto'
import type { OwnedReservation, ReservationOrder } from '../../../core/reservation'
import { TAGS } from '../tags'
import { decimalOf, microOf } from './fees'

/** EC2 allows a tag 256 characters: letters, digits, spaces and these. */
const VALUE_MAX = 250
const FORBIDDEN = /[^\p{L}\p{N} +\-=._:/@]/gu

/** What a reservation shows of its purchase, from the moment of the purchase. */
export function purchaseTags(order: ReservationOrder): Record<string, string> {
  const { intent, send, deployment, owner, quote } = order
  return {
    Name: `crucible ${intent}`,
    [TAGS.deployment]: deployment,
    [TAGS.intent]: intent,
    [TAGS.intentSend]: String(send),
    [TAGS.owner]: owner.replace(FORBIDDEN, '_').slice(0, VALUE_MAX),
    ...(quote.kind === 'prepaid' && {
      [TAGS.offering]: quote.id,
      [TAGS.fee]: `${decimalOf(quote.upfrontMicro)} ${quote.currency}`,
    }),
  }
}

/** The part of a reservation that its tags tell. */
export function purchaseOf(
  tags: Record<string, string>,
): Pick<OwnedReservation, 'deployment' | 'intent' | 'upfrontMicroUsd'> {
  const deployment = tags[TAGS.deployment]
  const intent = tags[TAGS.intent]
  const [fee = '', currency] = (tags[TAGS.fee] ?? '').split(' ')
  const upfrontMicroUsd = currency === 'USD' ? microOf(fee) : undefined
  return {
    ...(deployment !== undefined && { deployment }),
    ...(intent !== undefined && { intent }),
    ...(upfrontMicroUsd !== undefined && { upfrontMicroUsd }),
  }
}

/** The tags that a part of a reservation keeps, which was split off. */
export function inherited(tags: Record<string, string>): Record<string, string> {
  const kept = ['Name', TAGS.deployment, TAGS.intent, TAGS.intentSend, TAGS.owner]
  return Object.fromEntries(Object.entries(tags).filter(([name]) => kept.includes(name)))
}

/** A token from what a request is for: the same request has the same one in every process. EC2 allows 64 characters. */
export function tokenOf(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}
