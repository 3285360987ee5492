/** The activities of reservations by name. `activities/reserving/` implements them, on `backendQueue(name)` unless said otherwise. */
import type { Failure } from '../failure'
import type { MicroUsd } from '../money/money'
import type { Share } from './hold'
import type { LeftTime } from '../job/remaining'
import type {
  CapacityQuote,
  CapacityWish,
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

/** What all activities of one reservation receive. */
export interface ReservationTask {
  reservationId: string
  deployment: string
  owner: string
  /** Place of its entry in the reservation's record. */
  recordSeq: number
}

export interface LookForCapacityInput extends ReservationTask {
  wish: CapacityWish
  rule: PurchaseRule
  /** The quote that a person has approved. */
  approved?: CapacityQuote
  /** Paid for capacity of this wish that was lost: it counts as spent without asking. */
  earlierMicroUsd?: MicroUsd
  /** Purchases that the workflow knows of. */
  sends: number
  /** Then a wish that the provider never sells ends the search; later it may only be sold out. */
  isFirst: boolean
}

/** What follows from one look at what is owned and what is for sale. */
export type CapacityVerdict = {
  /** The account that pays. */
  account: string
  /** One sentence for a person. */
  message: string
  /** What was found and not chosen, the best first. */
  alternatives: JudgedQuote[]
  /** Parts of the provider that did not answer, with the reason. */
  unseen: string[]
  /** Purchases of this wish that are over: those that the workflow knows, and those of an earlier history. */
  sends: number
} &
  /** `send`: the purchase of this wish that made it, and the month that pays for it; missing for what is owned otherwise. */
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

/** One look for a purchase with an unknown outcome. */
export type FindPurchaseOutcome =
  | { kind: 'found'; reservation: OwnedReservation }
  /** Certain: it was never sent and never will be, or its refusal is on record. */
  | { kind: 'no-effect'; failure: Failure }
  /** Nothing shows it yet. `candidates` appeared since it was sent and carry no tags. */
  | { kind: 'absent'; sentAtMs: number; saw: string; candidates: OwnedReservation[] }

export interface DecidePurchaseTask extends ReservationTask {
  order: ReservationOrder
  by: string
  /** Null: it was certainly not bought. */
  ownedId: string | null
}

export interface HoldInput extends ReservationTask {
  ref: ReservationRef
  wish: CapacityWish
  rule: PurchaseRule
  held: HeldSoFar
  /** Time since `held` was determined; missing for the first look. */
  elapsedMs?: number
}

/** What is known about a held reservation from one look to the next. */
export interface HeldSoFar {
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
  /** At the last look: the time since it was given back, during which lists may show it as held. Negative if that was after the look. */
  releasedForMs?: number
  /** It was said that it begins soon. */
  isBeginTold?: true
}

export interface HoldOutcome {
  held: HeldSoFar
  message: string
  /** For people, about money that is wasted, or an end that comes early. */
  warning?: string
  /** What a person should hear now, and was not told by an earlier look. */
  news?: ReservationNews[]
  /** It is time to ask whether its jobs will be done before its end. */
  isEndNear?: true
  /** `release`: the rule wants it returned now. `over`: nothing is held any more. */
  next: 'hold' | 'release' | 'over'
  lookInMs: number
}

/** A job of this deployment that runs in a reservation. */
export interface JobInReservation {
  jobId: string
  attempt: number
  /** Until it is done; null if unknown. */
  left: LeftTime | null
  /** What the time left refers to. */
  accelerator?: string
}

/** What an extension is decided on: the jobs, and if one of them will not be done in time, the extensions for sale. */
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

/** A change of what is held. It states the result, and may be repeated. */
export interface ChangeReservationTask extends ReservationTask {
  ref: ReservationRef
  rule: PurchaseRule
  /** What it has cost so far. */
  spentMicroUsd: MicroUsd
  count?: number
  /** Null for no end. */
  endsAtMs?: number | null
}

export interface SplitReservationTask extends ReservationTask {
  ref: ReservationRef
  count: number
  /** The new reservation as it begins, but for what is held. It has its own intent, budget and record. */
  part: ReservationInput
}

/** What an account holds and, for a wish, what it could buy. Nothing is recorded. */
export interface CapacitySurvey {
  account: string
  owned: OwnedReservation[]
  /** The wish that each owned reservation serves, by its id. */
  serves: Record<string, string>
  /** For the wish, the best first. */
  quotes: JudgedQuote[]
  unseen: string[]
}

/** Activities of a backend's worker. */
export interface ReservingActivities {
  /** For a command, outside of any workflow. */
  surveyCapacity(input: { wish?: CapacityWish; rule?: PurchaseRule }): Promise<CapacitySurvey>
  /** Reads what is owned and what is for sale, judges it by the rule, and records both. Buys nothing. */
  lookForCapacity(input: LookForCapacityInput): Promise<CapacityVerdict>
  /** Marks the purchase in the store, then sends it, once. A repeated call does not send. Never retried. */
  buyCapacity(input: BuyCapacityTask): Promise<ReserveOutcome>
  /** Determines what became of a purchase, and prevents one that was not sent. Sends nothing. */
  findPurchase(input: BuyCapacityTask): Promise<FindPurchaseOutcome>
  /** Records what a person found out about a purchase. Throws `invalid` if what is owned contradicts it. */
  decidePurchase(input: DecidePurchaseTask): Promise<FindPurchaseOutcome>
  /** Looks at what is held, and says what to do about it. */
  holdReservation(input: HoldInput): Promise<HoldOutcome>
  releaseReservation(input: ReleaseTask): Promise<void>
  /** Looks whether the jobs in it will be done in time, and what an extension costs otherwise. */
  lookForExtension(input: LookForExtensionTask): Promise<ExtensionLook>
  /** Throws `invalid` for a change that the rule or the machines in it do not allow. Returns it afterwards. */
  changeReservation(input: ChangeReservationTask): Promise<OwnedReservation>
  /** Splits free places off, once for the intent of the part, and puts its request on record. Returns what the part holds. */
  splitReservation(input: SplitReservationTask): Promise<OwnedReservation>
}

export interface TellTask {
  /** The reservation whose webhook it is. */
  webhookOf: string
  status: ReservationStatus
  news: ReservationNews
  pageUrl?: string
}

/** Activities of the orchestrator's worker, on `ORCHESTRATOR_QUEUE`. */
export interface ReservationDocuments {
  /** Reports money of a month as spent; the rest of what was promised is free again. Idempotent. */
  settleBudget(input: { month: string } & SettleRequest): Promise<void>
  /** Settles money that an earlier history has promised for purchases, by what their marks say. Idempotent. */
  releaseBudget(input: { reservationId: string; sends: number[] }): Promise<void>
  /** Compares an extension with moving its jobs, by the rule. On record with its inputs. Buys nothing. */
  decideExtension(input: DecideExtensionTask): Promise<ExtensionDecision>
  /** Posts news to the stored webhook. Throws if it is not taken. */
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
  /** One sentence for a person. */
  summary: string
  /** Inputs and outcome. */
  data: unknown
}
