/** Buying and holding capacity: what goes in and out of the `reserveCapacity` workflow. */
import type { Failure } from '../failure'
import type { MicroUsd } from '../money/money'
import type { BackendChoice } from '../offer'
import type { AwaitedJob, Share } from './hold'
import { DAY_MS } from '../time/time'
import type { HeldSoFar } from './activities'
import type { CapacityQuote, CapacityWish, OwnedReservation, ReservationOrder } from './reservation'

/** What may be bought without a person, for how long it is searched, and for whom it is. Every limit that is set must hold. @experimental */
export interface PurchaseRule {
  /** The whole upfront payment. */
  upfrontMaxMicroUsd?: MicroUsd
  /** Per machine and hour: of the upfront payment divided by the time it buys, or the hourly price of one machine. */
  machineHourMaxMicroUsd?: MicroUsd
  /** Quotes up to this whole price are bought without asking a person; every other one waits for approval. 0 or missing: all. */
  unaskedMaxMicroUsd?: MicroUsd
  /** The search ends then; missing: when no start in the wish's time is possible any more. */
  searchUntilAtMs?: number
  /** `hourly` only, and required there: it is released before it costs more than this, used or not. */
  spendMaxMicroUsd?: MicroUsd
  /**
   * `prepaid` only: it is extended for jobs that would not be done in it, where that is cheaper than moving them, for this much in all;
   * missing: never.
   */
  extendMaxMicroUsd?: MicroUsd
  /** The jobs that it is extended for; missing: all that run in it, and they move where their own files say. */
  extendFor?: ExtensionPurpose
  /** `hourly` only: released once none of its places was used for this long; missing: never, but a warning is shown. */
  idleMaxMs?: number
  /** Who may use idle places besides the owner's jobs that name the reservation; `SHARE_DEFAULT` if missing. */
  share?: Share
  /** The job that it is bought for, if that is known. */
  awaited?: AwaitedJob
}

/** The trainings of one run of a schedule, and where they continue without an extension: nowhere, if no backend is named. @experimental */
export interface ExtensionPurpose {
  /** The id of its first training; those of the others begin with it. */
  trainings: string
  backends: readonly BackendChoice[]
  regions?: readonly string[]
}

/** Input of the `reserveCapacity` workflow. */
export interface ReservationInput {
  /** `res-...`; the intent under which everything is bought. */
  reservationId: string
  wish: CapacityWish
  rule: PurchaseRule
  owner: string
  deployment: string
  submittedAtMs: number
  /** For people: `training of ranker, 2027 Q1`. */
  purpose?: string
  /** The reservation whose stored webhook gets the news; missing for none. Its URL may be a secret, and is not here. */
  webhookOf?: string
  /** Its page in Temporal's Web UI, if the client knew it. */
  pageUrl?: string
  /** Receives `RESERVATION_SIGNAL` at every change of state. */
  notifyWorkflowId?: string
  /** Pauses between looks for a purchase with an unknown outcome; those of `workflows/reservation/buy-capacity.ts` if missing. */
  lookPausesMs?: readonly number[]
  /** State of the run before, after a continue-as-new. */
  carry?: ReservationCarry
}

export interface ReservationCarry {
  status: ReservationStatus
  sends: number
  recordSeq: number
  paymentFailures: number
  held?: HeldSoFar
  /** Paid for reservations of this wish that were lost. */
  earlierMicroUsd?: MicroUsd
  /** The offer that the last news asked to approve. */
  askedFor?: CapacityQuote
  lookedAtMs?: number
  /** Reservations that were split off. */
  parts?: string[]
  /** Money of a month that is promised to it. */
  promise?: { jobId: string; month: string; microUsd: MicroUsd }
}

/**
 * `undecided`: a purchase was sent, and it cannot be determined whether it was made; a person decides. `unavailable`: nothing was found in
 * time. `ended`: over, by its end or by a release. Final states: `ended`, `rejected`, `unavailable`, `failed`.
 */
export const RESERVATION_STATES = [
  'searching',
  'awaiting-approval',
  'buying',
  'undecided',
  'unpaid',
  'scheduled',
  'active',
  'releasing',
  'ended',
  'rejected',
  'unavailable',
  'failed',
] as const
/** @experimental */
export type ReservationState = (typeof RESERVATION_STATES)[number]

export function isReservationFinal(state: ReservationState): boolean {
  return ['ended', 'rejected', 'unavailable', 'failed'].includes(state)
}

/** A quote with the figures by which it was judged. @experimental */
export interface JudgedQuote {
  quote: CapacityQuote
  /** Of the whole upfront payment, per machine and hour of usable time; or the hourly price of a machine. */
  machineHourMicro: MicroUsd
  /** Why the rule refuses it; missing if it may be bought. */
  refusal?: string
}

/** A purchase whose outcome a person must decide. @experimental */
export interface UndecidedPurchase {
  order: ReservationOrder
  sentAtMs: number
  /** What was tried to determine the outcome, in sentences. */
  account: string[]
  /** Reservations that may be it. */
  candidates: OwnedReservation[]
  lookedAtMs?: number
}

/** Answer of the status query. @experimental */
export interface ReservationStatus {
  id: string
  runId?: string
  owner: string
  purpose?: string
  wish: CapacityWish
  rule: PurchaseRule
  state: ReservationState
  /** One sentence for a person. */
  message: string
  trouble?: string
  /** Why the webhook did not take the last news. */
  webhookTrouble?: string
  submittedAtMs: number
  /** The quote that is to be approved, being bought, or bought. */
  quote?: JudgedQuote
  /** Others that were found at the same time, the best first. */
  alternatives: JudgedQuote[]
  /** Who approved or rejected it, and when. */
  decision?: { kind: 'approved' | 'rejected'; by: string; atMs: number; reason?: string }
  undecided?: UndecidedPurchase
  /** What is held, as last seen. */
  reservation?: OwnedReservation
  /** It was owned already: nothing was bought. */
  isAdopted?: true
  /** Paid upfront, and for hourly capacity so far. */
  spentMicroUsd: MicroUsd
  /** Of the hourly part, what was paid for unused places. */
  idleMicroUsd: MicroUsd
  /** Since when no place of it is used; missing while one is. */
  idleSinceMs?: number
  /** When it looks for capacity, or at its reservation, again. */
  nextLookAtMs?: number
  endedAtMs?: number
}

/** What is news about a reservation: a person must or may do something, or money is at stake. @experimental */
export const RESERVATION_EVENTS = [
  'waits-for-approval',
  'undecided',
  'payment-failed',
  'begins',
  'idle',
  'released',
  'changed-by-provider',
  'extended',
] as const
/** @experimental */
export type ReservationEvent = (typeof RESERVATION_EVENTS)[number]

/** Posted to the webhook, once for what happened once. @experimental */
export interface ReservationNews {
  event: ReservationEvent
  /** What happened, and what to do. */
  text: string
}

/** Result of the `reserveCapacity` workflow. */
export type ReservationResult = Pick<
  ReservationStatus,
  'id' | 'state' | 'message' | 'reservation' | 'spentMicroUsd' | 'idleMicroUsd'
>

/** Signal to the workflow that waits for the capacity. */
export interface ReservationNotice extends Pick<
  ReservationStatus,
  'id' | 'state' | 'message' | 'quote' | 'reservation' | 'spentMicroUsd'
> {
  failure?: Failure
}

/** Update: buy the quote that is shown. It is refused if another quote is shown by then. @experimental */
export interface ApproveUpdate {
  by: string
  /** `quoteKey` of the quote that the person saw. */
  quote: string
}

/** Update: do not buy it, and stop searching. @experimental */
export interface RejectUpdate {
  by: string
  reason?: string
}

/** Update: a person has found out what became of an undecided purchase. @experimental */
export type DecidePurchaseUpdate = { by: string } & (
  | { kind: 'bought'; reservationId: string }
  /** It certainly was not: the search goes on, and something may be bought. */
  | { kind: 'not-bought' }
)

/** Update: prolong it, at most at this price. Answered when it is bought or refused. @experimental */
export interface ExtendReservationUpdate {
  by: string
  /** Either the time that is added, or the new end: that states the result, so that a repeated request buys nothing more. */
  durationMs?: number
  endsAtMs?: number
  upfrontMaxMicroUsd: MicroUsd
  /** The end that the asker saw. If it ends later by now, nothing is bought: the request was sent a second time. */
  seenEndsAtMs?: number
}

/** Update: change the number of machines, the end or the limit of an hourly one, or the share of any. At least one is given. @experimental */
export interface ResizeReservationUpdate {
  by: string
  /** Machines in total, so that a repeated request changes nothing more. */
  count?: number
  /** Null for no end. */
  endsAtMs?: number | null
  /** Replaces that of the rule; it can only be raised. */
  spendMaxMicroUsd?: MicroUsd
  /** Who may use idle places from now on; jobs that run in them stay. */
  share?: Share
}

/** Update: move free places of an hourly one into a reservation of its own. @experimental */
export interface SplitReservationUpdate {
  by: string
  count: number
  /** Of the new one. The same id again is the same split. */
  newId: string
}

/** Update: give it back. @experimental */
export interface ReleaseUpdate {
  by: string
  /** The charge that the person accepts. */
  chargeMaxMicroUsd: MicroUsd
}

/**
 * Whether a quote is what a person has approved: the same machines in the same place until the same end, at no higher price. The start of one
 * that begins as soon as possible moves with every look, and so does the end of an hourly one.
 */
export function isAsApproved(quote: CapacityQuote, approved: CapacityQuote): boolean {
  const isNear = (a = 0, b = 0): boolean => Math.abs(a - b) <= DAY_MS
  return (
    quote.kind === approved.kind &&
    quote.type === approved.type &&
    quote.count === approved.count &&
    quote.zone === approved.zone &&
    quote.currency === approved.currency &&
    quote.upfrontMicro <= approved.upfrontMicro &&
    quote.perHourMicro <= approved.perHourMicro &&
    (quote.committedMs ?? 0) <= (approved.committedMs ?? 0) &&
    isNear(quote.startsAtMs, approved.startsAtMs) &&
    (quote.kind === 'hourly'
      ? isNear(quote.endsAtMs, approved.endsAtMs)
      : quote.endsAtMs === approved.endsAtMs)
  )
}

/** Names a quote, apart from the provider's name for it: what a person says to have seen. */
export function quoteKey(quote: CapacityQuote): string {
  const { type, count, zone, startsAtMs, endsAtMs, upfrontMicro, perHourMicro, currency } = quote
  return [type, count, zone, startsAtMs, endsAtMs ?? '', upfrontMicro, perHourMicro, currency].join('/')
}

/** The part of a reservation's remaining limit that goes with the machines that are split off. */
export function shareOfLimit(
  { spendMaxMicroUsd }: PurchaseRule,
  { total, count, spentMicroUsd }: { total: number; count: number; spentMicroUsd: MicroUsd },
): MicroUsd | undefined {
  if (spendMaxMicroUsd === undefined) return undefined
  return Math.floor((Math.max(0, spendMaxMicroUsd - spentMicroUsd) * count) / total)
}

/** Ids of reservations, and of the intents under which they are bought. */
export const RESERVATION_ID_PATTERN = /^res-[0-9a-z-]{1,40}$/

export const RESERVATION_QUERY = 'reservation'
export const APPROVE_UPDATE = 'approve'
export const REJECT_UPDATE = 'reject'
export const DECIDE_PURCHASE_UPDATE = 'decidePurchase'
export const EXTEND_RESERVATION_UPDATE = 'extendReservation'
export const RELEASE_UPDATE = 'release'
export const RESIZE_RESERVATION_UPDATE = 'resizeReservation'
export const SPLIT_RESERVATION_UPDATE = 'splitReservation'
/** Signal to the workflow of `notifyWorkflowId`: a `ReservationNotice`. */
export const RESERVATION_SIGNAL = 'reservation'
