import type { Backend, Capabilities } from '../../../backends/backend'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import { until } from '../../support/until'
import type { Harness, Traits, WantedOrder } from '../harness'
import { issueOrder, makeOrder } from '../orders'
import { RealClock } from './clock'
import { ScriptedHandOvers } from './hand-overs'
import type { Verb } from './faults'
import { MemoryStore } from './memory-store'
import { createScriptedBackend } from './scripted-backend'
import { ScriptedWorld, type Ware } from './world'

export const SCRIPTED_TRAITS: Traits = {
  looksForTags: false,
  startsLater: false,
  keepsLogs: false,
  tellsEnds: true,
  interruptsMachines: true,
  queues: false,
  billsUntilCalled: false,
  confirmsEnds: true,
  takesHandOvers: false,
  duplicatesAre: 'machines',
}

const STOCK = 10
/** What a machine runs on where its end is only requested. */
const ENDS_AFTER_MS = 100
const STUCK = 'sleep 600'
const WARES: Ware[] = [
  { capacityType: 'spot', type: 'v100', place: 'east', stock: STOCK, priceMicroUsdPerHour: 900_000 },
  { capacityType: 'on-demand', type: 'v100', place: 'east', stock: STOCK, priceMicroUsdPerHour: 3_000_000 },
  { capacityType: 'on-demand', type: 'v100', place: 'west', stock: STOCK, priceMicroUsdPerHour: 3_100_000 },
]
const VERBS: Verb[] = [
  'check',
  'offers',
  'launch',
  'find',
  'start',
  'observe',
  'terminate',
  'list',
  'interrupt',
]
const BROKEN = { class: 'auth', message: 'the key was revoked', hint: 'Make a new key.' } as const

/** A scripted world for the contract, in real time: its machines boot at once and train for a day. */
export class ScriptedHarness implements Harness {
  readonly world: ScriptedWorld
  readonly store = new MemoryStore(Date.now)
  readonly backend: Backend

  readonly handOvers?: ScriptedHandOvers

  constructor(
    capabilities: Partial<Capabilities>,
    { takesHandOvers = false, stopsForMs }: { takesHandOvers?: boolean; stopsForMs?: number } = {},
  ) {
    if (takesHandOvers) this.handOvers = new ScriptedHandOvers(this.store, () => this.world)
    this.world = new ScriptedWorld({
      clock: new RealClock(),
      handOvers: this.handOvers ? this.handOvers : undefined,
      store: this.store,
      wares: WARES,
      capabilities,
      endsAfterMs: ENDS_AFTER_MS,
      stopsForMs,
      behave: ({ runner }) => ({ stepsTotal: 1e6, stepsPerSecond: 10, neverBoots: runner.run === STUCK }),
    })
    this.backend = createScriptedBackend(this.world)
  }

  billedToMs(attemptId: string): number | undefined {
    return this.world.machineOf(attemptId)?.billedToMs
  }

  async reopen(): Promise<Backend> {
    return createScriptedBackend(this.world)
  }

  async order({ capacityType = 'on-demand', deployment, isStuck }: WantedOrder = {}): Promise<Order> {
    const order = makeOrder({
      store: this.store,
      offers: this.world
        .offers({})
        .filter((offer) => offer.capacityType === capacityType)
        .slice(0, this.world.capabilities.offersPerOrder === 'one' ? 1 : undefined),
      run: isStuck ? STUCK : 'train',
      runnerStart: this.world.capabilities.runnerStart,
      deployment,
    })
    await issueOrder(this.store, order, Date.now())
    return order
  }

  async startsOf(attemptId: string): Promise<number> {
    const machines = this.world.machinesOf(attemptId)
    await until(() => machines.every((machine) => machine.state !== 'pending'))
    const starts = machines.reduce((sum, machine) => sum + machine.starts, 0)
    return Math.max(machines.length, starts)
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.world.machinesOf(attemptId).filter((machine) => machine.state !== 'gone').length
  }

  async fill(): Promise<void> {
    for (const ware of WARES) this.world.setStock(ware, 0)
  }

  async breakDown(): Promise<void> {
    this.world.problems = [
      { severity: 'error', message: BROKEN.message, remedy: BROKEN.hint, failure: 'auth' },
    ]
    for (const verb of VERBS.slice(1)) this.world.faults.add(verb, { kind: 'throws', failure: BROKEN })
  }

  stall(): void {
    this.world.faults.add('launch', { kind: 'hangs', hasEffect: true })
  }

  failNextLaunch(): void {
    const failure = { class: 'throttled', message: 'too many requests', retryAfterMs: 1_000 } as const
    this.world.faults.add('launch', { kind: 'throws', failure })
  }

  launchesSent(): number {
    return this.world.callsOf('launch').length
  }

  loseNextAnswer(): boolean {
    this.world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 10 })
    return true
  }

  async duplicate(order: Order): Promise<void> {
    const isTag = this.world.capabilities.idempotency === 'tag'
    const send = isTag ? sendNameOf(order.attemptId, 2) : undefined
    this.world.duplicate(order, { send, userData: await this.world.userDataOf(order, send) })
  }

  holdQueue(): () => void {
    return this.world.holdQueue()
  }

  forgetEnded(): void {
    this.world.forgetEnded()
  }

  async dispose(): Promise<void> {
    this.world.dispose()
  }
}
