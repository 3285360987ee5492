import type { FindOutcome, LaunchOutcome } from '../core/activities'
import type { Capabilities } from '../core/capabilities'
import type { Drain } from '../core/documents'
import type { Failure } from '../core/failure'
import type { MachineHandle, OwnedResource, ResourceHandle } from '../core/handle'
import type { PriceStep } from '../core/meter'
import type { Observation } from '../core/observation'
import type { BackendName, Offer, Pins } from '../core/offer'
import type { Order } from '../core/plan'
import type { ResourceRequest } from '../core/resources'
import type { Asker } from '../core/waiting'

export type { Capabilities }

/**
 * One provider of machines. The comment of each verb is the contract; `test/backends/contract.ts` has a test for every
 * promise made here, and every backend passes it.
 *
 * For all verbs: they return promptly and never wait for a machine; they stop when `ctx.signal` aborts; they throw nothing
 * but `BackendError`; retries are the caller's. A mutating call is sent to the provider once.
 */
export interface Backend {
  readonly name: BackendName
  readonly capabilities: Capabilities
  /** The parts of the provider that it buys in, such as Regions; missing where the provider has no parts. */
  readonly places?: readonly string[]

  /** The part of the provider that answers for a machine. One part may fail while the others answer. */
  placeOf?(handle: MachineHandle): string

  /**
   * What stands in the way of using this backend: credentials, permissions, quota, network, programs. Empty when nothing
   * does. Changes nothing at the provider. Never throws for a problem it can name.
   */
  check(ctx: CallContext): Promise<Problem[]>

  /**
   * Every offer that it knows and that could hold the request, in stock or not, each with the source and age of its price. An
   * offer larger than asked is a fit. If none could hold it, the nearest ones: the planner says what they lack. Never throws
   * because there are none, nor because one part of the provider fails while another answers (`ctx.unseen`).
   *
   * @param pins what earlier orders of the same job have pinned (`Offer.pins`): each offer keeps to it, and pins it again. If
   *   that is no longer offered, the offer pins its replacement, and its note says so
   */
  offers(request: ResourceRequest, ctx: OffersContext, pins?: Pins): Promise<Offer[]>

  /**
   * Sends the order. The same order sent again, at any time, by any process, yields the same machine: never a second one.
   * `launched` as soon as the provider has accepted it, booted or not. `refused` means that certainly nothing was bought.
   * An order for a reservation goes into that one or is refused; the realised offer is what the provider says of the machine.
   * `unconfirmed` means that it was sent and nobody knows; `find` settles it, not before `findAfterMs`.
   * A machine launched carries the owner's tags from its first moment, and its runner finds the id of its handle in
   * `machine-id` (docs/reference/runner-protocol.md): by that it claims the attempt, should the provider have made two of one order.
   */
  launch(order: Order, ctx: CallContext): Promise<LaunchOutcome>

  /**
   * Which machines of an attempt exist, duplicates too, the oldest first; ended ones do not count. `absent` is certain;
   * while the provider's lists may be stale the answer is `unsettled`.
   */
  find(attemptId: string, ctx: LookContext): Promise<FindOutcome>

  /**
   * Starts the runner, where `capabilities.runnerStart` is `after-launch`. Repeating it is harmless: a runner that runs goes
   * on undisturbed. Throws `transient` while the machine cannot take it yet.
   */
  start?(handle: MachineHandle, order: Order, ctx: CallContext): Promise<void>

  /**
   * Tells the runner of a machine to drain, by the provider's own way, for when it does not obey `drain.json`: the store is
   * out of its reach, or of ours. Repeating it is harmless; a machine whose runner has ended is none to be told.
   */
  drain?(handle: MachineHandle, drain: Drain, ctx: CallContext): Promise<void>

  /**
   * What the provider says of each machine, one answer per handle, in order. A machine that is gone, or was never there, is
   * an observation, not an error. One call for any number of handles.
   */
  observe(handles: MachineHandle[], ctx: CallContext): Promise<Observation[]>

  /**
   * What a machine costs an hour, as the provider bills it; only where that can change while it runs. Throws where nobody can tell:
   * then the dearest is taken that it can have been (`Offer.priceMaxMicroUsdPerHour`).
   */
  prices?(handle: MachineHandle, time: PricedTime, ctx: CallContext): Promise<PricePath>

  /**
   * Ends a resource, with everything that runs on it. Absent is success; repeating it for ever is harmless. Returns when
   * the provider has accepted it: `observe` tells when it is done.
   */
  terminate(resource: ResourceHandle, ctx: CallContext): Promise<void>

  /**
   * Ends a machine as if its power had failed: nothing on it is told. Missing where `terminate` tells nothing either. Repeating it is
   * harmless.
   */
  endAbruptly?(handle: MachineHandle, ctx: CallContext): Promise<void>

  /**
   * Everything with this deployment's tag that still costs money or takes room: machines, volumes, addresses, directories.
   * Nothing of any other deployment, ever.
   */
  list(deployment: string, ctx: LookContext): Promise<OwnedResource[]>

  /**
   * What this deployment made that costs nothing by itself and must not pile up either: it counts against a limit of the account,
   * or may come to cost something. `terminate` ends it. Nothing of any other deployment, ever.
   */
  leftovers?(deployment: string, ctx: LookContext): Promise<OwnedResource[]>

  /**
   * What there is to learn of a machine whose runner never spoke, or does not speak any more: the provider's console of it, and
   * what the machine itself still tells. For people; a few pages at most, without secrets as far as the backend can tell them.
   */
  logs?(handle: MachineHandle, cursor: string | undefined, ctx: CallContext): Promise<LogPage>

  /**
   * Takes a machine back as the provider would: after `noticeMs` with a notice, or at once without one. Only where the
   * backend itself plays the provider.
   */
  interrupt?(handle: MachineHandle, options: { noticeMs: number | null }, ctx: CallContext): Promise<void>
}

/** Until when a machine was billed that has ended: all up to then is wanted. One that still runs is asked for again and again. */
export interface PricedTime {
  fromAtMs: number
  toAtMs?: number
}

/** The prices of a machine over time. */
export interface PricePath {
  /** Oldest first; the first is in force from the beginning. */
  prices: PriceStep[]
  /** What changed after this may not be in it yet; missing for a price that does not change. */
  knownToAtMs?: number
}

/** What every verb gets beside its arguments. */
export interface CallContext {
  /** Aborts when the caller no longer wants the answer, or its time is up. */
  signal: AbortSignal
}

/** What `offers` gets. */
export interface OffersContext extends LookContext {
  /**
   * The job that is to be placed; missing for one who only looks. A backend that counts its places exactly (`Offer.freePlaces`) holds
   * one for it for half a minute, so that no other job is offered the same, and an order of that job takes it.
   */
  asker?: Asker
}

/** What verbs get that look for things in all parts of the provider. */
export interface LookContext extends CallContext {
  /** Places of offers: only in these parts can it be. In all parts when missing. */
  within?: readonly string[]
  /** Parts of the provider beside `places` where earlier settings may have left something. */
  alsoAt?: readonly string[]
  /** Called for each part that did not answer, while another did. Without it the error is thrown. */
  unseen?: (place: string, error: unknown) => void
}

/** Something that stands in the way, and how to mend it. */
export interface Problem {
  /** `error` makes the backend unusable; a `warning` only worse. */
  severity: 'error' | 'warning'
  message: string
  /** What to do, in the imperative. */
  remedy: string
  failure?: Failure['class']
}

export interface LogPage {
  text: string
  /** Where to go on; missing at the end. */
  next?: string
  /** The one line that says most, where there is one. */
  lastWords?: string
}
