/** The activities of reservations by name. `activities/reserving/` implements them, on `backendQueue(name)` unless said otherwise. */
import type { Failure } from '../failure'
import type { MicroUsd } from '../money/money'
import type { Share } from './hold'
import type { LeftTime } from '../job/remaining'
import type {
  CapacityQuote,
  CapacityRequest,
  OwnedReservation,
  ReservationOrder,
  ReservationRef,
  ReserveOutcome,
} from './reservation'
import type {
  JudgedQuote,
  PurchaseRule,
  ReservationInput,
  ReservationNews,
  ReservationState,
  ReservationStatus,
} from './reserving'
import type { SettleRequest } from '../money/treasury'

/** Input of all activities of one reservation. */
export interface ReservationTask {
  reservationId: string
  deployment: string
  owner: string
  /** Place of its entry in the reservation's record. */
  recordSeq: number
}

export interface LookForCapacityInput extends ReservationTask {
  wish: CapacityRequest
  rule: PurchaseRule
  /** The quote that a person has approved. */
  approved?: CapacityQuote
  /** Payments for lost capacity of this request, which count as spent without asking. */
  earlierMicroUsd?: MicroUsd
  /** Purchases that the workflow knows of. */
  sends: number
  /** Whether this is the first search. A request that the provider never sells then ends the search; later it may only be sold out. */
  isFirst: boolean
}

/** Verdict after one reading of owned capacity and quotes. */
export type CapacityVerdict = {
  /** The account that pays. */
  account: string
  /** Message for a person, in one sentence. */
  message: string
  /** Quotes that were not chosen, the best first. */
  alternatives: JudgedQuote[]
  /** Parts of the provider that did not answer, with the reason. */
  unseen: string[]
  /** Number of finished purchases of this request, including those of an earlier history. */
  sends: number
} &
  /** `send`: the purchase of this request that made the reservation, and the month that pays for it; missing for other owned capacity. */
  (
    | { kind: 'adopt'; reservation: OwnedReservation; send?: number; month?: string }
    /** A purchase of this wish was sent that the workflow does not know of, because its history was set back. */
    | { kind: 'resume'; order: ReservationOrder }
    /** `ask`: the rule allows it, and a person must approve it. */
    | { kind: 'buy' | 'ask'; judged: JudgedQuote; lookInMs: number }
    | { kind: 'wait'; lookInMs: number }
    /** `isInvalid`: it can never be had. */
    | { kind: 'give-up'; isInvalid?: true }
  )

export interface BuyCapacityTask extends ReservationTask {
  order: ReservationOrder
  rule: PurchaseRule
}

/** Result of one search for a purchase with an unknown outcome. */
export type FindPurchaseOutcome =
  | { kind: 'found'; reservation: OwnedReservation }
  /** Certain: it was never sent and never will be, or its refusal is on record. */
  | { kind: 'no-effect'; failure: Failure }
  /** Nothing shows it yet. `candidates` appeared since it was sent and carry no tags. */
  | { kind: 'absent'; sentAtMs: number; saw: string; candidates: OwnedReservation[] }

export interface DecidePurchaseTask extends ReservationTask {
  order: ReservationOrder
  by: string
  /** Id of the reservation; null if it was certainly not bought. */
  ownedId: string | null
}

export interface HoldInput extends ReservationTask {
  ref: ReservationRef
  wish: CapacityRequest
  rule: PurchaseRule
  held: HoldState
  /** Time since `held` was determined; missing for the first look. */
  elapsedMs?: number
}

/** Facts about a held reservation that pass from one observation to the next. */
export interface HoldState {
  state: ReservationState
  reservation?: OwnedReservation
  upfrontMicroUsd: MicroUsd
  /** An extension whose payment is not confirmed; its fee is part of `upfrontMicroUsd`. */
  extending?: { microUsd: MicroUsd; endsAtMs: number; boughtAtMs?: number }
  idleMicroUsd: MicroUsd
  /** Consecutive time without a used place. */
  idleMs: number
  /** Consecutive looks that did not find it. */
  misses: number
  /** Paid for extensions; part of `upfrontMicroUsd`. */
  extendedMicroUsd?: MicroUsd
  /** The end of the last extension, until a list shows it. */
  extendedToMs?: number
  /**
   * Time from the release to the last observation, during which lists may show the reservation as held. Negative if the release came later.
   */
  releasedForMs?: number
  /** Whether its coming start was reported. */
  isBeginTold?: true
}

export interface HoldOutcome {
  held: HoldState
  message: string
  /** Warning for people about wasted money or an early end. */
  warning?: string
  /** Events that a person should hear of now and that were not reported before. */
  news?: ReservationNews[]
  /** Whether it is time to check that its jobs will be done before its end. */
  isEndNear?: true
  /** Next step. `release`: the rule requires its release now. `over`: nothing is held. */
  next: 'hold' | 'release' | 'over'
  lookInMs: number
}

/** A job of this deployment that runs in a reservation. */
export interface JobInReservation {
  jobId: string
  attempt: number
  /** Time until the job is done; null if unknown. */
  left: LeftTime | null
  /** Accelerator that the remaining time refers to. */
  accelerator?: string
}

/** Inputs of the decision on an extension: the jobs, and the extensions for sale if a job will not be done in time. */
export interface ExtensionLook {
  jobs: JobInReservation[]
  quotes: CapacityQuote[]
  nowMs: number
}

export interface LookForExtensionTask extends ReservationTask {
  reservation: OwnedReservation
  rule: PurchaseRule
}

export interface DecideExtensionTask extends LookForExtensionTask {
  extendedMicroUsd: MicroUsd
  look: ExtensionLook
}

/** The cheapest place for the rest of a job after the end of its reservation; null without one. */
export type Elsewhere = { offer: string; costMicroUsd: MicroUsd } | null

export type ExtensionDecision =
  | { kind: 'extend'; durationMs: number; upfrontMaxMicroUsd: MicroUsd; message: string }
  /** `fits`: everything is done in time, as far as is known. `move`: jobs save before the end and continue elsewhere. */
  | { kind: 'fits' | 'move'; message: string }

export interface ReleaseTask extends ReservationTask {
  ref: ReservationRef
  reason: string
  /** The charge that is accepted; more is a refusal. */
  chargeMaxMicroUsd: MicroUsd
}

/** Change of a reservation. It states the result, so it may be repeated. */
export interface ChangeReservationTask extends ReservationTask {
  ref: ReservationRef
  rule: PurchaseRule
  /** Cost so far. */
  spentMicroUsd: MicroUsd
  count?: number
  /** New end; null for none. */
  endsAtMs?: number | null
  startsAtMs?: number
}

export interface SplitReservationTask extends ReservationTask {
  ref: ReservationRef
  count: number
  /** Input of the new reservation, without its held machines. It has a separate intent, budget and record. */
  part: ReservationInput
}

/** Reservations of an account and, for a request, the quotes. Nothing is recorded. */
export interface CapacitySurvey {
  account: string
  owned: OwnedReservation[]
  /** Quotes for the request, the best first. */
  quotes: JudgedQuote[]
  unseen: string[]
}

/** Activities of a backend's worker. */
export interface ReservingActivities {
  /** Surveys capacity for a command, outside any workflow. */
  surveyCapacity(input: { wish?: CapacityRequest; rule?: PurchaseRule }): Promise<CapacitySurvey>
  /** Reads owned capacity and quotes, judges them by the rule, and records both. Buys nothing. */
  lookForCapacity(input: LookForCapacityInput): Promise<CapacityVerdict>
  /** Marks the purchase in the store, then sends it, once. A repeated call does not send. Never retried. */
  buyCapacity(input: BuyCapacityTask): Promise<ReserveOutcome>
  /** Determines the outcome of a purchase, and prevents one that was not sent. Sends nothing. */
  findPurchase(input: BuyCapacityTask): Promise<FindPurchaseOutcome>
  /** Records a person's findings about a purchase. Throws `invalid` if owned reservations contradict them. */
  decidePurchase(input: DecidePurchaseTask): Promise<FindPurchaseOutcome>
  /** Observes a held reservation and returns the next step. */
  holdReservation(input: HoldInput): Promise<HoldOutcome>
  releaseReservation(input: ReleaseTask): Promise<void>
  /** Checks whether the jobs in it will be done in time, and reads the price of an extension otherwise. */
  lookForExtension(input: LookForExtensionTask): Promise<ExtensionLook>
  /** Changes a reservation and returns the result. Throws `invalid` for a change that the rule or its machines do not allow. */
  changeReservation(input: ChangeReservationTask): Promise<OwnedReservation>
  /** Splits free places off, once for the intent of the part, and records its request. Returns the part's holdings. */
  splitReservation(input: SplitReservationTask): Promise<OwnedReservation>
}

interface TellTask {
  /** Reservation whose webhook is used. */
  webhookOf: string
  status: ReservationStatus
  news: ReservationNews
  pageUrl?: string
}

/** Activities of the orchestrator's worker, on `ORCHESTRATOR_QUEUE`. */
export interface ReservationDocuments {
  /** Records a month's money as spent and releases the rest of the promise. Idempotent. */
  settleBudget(input: { month: string } & SettleRequest): Promise<void>
  /** Settles money that an earlier history has promised for purchases, by what their marks say. Idempotent. */
  releaseBudget(input: { reservationId: string; sends: number[] }): Promise<void>
  /** Compares an extension with moving its jobs, by the rule. On record with its inputs. Buys nothing. */
  decideExtension(input: DecideExtensionTask): Promise<ExtensionDecision>
  /** Posts an event to the stored webhook. Throws if the webhook refuses it. */
  tellReservation(input: ReservationTask & TellTask): Promise<void>
  /** Records who may use idle places from now on. Idempotent. */
  shareReservation(input: ReservationTask & { share: Share }): Promise<void>
  /** Completes the record, and settles money that an earlier history has promised. */
  endReservation(input: ReservationTask & { status: ReservationStatus; sends: number }): Promise<void>
}

/** `reservations/<id>/record/<seq>.json`. */
export interface ReservationEntry {
  seq: number
  /** Wall clock of the process that put it. */
  atMs: number
  kind:
    | 'requested'
    | 'looked'
    | 'sent'
    | 'searched-for-purchase'
    | 'decided'
    | 'held'
    | 'judged-extension'
    | 'changed'
    | 'released'
    | 'over'
  /** Summary for a person, in one sentence. */
  summary: string
  /** Inputs and outcome. */
  data: unknown
}
