import type { BlockOffering, CapacityApi } from './api-capacity'
import type { Reservation } from './api-market'

/** An extension of a Capacity Block, for sale until another account buys it. */
export interface ExtensionOffering extends BlockOffering {
  reservation: string
}

/** An extension that was bought. */
export interface BoughtExtension {
  reservation: string
  /** `payment-pending`, `payment-succeeded` or `payment-failed`. */
  state: string
  boughtAtMs: number
  endsAtMs: number
}

/** An on-demand reservation to make. */
export interface CreateRequest {
  token: string
  type: string
  count: number
  zone: string
  endsAtMs?: number
  /** Start and commitment of a reservation that starts in the future. */
  later?: { startsAtMs: number; committedMs: number }
  tags: Record<string, string>
}

export interface CancellationQuote {
  id: string
  /** `pending`, `active` or `expired`. */
  state: string
  terms: { type: string; chargedHours: number; committedCount: number; chargedUntilMs?: number }[]
}

/** Terms for a later start of a reservation that has not begun. */
interface DateChangeQuote {
  id: string
  /** `active` or `expired`. */
  state: string
  startsAtMs?: number
  committedUntilMs?: number
}

/**
 * Buying and holding capacity in one Region, with the credentials of the buyer. Purchases have no token: each call of `buyBlock` and
 * `buyExtension` may buy, and is sent exactly once. With `isTrial` the provider only checks the permission: it answers by the error
 * `DryRunOperation`.
 */
export interface ReservingApi extends Pick<CapacityApi, 'blockTypes' | 'offerings'> {
  extensionOfferings(
    wish: { reservation: string; durationHours: number },
    signal: AbortSignal,
  ): Promise<ExtensionOffering[]>
  /** Returns all extensions that were bought in this Region. */
  extensions(signal: AbortSignal): Promise<BoughtExtension[]>
  buyBlock(
    order: { offering: string; tags: Record<string, string>; isTrial?: boolean },
    signal: AbortSignal,
  ): Promise<Reservation>
  buyExtension(
    order: { offering: string; reservation: string; isTrial?: boolean },
    signal: AbortSignal,
  ): Promise<BoughtExtension>
  create(request: CreateRequest, signal: AbortSignal): Promise<Reservation>
  /** Changes a reservation; missing fields stay as they are. `endsAtMs`: null for no end. `start` accepts the terms of a `dateChangeQuote`. */
  modify(
    id: string,
    change: { count?: number; endsAtMs?: number | null; start?: { startsAtMs: number; quote: string } },
    signal: AbortSignal,
  ): Promise<void>
  dateChangeQuote(
    request: { reservation: string; startsAtMs: number; token: string },
    signal: AbortSignal,
  ): Promise<DateChangeQuote>
  /** Moves free places into a new reservation, which is returned. */
  split(
    request: { source: string; count: number; token: string; tags: Record<string, string> },
    signal: AbortSignal,
  ): Promise<Reservation>
  cancellationQuote(
    request: { reservation: string; token: string },
    signal: AbortSignal,
  ): Promise<CancellationQuote>
  /** `quote`: the terms of `cancellationQuote`, whose charge is accepted. */
  cancel(id: string, how: { quote?: string }, signal: AbortSignal): Promise<void>
}
