import { isInstant, quoteFault } from '../core/figures'
import type { Failure } from '../core/failure'
import type { ReservationOrder } from '../core/reservation/reservation'
import { Gaps, isRecord, parserOf, putDocumentIfAbsent, putOnce, readDocument, type Parse } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** `purchases/<send>.json`: put if absent before the request is sent, and never changed. A seal in its place prevents the send. */
export type PurchaseMark =
  | {
      kind: 'sent'
      order: ReservationOrder
      /** Time by the clock of the sending worker. */
      atMs: number
      /** Reservations that the account could see just before the purchase. */
      ownedBefore: string[]
      /** For an extension: the time of the previous one, null without any. Missing for other purchases. */
      extendedBeforeAtMs?: number | null
      /** For a split: the reservation that loses the places. */
      splitOff?: string
    }
  | { kind: 'sealed'; atMs: number }

/** The certain effect of a purchase. */
export type PurchaseEffect =
  { kind: 'bought'; reservationId: string } | { kind: 'no-effect'; failure: Failure }

/** `purchases/<send>-effect.json`: put once, as soon as the effect is certain. `by` names the person who decided it. */
export type RecordedEffect = PurchaseEffect & { atMs: number; by?: string }

/**
 * The sends of one purchase. A provider may sell the same offering twice, so each send is marked in the store first. The mark outlives the
 * workflow's history, so a server that is restored from an older backup finds it and does not buy again
 * (docs/decisions/0054-a-purchase-is-sent-once.md).
 */
export class Purchases {
  constructor(
    private readonly store: ObjectStore,
    private readonly now: () => number,
  ) {}

  /** True for the only caller that may send this order. */
  async mark(
    order: ReservationOrder,
    before: Pick<Extract<PurchaseMark, { kind: 'sent' }>, 'ownedBefore' | 'extendedBeforeAtMs' | 'splitOff'>,
  ): Promise<{ atMs: number } | undefined> {
    const mark: PurchaseMark = { kind: 'sent', order, atMs: this.now(), ...before }
    return (await this.put(order, mark)) ? { atMs: mark.atMs } : undefined
  }

  /** Prevents the send, or returns the mark of a send that has begun. */
  async seal(order: Pick<ReservationOrder, 'intent' | 'send'>): Promise<PurchaseMark> {
    const seal: PurchaseMark = { kind: 'sealed', atMs: this.now() }
    return putOnce(this.store, layout.purchase(order.intent, order.send), seal, parseMark(order.intent))
  }

  async read({ intent, send }: Pick<ReservationOrder, 'intent' | 'send'>): Promise<PurchaseMark | undefined> {
    return readDocument(this.store, layout.purchase(intent, send), parseMark(intent))
  }

  /** Returns the final effect, which is an earlier one if it exists. */
  async conclude(
    { intent, send }: Pick<ReservationOrder, 'intent' | 'send'>,
    effect: PurchaseEffect & { by?: string },
  ): Promise<RecordedEffect> {
    const recorded: RecordedEffect = { ...effect, atMs: this.now() }
    return putOnce(this.store, layout.purchaseEffect(intent, send), recorded, parseEffect)
  }

  async effect({
    intent,
    send,
  }: Pick<ReservationOrder, 'intent' | 'send'>): Promise<RecordedEffect | undefined> {
    return readDocument(this.store, layout.purchaseEffect(intent, send), parseEffect)
  }

  private put(
    { intent, send }: Pick<ReservationOrder, 'intent' | 'send'>,
    mark: PurchaseMark,
  ): Promise<boolean> {
    return putDocumentIfAbsent(this.store, layout.purchase(intent, send), mark)
  }
}

const parseMark = (intent: string): Parse<PurchaseMark> =>
  parserOf<PurchaseMark>('the mark of a purchase', (mark) => {
    if (!isInstant(mark.atMs)) return false
    if (mark.kind === 'sealed') return true
    const { order, ownedBefore } = mark as Partial<Extract<PurchaseMark, { kind: 'sent' }>>
    return (
      mark.kind === 'sent' &&
      order?.intent === intent &&
      isRecord(order.quote) &&
      quoteFault(order.quote) === undefined &&
      Array.isArray(ownedBefore)
    )
  })

const parseEffect = parserOf<RecordedEffect>(
  'the effect of a purchase',
  (effect) =>
    (effect.kind === 'bought' && typeof effect.reservationId === 'string') ||
    (effect.kind === 'no-effect' && isRecord(effect.failure)),
)

/** Purchases that were sent and whose effect is not certain. */
interface OpenPurchases {
  sent: Extract<PurchaseMark, { kind: 'sent' }>[]
  /** Requests with a mark that cannot be read: each may have bought anything. */
  unreadable: string[]
}

export async function openPurchases(store: ObjectStore): Promise<OpenPurchases> {
  const marks = new Set<string>()
  const effects: string[] = []
  for await (const { key } of store.list(layout.reservations())) {
    const [, mark, effect] = /^(.+\/purchases\/\d+)(-effect)?\.json$/.exec(key) ?? []
    if (effect !== undefined) effects.push(mark!)
    else if (mark !== undefined) marks.add(mark)
  }
  for (const key of effects) marks.delete(key)
  const intentOf = (mark: string): string => mark.slice(layout.reservations().length).split('/')[0]!
  const gaps = new Gaps()
  const open = await gaps.readEach([...marks], (mark) =>
    readDocument(store, `${mark}.json`, parseMark(intentOf(mark))),
  )
  return { sent: open.filter((mark) => mark.kind === 'sent'), unreadable: gaps.names.map(intentOf) }
}
