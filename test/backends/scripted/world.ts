import type { Capabilities, Problem } from '../../../backends/backend'
import { cloudInit } from '../../../backends/bootstrap'
import { BackendError } from '../../../backends/errors'
import type { BackendDeps } from '../../../backends/registry'
import type { FindOutcome, LaunchOutcome } from '../../../core/activities'
import type { MicroUsd } from '../../../core/money/money'
import { offerKey, type Availability, type Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import { reachesGpuMemory } from '../../../core/gpu-memory'
import { isWithin, wantsGpu, type MachineShape, type ResourceRequest } from '../../../core/resources'
import type { ObjectStore } from '../../../storage/store'
import { STEADY, type Behaviour } from './behaviour'
import type { Clock } from './clock'
import { FaultScript, type Verb } from './faults'
import type { ReservationMarket } from './reserving/market'
import { ScriptedMachine } from './scripted-machine'

/** What the provider sells, and how many it has. */
export interface Ware {
  capacityType: Offer['capacityType']
  type: string
  place?: string
  shape?: MachineShape
  /** Machines available now; one that its owner ends comes back, one that was taken back does not. */
  stock?: number
  /** One price, or prices by the instant from which they hold, oldest first. */
  priceMicroUsdPerHour: MicroUsd | [fromMs: number, price: MicroUsd][]
  interruptionsPerHour?: number
  /** How long its reservation can be used, from the beginning of the world. */
  usableForMs?: number
  /** As in offers; the provider ends a machine this long after its launch. */
  runMsMax?: number
  isolation?: Offer['isolation']
  /** As in offers: these are taken back with `interrupt`. */
  isPreemptible?: boolean
  billedAtLeastMs?: number
  billedInStepsOfMs?: number
  stillBilled?: string
  /** The reservation that its machines are in. */
  held?: OwnedReservation
}

/** What makes a provider hard to use. It is not played where it is missing. */
export interface Manners {
  /** How long an ended machine is shown, in lists and when looked up by its id; for ever if missing. */
  forgetsAfterMs?: number
  /** How long lists miss a new machine. */
  listsLagMs?: number
  /** Launches of the account that follow one another sooner are throttled. */
  launchEveryMs?: number
  /** How long the answer to a launch takes; a caller who gives up earlier has a machine and does not know it. */
  answersAfterMs?: number
  /** How long the launches of an order wait in the queue where the provider has one (`capabilities.queues`). */
  queueMs?: (order: Order) => number
  /** False where the provider does not tell when billing began. */
  tellsBilling?: boolean
  /** How much longer a machine runs that is shown as gone, where ends are only requested (`capabilities.ends`). */
  endsAfterMs?: number
  /** How long a machine that its owner ends is shown as stopping, unbilled; then the provider never tells when machines ended. */
  stopsForMs?: number
  /** A request that left may still have its effect so much later. */
  effectWithinMs?: number
}

/** What reaches the provider with an order. */
export interface Sent {
  /** The name of the send. */
  send?: string | undefined
  /** What the provider keeps for the machine, and the machine runs at its boot. */
  userData?: string | undefined
}

/** How machines take what their runners need from hand-overs. */
export interface HandOvers {
  issue: NonNullable<BackendDeps['handOver']>
  /** Asks for a signed URL, as anybody can: undefined if the object does not exist. Throws a `StoreError` while the store is away. */
  ask: (method: 'GET' | 'DELETE', url: string) => Promise<Buffer | undefined>
}

export interface WorldOptions extends Manners {
  clock: Clock
  /** The store that the machines reach. */
  store: ObjectStore
  wares: Ware[]
  /** The backend's name. */
  name?: string
  capabilities?: Partial<Capabilities>
  /** Machines that the account may have at once. */
  quota?: number
  bootMs?: number
  /** Machines start with their launch and with nothing but what they take from hand-overs; missing where they just know it. */
  handOvers?: HandOvers
  /** Where capacity is bought in advance; worlds may share one. It has the clock of the world. */
  market?: ReservationMarket
  /** How each machine's workload runs, whatever differs from `STEADY`. */
  behave?: (order: Order) => Partial<Behaviour>
}

export interface RecordedCall {
  verb: Verb
  atMs: number
  attemptIds: string[]
}

const SHAPE: MachineShape = {
  cpus: 8,
  memoryGiB: 61,
  diskGiB: 200,
  gpus: 1,
  accelerator: 'V100',
  gpuMemoryGiB: 16,
}

/** A provider in memory: its stock, its machines, what was asked of it, and what will go wrong. Each test makes its own. */
export class ScriptedWorld {
  readonly clock: Clock
  readonly name: string
  readonly capabilities: Capabilities
  readonly market: ReservationMarket | undefined
  readonly calls: RecordedCall[] = []
  readonly faults = new FaultScript()
  /** Oldest first, ended ones too. */
  readonly machines: ScriptedMachine[] = []
  /** Second machines that this provider made of one request. */
  duplicates = 0
  /** What `check` says. */
  problems: Problem[] = []
  quota: number
  readonly #o: WorldOptions
  readonly #stock = new Map<string, number>()
  readonly #byId = new Map<string, ScriptedMachine>()
  readonly #byAttempt = new Map<string, ScriptedMachine[]>()
  readonly #startedAtMs: number
  #launchedAtMs = -Infinity
  #forgottenAtMs = -Infinity
  #living = 0
  /** Effects of requests that left, and when they come. */
  #late: { atMs: number; effect: () => void }[] = []
  #held: ScriptedMachine[] | undefined
  #stale: { untilMs: number; known: Set<ScriptedMachine> } | undefined

  constructor(options: WorldOptions) {
    this.#o = options
    this.clock = options.clock
    this.market = options.market
    this.#startedAtMs = options.clock.now()
    this.name = options.name ?? 'scripted'
    this.quota = options.quota ?? Infinity
    const types = options.wares.map((ware) => ware.capacityType)
    const capacityTypes = [...new Set([...types, ...(options.market ? (['reserved'] as const) : [])])]
    this.capabilities = {
      capacityTypes,
      imageRunner: 'runner',
      runnerStart: 'with-launch',
      idempotency: 'token',
      billsUntil: 'exit',
      price: 'live',
      ...options.capabilities,
    }
    for (const ware of options.wares) this.setStock(ware, ware.stock ?? Infinity)
  }

  setStock(ware: Pick<Ware, 'capacityType' | 'type' | 'place'>, count: number): void {
    this.#stock.set(this.#keyOf(ware), count)
  }

  /** How long lists keep their present content: newer machines are not found. */
  freezeLists(durationMs: number): void {
    this.#stale = { untilMs: this.clock.now() + durationMs, known: new Set(this.machines) }
  }

  /** How long a request in transit takes to have its effect, which precedes every later answer of the provider. */
  later(durationMs: number, effect: () => void): void {
    const atMs = this.clock.now() + durationMs
    this.#late.push({ atMs, effect })
    this.clock.at(atMs, () => this.#arrive())
  }

  #arrive(): void {
    const due = this.#late.filter(({ atMs }) => atMs <= this.clock.now())
    this.#late = this.#late.filter((one) => !due.includes(one))
    for (const { effect } of due) effect()
  }

  /** From now on launches wait in the queue until the answer is called: then those that wait begin. */
  holdQueue(): () => void {
    const held = (this.#held ??= [])
    return () => {
      this.#held = undefined
      for (const machine of held) machine.begin()
    }
  }

  /** What has ended is shown no more. */
  forgetEnded(): void {
    this.#forgottenAtMs = this.clock.now()
  }

  /** What a launch tells the provider for its machine. */
  async userDataOf(order: Order, send = order.attemptId): Promise<string | undefined> {
    const { handOvers } = this.#o
    if (handOvers === undefined) return undefined
    return cloudInit(await handOvers.issue(order, send), { attemptId: order.attemptId, send })
  }

  get manners(): Manners {
    return this.#o
  }

  /** True, and noted, where a launch is not too soon after the last one. */
  takesLaunch(): boolean {
    const nowMs = this.clock.now()
    if (nowMs < this.#launchedAtMs + (this.#o.launchEveryMs ?? 0)) return false
    this.#launchedAtMs = nowMs
    return true
  }

  /** The machine that an attempt has, the first where there are several. */
  machineOf(attemptId: string): ScriptedMachine | undefined {
    return this.#byAttempt.get(attemptId)?.[0]
  }

  machinesOf(attemptId: string): ScriptedMachine[] {
    return this.#byAttempt.get(attemptId) ?? []
  }

  machine(id: string): ScriptedMachine | undefined {
    return this.#byId.get(id)
  }

  /** The machine as the provider knows it: not one that it has forgotten. */
  known(id: string): ScriptedMachine | undefined {
    const machine = this.machine(id)
    return machine === undefined || this.#isForgotten(machine) ? undefined : machine
  }

  callsOf(verb: Verb): RecordedCall[] {
    return this.calls.filter((call) => call.verb === verb)
  }

  /** Stops whatever still runs; nothing of this world happens. */
  dispose(): void {
    for (const machine of this.machines) machine.end('unknown')
  }

  offers(request: ResourceRequest): Offer[] {
    const wares = this.#wares()
    const fitting = wares.filter(({ shape = SHAPE }) => couldHold(shape, request))
    return (fitting.length > 0 ? fitting : wares).map((ware) => this.#offerOf(ware))
  }

  /** What is sold, and the account's reservations that a job could run in, now or later. */
  #wares(): Ware[] {
    const { wares } = this.#o
    const held = this.market?.held().filter(({ unfit }) => unfit === undefined) ?? []
    return [
      ...wares,
      ...held.map((one): Ware => {
        const shape = wares.find(({ type }) => type === one.type)?.shape
        const common = { capacityType: 'reserved', type: one.type, place: one.zone, held: one } as const
        return { ...common, priceMicroUsdPerHour: one.idleMicroUsdPerHour ?? 0, shape }
      }),
    ]
  }

  /** The outcome of a launch: the machine that the order already has, if tokens are honoured, a new one, or the reason for a refusal. */
  buy(order: Order, sent: Sent = {}): LaunchOutcome {
    const isRecognised = this.capabilities.idempotency === 'token'
    const known = isRecognised ? this.machineOf(order.attemptId) : undefined
    if (known !== undefined) return { kind: 'launched', handle: known.handle }
    const wanted = new Set(order.offers.map(offerKey))
    const wares = this.#wares().filter((ware) => wanted.has(this.#keyOf(ware)))
    if (this.capabilities.offersPerOrder === 'one' && order.offers.length > 1)
      return refused('invalid', 'an order names one offer')
    if (this.capabilities.imageRunner === 'provider' && order.runner.image !== null)
      return refused('invalid', 'there is no Docker on a machine')
    if (wares.length === 0) return refused('invalid', 'none of the offers is sold here')
    if (this.#living >= this.quota) return refused('quota', `the account may have ${this.quota} machines`)
    const ware = wares.find((one) => this.#stockOf(one) > 0)
    if (ware === undefined) return refused('capacity', 'out of stock')
    return { kind: 'launched', handle: this.make(order, ware, sent).handle }
  }

  /** Makes a machine, whatever the order has already. */
  make(order: Order, ware: Ware, sent: Sent = {}): ScriptedMachine {
    const { clock, store, behave, bootMs = 0, handOvers, queueMs, tellsBilling, endsAfterMs = 0 } = this.#o
    const { stopsForMs } = this.#o
    const { queues, ends } = this.capabilities
    const key = this.#keyOf(ware)
    const { held } = ware
    if (held === undefined) this.#stock.set(key, this.#stockOf(ware) - 1)
    else this.market!.occupy(held.id, 1)
    const machine = new ScriptedMachine({
      clock,
      store,
      order,
      bootMs,
      offer: this.#offerOf(ware),
      ...sent,
      ask: handOvers ? (...asked) => handOvers.ask(...asked) : undefined,
      runMsMax: ware.runMsMax,
      tellsBilling,
      stopsForMs,
      queueMs: queues === true ? (this.#held !== undefined ? Infinity : (queueMs?.(order) ?? 0)) : undefined,
      endsAfterMs: ends === 'requested' ? endsAfterMs : undefined,
      knowsItsId: this.capabilities.claimsBy !== 'send',
      id: `m-${this.machines.length + 1}`,
      behaviour: { ...STEADY, ...behave?.(order) },
      startsRunner: this.capabilities.runnerStart === 'with-launch',
      endsWithRunner: this.capabilities.billsUntil === 'exit',
      usableUntilMs: held ? () => this.market!.reservation(held.id)?.usableUntilMs : undefined,
      onGone: ({ cause }) => {
        this.#living--
        if (held !== undefined) this.market!.occupy(held.id, -1)
        else if (cause !== 'interrupted') this.#stock.set(key, this.#stockOf(ware) + 1)
      },
    })
    if (held !== undefined) this.market!.endsWith(held.id, () => machine.end('interrupted'))
    this.#held?.push(machine)
    this.#living++
    this.machines.push(machine)
    this.#byId.set(machine.handle.id, machine)
    this.#byAttempt.set(order.attemptId, [...this.machinesOf(order.attemptId), machine])
    return machine
  }

  /** A second machine for an order that has one, as a provider without tokens makes it. */
  duplicate(order: Order, sent: Sent = {}): ScriptedMachine {
    this.duplicates++
    const wanted = new Set(order.offers.map(offerKey))
    const ware = this.#wares().find((one) => wanted.has(this.#keyOf(one)))!
    return this.make(order, ware, sent)
  }

  /** @param sentUntilMs when the last request for the attempt can have left, where one can still matter */
  find(attemptId: string, sentUntilMs = -Infinity): FindOutcome {
    this.#arrive()
    const { effectWithinMs = 0, listsLagMs = 0 } = this.#o
    const settledAtMs = sentUntilMs + effectWithinMs + listsLagMs
    const againInMs = Math.max(this.#staleForMs(), settledAtMs - this.clock.now())
    const living = this.machinesOf(attemptId).filter((one) => one.state !== 'gone' && !one.isShownGone)
    const handles = living.filter((one) => this.#isShown(one)).map((one) => one.handle)
    if (handles.length > 0) return { kind: 'found', handles }
    return againInMs > 0 ? { kind: 'unsettled', againInMs } : { kind: 'absent' }
  }

  /** The living machines of a deployment, as far as lists show them. */
  listed(deployment: string): ScriptedMachine[] {
    return this.machines.filter(
      (one) =>
        one.state !== 'gone' &&
        !one.isShownGone &&
        one.stoppingSinceMs === undefined &&
        one.owner.deployment === deployment &&
        this.#isShown(one),
    )
  }

  #isShown(machine: ScriptedMachine): boolean {
    const isListed = this.clock.now() >= machine.handle.launchedAtMs + (this.#o.listsLagMs ?? 0)
    return isListed && (this.#staleForMs() === 0 || this.#stale!.known.has(machine))
  }

  #isForgotten({ endedAtMs = Infinity }: ScriptedMachine): boolean {
    return (
      endedAtMs <= this.#forgottenAtMs || this.clock.now() >= endedAtMs + (this.#o.forgetsAfterMs ?? Infinity)
    )
  }

  #staleForMs(): number {
    return Math.max(0, (this.#stale?.untilMs ?? 0) - this.clock.now())
  }

  #stockOf(ware: Ware): number {
    if (ware.held !== undefined) return this.market!.reservation(ware.held.id)!.free
    return this.#stock.get(this.#keyOf(ware))!
  }

  #keyOf({
    capacityType,
    type,
    place = '',
    held,
  }: Pick<Ware, 'capacityType' | 'type' | 'place' | 'held'>): string {
    return offerKey({
      backend: this.name,
      capacityType,
      type,
      place,
      reservationId: held?.id,
    })
  }

  #offerOf(ware: Ware): Offer {
    const {
      capacityType,
      type,
      place = '',
      shape = SHAPE,
      priceMicroUsdPerHour: prices,
      interruptionsPerHour,
      usableForMs,
      runMsMax,
      isolation,
      isPreemptible,
      billedAtLeastMs,
      billedInStepsOfMs,
      stillBilled,
      held,
    } = ware
    const nowMs = this.clock.now()
    const price = typeof prices === 'number' ? prices : prices.findLast(([fromMs]) => fromMs <= nowMs)?.[1]
    if (price === undefined)
      throw new BackendError({ class: 'unclassified', message: `${type} has no price yet` })
    const hasQuota = this.#living < this.quota
    const availability: Availability = !hasQuota
      ? 'no-quota'
      : this.#stockOf(ware) > 0
        ? 'available'
        : 'unavailable'
    return {
      backend: this.name,
      capacityType,
      type,
      place,
      shape,
      priceMicroUsdPerHour: price,
      availability,
      priceSource: { kind: this.capabilities.price, observedAtMs: nowMs },
      interruptionsPerHour,
      runMsMax,
      isolation,
      isPreemptible,
      billedAtLeastMs,
      billedInStepsOfMs,
      stillBilled,
      usableUntilMs: usableForMs === undefined ? undefined : this.#startedAtMs + usableForMs,
      ...(held !== undefined && reservedPart(held)),
    }
  }
}

function reservedPart({
  id,
  phase,
  free,
  total,
  startsAtMs,
  endsAtMs,
  usableUntilMs,
  idleMicroUsdPerHour = 0,
  intent,
}: OwnedReservation): Pick<Offer, 'reservationId' | 'reservation' | 'usableUntilMs'> {
  const isToCome = phase !== 'active'
  return {
    reservationId: id,
    reservation: {
      free,
      total,
      idleMicroUsdPerHour,
      startsAtMs: isToCome ? startsAtMs : undefined,
      endsAtMs,
      intent,
    },
    usableUntilMs,
  }
}

function refused(failureClass: 'invalid' | 'quota' | 'capacity', message: string): LaunchOutcome {
  return { kind: 'refused', failure: { class: failureClass, message } }
}

/** Whether a shape is at least what is asked for. */
function couldHold(shape: MachineShape, request: ResourceRequest): boolean {
  const { accelerators = [], cpus, memoryGiB, diskGiB, gpus } = request
  const reaches = (value: number | undefined, min: number | undefined): boolean =>
    min === undefined || isWithin(value ?? 0, { min })
  return (
    reaches(shape.cpus, cpus?.min) &&
    reaches(shape.memoryGiB, memoryGiB?.min) &&
    reaches(shape.diskGiB, diskGiB?.min) &&
    reaches(shape.gpus, Math.max(gpus?.min ?? 0, wantsGpu(request) ? 1 : 0)) &&
    reachesGpuMemory(shape, request) &&
    (accelerators.length === 0 || accelerators.includes(shape.accelerator ?? ''))
  )
}
