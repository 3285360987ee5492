/** Buying and holding capacity: what goes in and out of the `reserveCapacity` workflow. */
import type { Failure } from '../failure'
import type { MicroUsd } from '../money/money'
import type { BackendChoice } from '../offer'
import type { AwaitedJob, Share } from './hold'
import { DAY_MS } from '../time/time'
import type { HoldState } from './activities'
import type { CapacityQuote, CapacityRequest, OwnedReservation, ReservationOrder } from './reservation'

/**
 * Limits for purchases without a person, the duration of the search, and the beneficiaries. Every limit that is set must hold.
 * @experimental
 */
export interface PurchaseRule {
  /** The whole upfront payment. */
  upfrontMaxMicroUsd?: MicroUsd
  /** Limit per machine and hour: on the upfront payment divided by the bought time, or on the hourly price of one machine. */
  machineHourMaxMicroUsd?: MicroUsd
  /** Quotes up to this whole price are bought without asking a person; every other one waits for approval. 0 or missing: all. */
  unaskedMaxMicroUsd?: MicroUsd
  /** End of the search; if missing, it ends when no start in the requested time is possible. */
  searchUntilAtMs?: number
  /** Required for `hourly` and only used there: it is released before its cost, used or not, exceeds this. */
  spendMaxMicroUsd?: MicroUsd
  /**
   * Only for `prepaid`: limit in all on extensions for jobs that would not be done in time, if an extension is cheaper than moving them; if
   * missing, it is never extended.
   */
  extendMaxMicroUsd?: MicroUsd
  /** Jobs for which it is extended; if missing, all jobs in it, which move as their own files say. */
  extendFor?: ExtensionPurpose
  /** Only for `hourly`: release after this time without a used place; if missing, only a warning is shown. */
  idleMaxMs?: number
  /** Jobs that may use idle places, in addition to those of the owner that name the reservation; `SHARE_DEFAULT` if missing. */
  share?: Share
  /** The job for which it is bought, if known. */
  awaited?: AwaitedJob
}

/**
 * Trainings of one run of a schedule, and the backends on which they continue without an extension; none if no backend is named.
 * @experimental
 */
export interface ExtensionPurpose {
  /** Id of its first training, which is a prefix of the others. */
  trainings: string
  backends: readonly BackendChoice[]
  regions?: readonly string[]
}

/** Input of the `reserveCapacity` workflow. */
export interface ReservationInput {
  /** `res-...`; the intent under which everything is bought. */
  reservationId: string
  wish: CapacityRequest
  rule: PurchaseRule
  owner: string
  deployment: string
  submittedAtMs: number
  /** Purpose for people: `training of ranker, 2027 Q1`. */
  purpose?: string
  /** Reservation whose stored webhook gets the events; missing for none. The URL may be a secret, so it is stored elsewhere. */
  webhookOf?: string
  /** Its page in Temporal's Web UI, if the client knew the address. */
  pageUrl?: string
  /** Receives `RESERVATION_SIGNAL` at every change of state. */
  notifyWorkflowId?: string
  /** Pauses between looks for a purchase with an unknown outcome; those of `workflows/reservation/buy-capacity.ts` if missing. */
  lookPausesMs?: readonly number[]
  /** State of the previous run, after a continue-as-new. */
  carry?: ReservationCarry
}

export interface ReservationCarry {
  status: ReservationStatus
  sends: number
  recordSeq: number
  paymentFailures: number
  held?: HoldState
  /** Payments for lost reservations of this request. */
  earlierMicroUsd?: MicroUsd
  /** The offer whose approval was last asked for. */
  askedFor?: CapacityQuote
  lookedAtMs?: number
  /** Reservations that were split off. */
  parts?: string[]
  /** Money of a month that is promised to the reservation. */
  promise?: { jobId: string; month: string; microUsd: MicroUsd }
}

/**
 * `undecided`: a purchase was sent, and it cannot be determined whether it was made; a person decides. `unavailable`: nothing was found in
 * time. `ended`: over, by its end or by a release. Final states: `ended`, `rejected`, `unavailable`, `failed`.
 * @experimental
 */
export type ReservationState =
  | 'searching'
  | 'awaiting-approval'
  | 'buying'
  | 'undecided'
  | 'unpaid'
  | 'scheduled'
  | 'active'
  | 'releasing'
  | 'ended'
  | 'rejected'
  | 'unavailable'
  | 'failed'

export function isReservationFinal(state: ReservationState): boolean {
  return ['ended', 'rejected', 'unavailable', 'failed'].includes(state)
}

/** A quote with the figures by which it was judged. @experimental */
export interface JudgedQuote {
  quote: CapacityQuote
  /** Price per machine and hour of usable time, from the whole upfront payment or the hourly price. */
  machineHourMicro: MicroUsd
  /** Why the rule refuses it; missing if it may be bought. */
  refusal?: string
}

/** A purchase whose outcome a person must decide. @experimental */
export interface UndecidedPurchase {
  order: ReservationOrder
  sentAtMs: number
  /** Attempts to determine the outcome, in sentences. */
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
  wish: CapacityRequest
  rule: PurchaseRule
  state: ReservationState
  /** Message for a person, in one sentence. */
  message: string
  trouble?: string
  /** Why the webhook refused the last event. */
  webhookTrouble?: string
  submittedAtMs: number
  /** The quote that awaits approval, is being bought, or was bought. */
  quote?: JudgedQuote
  /** Others that were found at the same time, the best first. */
  alternatives: JudgedQuote[]
  /** Person and time of its approval or rejection. */
  decision?: { kind: 'approved' | 'rejected'; by: string; atMs: number; reason?: string }
  undecided?: UndecidedPurchase
  /** The reservation as last observed. */
  reservation?: OwnedReservation
  /** Whether the account already owned it, so that nothing was bought. */
  isAdopted?: true
  /** Paid upfront, and for hourly capacity so far. */
  spentMicroUsd: MicroUsd
  /** Part of the hourly cost that paid for unused places. */
  idleMicroUsd: MicroUsd
  /** Since when no place is used; missing while one is used. */
  idleSinceMs?: number
  /** Time of the next search for capacity, or of the next observation of the reservation. */
  nextLookAtMs?: number
  endedAtMs?: number
}

/** Events of a reservation: a person must or may act, or money is at stake. @experimental */
export type ReservationEvent =
  | 'waits-for-approval'
  | 'undecided'
  | 'payment-failed'
  | 'begins'
  | 'idle'
  | 'released'
  | 'changed-by-provider'
  | 'extended'

/** Posted to the webhook, once for what happened once. @experimental */
export interface ReservationNews {
  event: ReservationEvent
  /** Event and remedy for a person. */
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

/** Update that buys the shown quote. It is refused if another quote is shown by then. @experimental */
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

/** Update: a person has found out the outcome of an undecided purchase. @experimental */
export type DecidePurchaseUpdate = { by: string } & (
  | { kind: 'bought'; reservationId: string }
  /** It certainly was not: the search goes on, and something may be bought. */
  | { kind: 'not-bought' }
)

/** Update that extends the reservation, at most at this price. It is answered after the purchase or refusal. @experimental */
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
  /** New end; null for none. */
  endsAtMs?: number | null
  /** Later start of one that has not begun; nothing else changes with it. */
  startsAtMs?: number
  /** Replaces that of the rule; it can only be raised. */
  spendMaxMicroUsd?: MicroUsd
  /** New sharing of idle places; running jobs stay. */
  share?: Share
}

/** Update that moves free places of an hourly reservation into a separate one. @experimental */
export interface SplitReservationUpdate {
  by: string
  count: number
  /** Id of the new reservation. The same id again means the same split. */
  newId: string
}

/** Update: give it back. @experimental */
export interface ReleaseUpdate {
  by: string
  /** The charge that the person accepts. */
  chargeMaxMicroUsd: MicroUsd
}

/**
 * Whether a quote equals the approved one: the same machines in the same place until the same end, at no higher price. The start of a quote
 * that begins as soon as possible moves with each reading, as does the end of an hourly one.
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

/** Names a quote independently of the provider's id, so that a person can confirm it. */
export function quoteKey(quote: CapacityQuote): string {
  const { type, count, zone, startsAtMs, endsAtMs, upfrontMicro, perHourMicro, currency, committedMs } = quote
  const names = [type, count, zone, startsAtMs, endsAtMs ?? '', upfrontMicro, perHourMicro, currency]
  // An older client names a quote without a commitment in this form too.
  return [...names, ...(committedMs === undefined ? [] : [committedMs])].join('/')
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
