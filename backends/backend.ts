import type { FindOutcome, LaunchOutcome } from '../core/activities'
import type { Capabilities } from '../core/capabilities'
import type { Drain } from '../core/documents'
import type { Failure } from '../core/failure'
import type { MachineHandle, OwnedResource, ResourceHandle } from '../core/handle'
import type { PriceStep } from '../core/money/meter'
import type { Observation } from '../core/observation'
import type { BackendName, Offer, Pins } from '../core/offer'
import type { Order } from '../core/job/plan'
import type {
  CapacityQuote,
  CapacityRequest,
  OwnedReservation,
  ReleaseTerms,
  ReservationChange,
  ReservationOrder,
  ReservationRef,
  ReserveOutcome,
} from '../core/reservation/reservation'
import type { ResourceRequest } from '../core/resources'
import type { Asker } from '../core/job/waiting'

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
  /** The parts in which the provider sells machines, such as Regions; missing for a provider without parts. */
  readonly places?: readonly string[]

  /** The part of the provider that is responsible for a machine. One part may fail while the others answer. */
  placeOf?(handle: MachineHandle): string

  /**
   * Problems that prevent the use of this backend: credentials, permissions, quota, network, programs. Empty without problems.
   * Changes nothing at the provider. Never throws for a problem that it can name.
   */
  check(ctx: CallContext): Promise<Problem[]>

  /**
   * Returns every known offer that could hold the request, in stock or not, each with the source and age of its price. An offer larger than
   * requested fits. If none fits, it returns the nearest ones, and the planner explains what they lack. Never throws for a lack of offers,
   * nor because one part of the provider fails while another answers (`ctx.unseen`).
   * @param pins pins of earlier orders of the same job (`Offer.pins`): each offer keeps to them, and pins them again. If a pin is no longer
   * offered, the offer pins its replacement and says so in its note
   */
  offers(request: ResourceRequest, ctx: OffersContext, pins?: Pins): Promise<Offer[]>

  /**
   * Sends the order. If `capabilities.idempotency` is `token`, the same order, sent again at any time by any process, yields the
   * same machine, never a second one. If it is `tag`, every send may yield another machine: callers mark each one first
   * (`storage/sends.ts`), send again only after an outcome that guarantees that nothing was bought, and name each send
   * (`ctx.send`); the machine's handle shows that name from the start.
   *
   * `launched` as soon as the provider has accepted it, booted or not. `refused` guarantees that nothing was bought, and so does
   * every error but an `unclassified` one. An order for a reservation uses that reservation or is refused; the realised offer is
   * what the provider reports about the machine. `unconfirmed` means that it was sent with an unknown outcome; `find` settles it,
   * not before `findAfterMs`. Once the answer is given or `ctx.signal` has aborted, no further request is sent.
   *
   * A launched machine carries the owner's tags from the start, and its runner finds the id of its handle in `machine-id`
   * (docs/reference/runner-protocol.md): it claims the attempt with that id, in case the provider made two machines of one order.
   * A machine that cannot learn its id (`capabilities.claimsBy`) finds the name of its send in `send-name` and claims with that.
   */
  launch(order: Order, ctx: SendContext): Promise<LaunchOutcome>

  /**
   * Finds existing machines of an attempt, including duplicates, oldest first; ended ones do not count. `absent` is certain: nothing of the
   * attempt runs now or later. It does not prove that nothing ever ran, because a provider may forget ended machines. While the provider's
   * lists may be stale, or a send may still have an effect (`ctx.sentUntilMs`), the answer is `unsettled`.
   */
  find(attemptId: string, ctx: FindContext): Promise<FindOutcome>

  /**
   * Starts the runner, if `capabilities.runnerStart` is `after-launch`. Idempotent: a running runner is not disturbed. Throws
   * `transient` while the machine cannot accept it yet.
   */
  start?(handle: MachineHandle, order: Order, ctx: CallContext): Promise<void>

  /**
   * Asks the runner of a machine to drain through the provider, if it does not obey `drain.json`: the runner cannot reach the
   * store, or we cannot. Idempotent; a machine whose runner has ended is skipped.
   */
  drain?(handle: MachineHandle, drain: Drain, ctx: CallContext): Promise<void>

  /**
   * Returns the provider's report on each machine, one answer per handle, in order. A machine that is gone, or never existed, is an
   * observation, not an error. One call handles any number of machines; undefined for those about which the provider did not answer, if it
   * did about others.
   */
  observe(handles: MachineHandle[], ctx: CallContext): Promise<(Observation | undefined)[]>

  /**
   * The hourly price of a machine, as the provider bills it; only for prices that can change while it runs. Throws if the price
   * is unknown; callers then use the highest possible one (`Offer.priceMaxMicroUsdPerHour`).
   */
  prices?(handle: MachineHandle, time: PricedTime, ctx: CallContext): Promise<PricePath>

  /**
   * Ends a resource with everything that runs on it. Absent is success; repeating it is always harmless. Returns when the provider has
   * accepted it: `observe` reports when it is done. Throws `invalid` for a machine of another deployment, or of another attempt than the
   * handle says.
   */
  terminate(resource: ResourceHandle, ctx: CallContext): Promise<void>

  /**
   * Ends a machine as if its power had failed, without notice to its programs. Missing if `terminate` gives no notice either.
   * Idempotent.
   */
  endAbruptly?(handle: MachineHandle, ctx: CallContext): Promise<void>

  /**
   * Lists everything with this deployment's tag that still costs money or occupies space: machines, volumes, addresses, directories. Never
   * lists resources of another deployment.
   */
  list(deployment: string, ctx: LookContext): Promise<OwnedResource[]>

  /**
   * Free resources that this deployment created and that must not pile up: they count against a limit of the account, or may
   * start to cost money. `terminate` ends them. Never resources of another deployment.
   */
  leftovers?(deployment: string, ctx: LookContext): Promise<OwnedResource[]>

  /**
   * Diagnoses a machine whose runner never reported, or stopped reporting: the provider's console output, and the machine's own reports.
   * For people; a few pages at most, without secrets as far as the backend can detect them.
   */
  logs?(handle: MachineHandle, cursor: string | undefined, ctx: CallContext): Promise<LogPage>

  /**
   * Interrupts a machine as the provider would: after `noticeMs` with a notice, or immediately without one. Only for backends
   * that play the provider themselves.
   */
  interrupt?(handle: MachineHandle, options: { noticeMs: number | null }, ctx: CallContext): Promise<void>

  /** Verbs for reservations; missing if the provider sells none, or the configuration excludes them. */
  reserving?: ReservingBackend
}

/**
 * The part of a backend that buys capacity in advance and holds it. The general rules of `Backend` apply. What is bought here is used by
 * `offers` and `launch` as capacity type `reserved`.
 */
export interface ReservingBackend {
  /**
   * The id of the account that pays. Purchases of one account and Region are made one after another: their workflow is named after both.
   */
  account(ctx: CallContext): Promise<string>

  /**
   * Returns the quotes for a request, in no order; empty if nothing is for sale. Each quote satisfies the whole request. Never throws
   * because one part of the provider fails while another answers (`ctx.unseen`). Throws `invalid` for a request that the provider never
   * sells, and names what it sells.
   */
  reservable(wish: CapacityRequest, ctx: LookContext): Promise<CapacityQuote[]>

  /**
   * Returns every reservation that the account can see: bought here, elsewhere, or shared by another account, in all phases that the
   * provider still reports. Complete for each part that answered. A reservation that was just bought may be missing for up to `STALE_MS`
   * (core/reservation/purchase-limits.ts).
   */
  reservations(ctx: LookContext): Promise<OwnedReservation[]>

  /**
   * Buys a quote. One call of this verb sends the request to the provider once; neither the layers below nor the SDK repeat it. It carries
   * the tags of the order, so that `reservations` shows its intent; an extension has no separate tags, and shows in the end of its
   * reservation and in `extension`. An `hourly` order is idempotent by intent and send. `refused` guarantees that nothing was bought, and
   * so does every error but an `unclassified` one. If the quote is gone, or its price or terms have changed, it is `refused` as `capacity`
   * before anything is sent: another quote may work. Everything that the provider did not certainly refuse is `unconfirmed`, errors of the
   * provider included.
   */
  reserve(order: ReservationOrder, ctx: TimedContext): Promise<ReserveOutcome>

  /** Changes an `hourly` reservation, and returns it afterwards (for a split, the new one). Throws `invalid` for a `prepaid` one. */
  change(ref: ReservationRef, change: ReservationChange, ctx: CallContext): Promise<OwnedReservation>

  /** Returns the cost of `release`. Throws `invalid` for a reservation that cannot be returned. */
  releaseTerms(ref: ReservationRef, ctx: CallContext): Promise<ReleaseTerms>

  /** Releases an `hourly` reservation on these terms; machines in it keep running at the on-demand price. Absent is success. */
  release(ref: ReservationRef, terms: ReleaseTerms, ctx: CallContext): Promise<void>
}

/** Time range to price. `toAtMs` is set once the machine has ended; a running machine is priced repeatedly. */
export interface PricedTime {
  fromAtMs: number
  toAtMs?: number
}

/** The prices of a machine over time. */
export interface PricePath {
  /** Oldest first; the first applies from the start. */
  prices: PriceStep[]
  /** Changes after this time may still be missing; undefined for a constant price. */
  knownToAtMs?: number
}

/** Context of every verb. */
export interface CallContext {
  /** Aborts when the caller no longer wants the answer, or at its deadline. */
  signal: AbortSignal
}

/** Context of `offers`. */
export interface OffersContext extends LookContext {
  /**
   * The container image of the job; missing without one, and for questions without a job. Where the provider runs the image and would refuse
   * it, each offer is `unusable` and its note says what to do.
   */
  image?: string
  /**
   * The job to place; missing for read-only queries. A backend that counts its places exactly (`Offer.freePlaces`) holds one for
   * the job for half a minute, so that no other job is offered the same one; an order of that job takes it.
   */
  asker?: Asker
}

/** Context of verbs that search all parts of the provider. */
export interface LookContext extends CallContext {
  /** Places of offers: limits the search to their parts. If missing, all parts. */
  within?: readonly string[]
  /** Additional parts of the provider, where earlier settings may have left resources. */
  alsoAt?: readonly string[]
  /** Called for each part that did not answer, while another did. Without it, the error is thrown. */
  unseen?: (place: string, error: unknown) => void
}

/** Context of a verb that sends a request once. */
export interface TimedContext extends CallContext {
  /**
   * Whether it is too late for a request, by the wall clock; asked just before the request. The signal aborts then too, but a suspended
   * process handles answers that came meanwhile before its timers. Missing without a limit.
   */
  isLate?: () => boolean
}

/** Context of `launch`. */
export interface SendContext extends TimedContext {
  /** The name of this send, legal as a hostname; missing if `capabilities.idempotency` is `token`. */
  send?: string
}

/** Context of `find`. */
export interface FindContext extends LookContext {
  /**
   * Latest time at which a request for the attempt may reach the provider, by the clock of a worker (`CLOCK_SLACK_MS`): older lists do not
   * prove that no machine exists. Missing for `token`, and if no send can have an effect.
   */
  sentUntilMs?: number
}

/** A problem, and how to fix it. */
export interface Problem {
  /** `error` makes the backend unusable; a `warning` limits it. */
  severity: 'error' | 'warning'
  message: string
  /** The fix, in the imperative. */
  remedy: string
  failure?: Failure['class']
}

export interface LogPage {
  text: string
  /** Cursor for the next page; missing at the end. */
  next?: string
  /** The most informative line, if any. */
  lastWords?: string
}
