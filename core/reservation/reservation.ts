/** Reserved capacity: requests, quotes, purchases, ownership and release. Instants are those of the provider. */
import type { Failure } from '../failure'
import type { MicroUsd } from '../money/money'
import type { BackendName } from '../offer'

/**
 * How a reservation is paid. `prepaid`: for a fixed window, in full at the purchase; it can be extended but not returned. `hourly`: by the
 * hour, used or not, until it is released.
 */
export const RESERVATION_KINDS = ['prepaid', 'hourly'] as const
/** @experimental */
export type ReservationKind = (typeof RESERVATION_KINDS)[number]

/**
 * Phases of a reservation. `unpaid`: bought, but the payment is not confirmed. `assessing`: not yet accepted by the provider. `delayed`:
 * past its start without the capacity. `ending`: released, but still charged. `failed`: the payment failed or the provider refused; nothing
 * is held.
 * @experimental
 */
export type ReservationPhase =
  'unpaid' | 'assessing' | 'scheduled' | 'delayed' | 'active' | 'ending' | 'ended' | 'failed'

/** Whether a phase means that capacity is held now or later. */
export function isHeld(phase: ReservationPhase): boolean {
  return !['ending', 'ended', 'failed'].includes(phase)
}

/** The end that is bought: of an extension, too, unless its payment failed; undefined without an end. */
export function boughtUntilMs({
  endsAtMs,
  extension,
}: Pick<OwnedReservation, 'endsAtMs' | 'extension'>): number | undefined {
  if (endsAtMs === undefined || extension === undefined || extension.phase === 'failed') return endsAtMs
  return Math.max(endsAtMs, extension.endsAtMs)
}

/** Which capacity is wanted, and when. @experimental */
export interface CapacityRequest {
  backend: BackendName
  kind: ReservationKind
  /** The provider's names of machine types, the preferred one first. */
  types: readonly string[]
  /** Machines. */
  count: number
  /** Usable time; required for `prepaid`. An `hourly` reservation without it lasts until it is released. */
  durationMs?: number
  /** Earliest start; as soon as possible if missing. For `hourly`, a future start is a commitment: see `CapacityQuote.committedMs`. */
  earliestStartAtMs?: number
  latestStartAtMs?: number
  /** The end of the capacity, not of its usable time. */
  latestEndAtMs?: number
  /** Regions of the backend; all of its Regions if missing. */
  regions?: readonly string[]
  zones?: readonly string[]
  /** The reservation that is extended instead of making another one; `durationMs` is then the added time. */
  extends?: { id: string; region: string }
}

/** Capacity for sale now, as an answer to a request. Another customer may take it at any time. @experimental */
export interface CapacityQuote {
  /** The provider's id of the quote, which a purchase names; empty if it needs none. */
  id: string
  kind: ReservationKind
  type: string
  count: number
  region: string
  zone: string
  startsAtMs: number
  /** End; missing for a reservation that lasts until it is released. */
  endsAtMs?: number
  /** When the provider begins to end machines in it; missing if it does not end them. */
  usableUntilMs?: number
  /** Paid at once, for all machines and the whole time, in millionths of the currency. 0 for `hourly`. */
  upfrontMicro: MicroUsd
  /** Hourly price of all machines together, used or not, in millionths of the currency. 0 for `prepaid`. */
  perHourMicro: MicroUsd
  /** ISO 4217. */
  currency: string
  /** Minimum charged time, even after an earlier release; missing if it can be released at any time. */
  committedMs?: number
  /** The reservation that it extends. */
  extends?: string
  readAtMs: number
  /** A remark for people. */
  note?: string
  /** Why the provider's answer cannot be right, such as a fee that is no number. Such a quote is never bought. */
  fault?: string
}

/** A reservation as the provider reports it. @experimental */
export interface OwnedReservation {
  id: string
  kind: ReservationKind
  phase: ReservationPhase
  /** State in the provider's own word. */
  state: string
  type: string
  region: string
  zone: string
  /** Number of machines; `free` of them can be launched now. */
  total: number
  free: number
  startsAtMs?: number
  endsAtMs?: number
  usableUntilMs?: number
  createdAtMs?: number
  /** Cost of one unused place per hour; missing if unknown, 0 for `prepaid`. */
  idleMicroUsdPerHour?: MicroUsd
  /** Whether only launches that name the reservation use it. */
  isTargeted: boolean
  /** Whether another account owns it and shares it. */
  isShared: boolean
  /** Why jobs of this deployment can never run in it. */
  unfit?: string
  /** The deployment and the intent that it was bought for, from its tags; missing if another program or a person bought it. */
  deployment?: string
  intent?: string
  /** The fee that its tags name; missing without. */
  upfrontMicroUsd?: MicroUsd
  /** The last extension that was bought. */
  extension?: { phase: 'unpaid' | 'paid' | 'failed'; endsAtMs: number; boughtAtMs?: number }
}

/**
 * Whether the tags of a reservation name this intent and may be true. Anyone in the account can write tags, and a reservation that another
 * account shares was not bought here.
 */
export function isTaggedFor(
  one: OwnedReservation,
  { intent, deployment, kind }: { intent: string; deployment: string; kind: ReservationKind },
): boolean {
  return one.intent === intent && one.deployment === deployment && one.kind === kind && !one.isShared
}

/** One purchase made concrete. It is recorded before it is sent. */
export interface ReservationOrder {
  /** The reservation workflow's id, such as `res-...`; with `send` it names this purchase. */
  intent: string
  /** Counts the purchases of one intent: 1, 2, ... A second one follows only a first one that certainly had no effect. */
  send: number
  deployment: string
  owner: string
  backend: BackendName
  quote: CapacityQuote
  /** Month whose budget pays for it, such as `2026-11`. A history that is reset in a later month counts it once, in this month. */
  month?: string
}

export type ReserveOutcome =
  | { kind: 'reserved'; reservation: OwnedReservation }
  /** Certainly nothing was bought. */
  | { kind: 'refused'; failure: Failure }
  /** Sent without an answer: it may have been bought. */
  | { kind: 'unconfirmed'; failure: Failure }

/** A change of an `hourly` reservation. Every change states the result, so that a repeated one is harmless. */
export type ReservationChange =
  | { kind: 'count'; count: number }
  /** Null for no end. */
  | { kind: 'end'; endsAtMs: number | null }
  /** Postpones the start of a reservation that has not begun, with its commitment; refused if the provider's terms go beyond that. */
  | { kind: 'start'; startsAtMs: number }
  /** Moves this many free places into a new reservation, for another intent: one split for each intent, however often it is sent. */
  | ({ kind: 'split'; count: number } & Pick<ReservationOrder, 'intent' | 'deployment' | 'owner'>)

/** Location of a reservation. */
export interface ReservationRef {
  id: string
  region: string
}

/** Terms for the release of an `hourly` reservation. */
export interface ReleaseTerms {
  /** Charge after the release; 0 if none. */
  chargeMicroUsd: MicroUsd
  /** The end of that charge. */
  chargedUntilMs?: number
  /** Names the terms for `release`; missing if they need no name. */
  quoteId?: string
}

/** Explains how to answer a reservation that asks for approval of a purchase. */
export function howToApprovePurchase(id: string): string {
  return `Buy it: crucible reservations approve ${id}. Do not: crucible reservations reject ${id}.`
}
