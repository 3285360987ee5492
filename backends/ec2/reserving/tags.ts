import { createHash } from 'node:crypto'
import type { OwnedReservation, ReservationOrder } from '../../../core/reservation/reservation'
import type { OwnTags } from '../../../core/own-tags'
import { TAGS } from '../tags'
import { decimalOf, microOf } from './fees'

/** EC2 allows a tag 256 characters: letters, digits, spaces and these. */
const VALUE_MAX = 250
const FORBIDDEN = /[^\p{L}\p{N} +\-=._:/@]/gu

type Buyer = Pick<ReservationOrder, 'intent' | 'deployment' | 'owner'>

/** Returns the tags that show a reservation's purchase from the start. */
export function purchaseTags(order: ReservationOrder, own: OwnTags): Record<string, string> {
  const { send, quote } = order
  return {
    ...own,
    ...tagsOf(order, send),
    ...(quote.kind === 'prepaid' && {
      [TAGS.offering]: quote.id,
      [TAGS.fee]: `${decimalOf(quote.upfrontMicro)} ${quote.currency}`,
    }),
  }
}

/** Returns the tags of a part that is split off. */
export function tagsOfPart(part: Buyer, own: OwnTags): Record<string, string> {
  return { ...own, ...tagsOf(part, 1) }
}

function tagsOf({ intent, deployment, owner }: Buyer, send: number): Record<string, string> {
  return {
    Name: `crucible ${intent}`,
    [TAGS.deployment]: deployment,
    [TAGS.intent]: intent,
    [TAGS.intentSend]: String(send),
    [TAGS.owner]: owner.replace(FORBIDDEN, '_').slice(0, VALUE_MAX),
  }
}

/** Returns the purchase that a reservation's tags describe. */
export function purchaseOf(
  tags: Record<string, string>,
): Pick<OwnedReservation, 'deployment' | 'intent' | 'upfrontMicroUsd'> {
  const deployment = tags[TAGS.deployment]
  const intent = tags[TAGS.intent]
  const [fee = '', currency] = (tags[TAGS.fee] ?? '').split(' ')
  const upfrontMicroUsd = currency === 'USD' ? microOf(fee) : undefined
  return {
    deployment,
    intent,
    upfrontMicroUsd,
  }
}

/** Returns a token from the purpose of a request: the same request has the same one in every process. EC2 allows 64 characters. */
export function tokenOf(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}
