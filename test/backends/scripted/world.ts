import type { Capabilities, Problem } from '../../../backends/backend'
import { cloudInit } from '../../../backends/bootstrap'
import { BackendError } from '../../../backends/errors'
import type { BackendDeps } from '../../../backends/registry'
import type { FindOutcome, LaunchOutcome } from '../../../core/activities'
import type { MicroUsd } from '../../../core/money'
import { defined } from '../../../core/defined'
import { offerKey, type Availability, type Offer } from '../../../core/offer'
import type { Order } from '../../../core/plan'
import { reachesGpuMemory } from '../../../core/gpu-memory'
import { isWithin, wantsGpu, type MachineShape, type ResourceRequest } from '../../../core/resources'
import type { ObjectStore } from '../../../storage/store'
import { STEADY, type Behaviour } from './behaviour'
import type { Clock } from './clock'
import { FaultScript, type Verb } from './faults'
import { ScriptedMachine } from './scripted-machine'

/** What the provider sells, and how many it has. */
export interface Ware {
  capacityType: Offer['capacityType']
  type: string
  place?: string
  shape?: MachineShape
  /** Machines that can be had now; one that its owner ends comes back, one that was taken back does not. */
  stock?: number
  /** One price, or prices by the instant from which they hold, oldest first. */
  priceMicroUsdPerHour: MicroUsd | [fromMs: number, price: MicroUsd][]
  interruptionsPerHour?: number
  /** Its reservation can be used for so long, from the beginning of the world. */
  usableForMs?: number
  /** As in offers; the provider ends a machine so long after its launch. */
  runMsMax?: number
  isolation?: Offer['isolation']
  /** As in offers: these are taken back with `interrupt`. */
  isPreemptible?: boolean
}

/** What makes a provider hard to use where it recognises no token. It is not played where it is missing. */
export interface Manners {
  /** An ended machine is shown, in lists and to who asks for it by its id, for so long; for ever where it is missing. */
  forgetsAfterMs?: number
  /** A new machine comes into lists only after so long. */
  listsLagMs?: number
  /** Launches of the account that follow one another sooner are throttled. */
  launchEveryMs?: number
  /** A launch is answered after so long; who does not wait for that learns nothing, and has a machine. */
  answersAfterMs?: number
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
  /** Asks for a signed URL, as anybody can: undefined where nothing can be had. Throws a `StoreError` while the store is away. */
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
  #stale: { untilMs: number; known: Set<ScriptedMachine> } | undefined

  constructor(options: WorldOptions) {
    this.#o = options
    this.clock = options.clock
    this.#startedAtMs = options.clock.now()
    this.name = options.name ?? 'scripted'
    this.quota = options.quota ?? Infinity
    const capacityTypes = [...new Set(options.wares.map((ware) => ware.capacityType))]
    this.capabilities = {
      capacityTypes,
      ...{ imageRunner: 'runner', runnerStart: 'with-launch', idempotency: 'token', billsUntil: 'exit' },
      price: 'live',
      ...options.capabilities,
    }
    for (const ware of options.wares) this.setStock(ware, ware.stock ?? Infinity)
  }

  setStock(ware: Pick<Ware, 'capacityType' | 'type' | 'place'>, count: number): void {
    this.#stock.set(this.#keyOf(ware), count)
  }

  /** For so long, lists show what they show now: what is made meanwhile is not found. */
  freezeLists(durationMs: number): void {
    this.#stale = { untilMs: this.clock.now() + durationMs, known: new Set(this.machines) }
  }

  /** A request that is on its way has its effect after so long, and before anything that the provider tells after that. */
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

  /** Stops whatever still runs; nothing of this world happens any more. */
  dispose(): void {
    for (const machine of this.machines) machine.end('unknown')
  }

  offers(request: ResourceRequest): Offer[] {
    const fitting = this.#o.wares.filter(({ shape = SHAPE }) => couldHold(shape, request))
    return (fitting.length > 0 ? fitting : this.#o.wares).map((ware) => this.#offerOf(ware))
  }

  /** What a launch comes to: the machine that the order has already, where tokens are honoured, a new one, or why there is none. */
  buy(order: Order, sent: Sent = {}): LaunchOutcome {
    const isRecognised = this.capabilities.idempotency === 'token'
    const known = isRecognised ? this.machineOf(order.attemptId) : undefined
    if (known !== undefined) return { kind: 'launched', handle: known.handle }
    const wanted = new Set(order.offers.map(offerKey))
    const wares = this.#o.wares.filter((ware) => wanted.has(this.#keyOf(ware)))
    if (wares.length === 0) return refused('invalid', 'none of the offers is sold here')
    if (this.#living >= this.quota) return refused('quota', `the account may have ${this.quota} machines`)
    const ware = wares.find((one) => this.#stockOf(one) > 0)
    if (ware === undefined) return refused('capacity', 'out of stock')
    return { kind: 'launched', handle: this.make(order, ware, sent).handle }
  }

  /** Makes a machine, whatever the order has already. */
  make(order: Order, ware: Ware, sent: Sent = {}): ScriptedMachine {
    const { clock, store, behave, bootMs = 0, handOvers } = this.#o
    const key = this.#keyOf(ware)
    this.#stock.set(key, this.#stockOf(ware) - 1)
    const machine = new ScriptedMachine({
      ...{ clock, store, order, bootMs, offer: this.#offerOf(ware), ...sent },
      ...(handOvers && { ask: (...asked) => handOvers.ask(...asked) }),
      knowsItsId: this.capabilities.claimsBy !== 'send',
      id: `m-${this.machines.length + 1}`,
      behaviour: { ...STEADY, ...behave?.(order) },
      startsRunner: this.capabilities.runnerStart === 'with-launch',
      endsWithRunner: this.capabilities.billsUntil === 'exit',
      onGone: ({ cause }) => {
        this.#living--
        if (cause !== 'interrupted') this.#stock.set(key, this.#stockOf(ware) + 1)
      },
    })
    const { runMsMax } = ware
    if (runMsMax !== undefined) clock.at(clock.now() + runMsMax, () => machine.end('interrupted'))
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
    const ware = this.#o.wares.find((one) => wanted.has(this.#keyOf(one)))!
    return this.make(order, ware, sent)
  }

  /** @param sentUntilMs when the last request for the attempt can have left, where one can still matter */
  find(attemptId: string, sentUntilMs = -Infinity): FindOutcome {
    this.#arrive()
    const { effectWithinMs = 0, listsLagMs = 0 } = this.#o
    const settledAtMs = sentUntilMs + effectWithinMs + listsLagMs
    const againInMs = Math.max(this.#staleForMs(), settledAtMs - this.clock.now())
    const living = this.machinesOf(attemptId).filter((one) => one.state !== 'gone')
    const handles = living.filter((one) => this.#isShown(one)).map((one) => one.handle)
    if (handles.length > 0) return { kind: 'found', handles }
    return againInMs > 0 ? { kind: 'unsettled', againInMs } : { kind: 'absent' }
  }

  /** The living machines of a deployment, as far as lists show them. */
  listed(deployment: string): ScriptedMachine[] {
    return this.machines.filter(
      (one) => one.state !== 'gone' && one.owner.deployment === deployment && this.#isShown(one),
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
    return this.#stock.get(this.#keyOf(ware))!
  }

  #keyOf({ capacityType, type, place = '' }: Pick<Ware, 'capacityType' | 'type' | 'place'>): string {
    return offerKey({ backend: this.name, capacityType, type, place })
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
      ...{ backend: this.name, capacityType, type, place, shape, priceMicroUsdPerHour: price, availability },
      priceSource: { kind: this.capabilities.price, observedAtMs: nowMs },
      ...defined({ interruptionsPerHour, runMsMax, isolation, isPreemptible }),
      ...(usableForMs === undefined ? {} : { usableUntilMs: this.#startedAtMs + usableForMs }),
    }
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
