import { setTimeout as pause } from 'node:timers/promises'
import { createBackendActivities } from '../../activities/machine/backend'
import type { Backend } from '../../backends/backend'
import type { BackendActivities, LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import type { ObjectStore } from '../../storage/store'
import { RealClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import { makeOrder } from '../backends/orders'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld, type WorldOptions } from '../backends/scripted/world'
import { patient } from '../support/patience'
import { perform, QUICK, SPOT } from './place'

/** Thrown to a process at its death, and at whatever it tries after that. */
class Death extends Error {}

/** A process of Crucible that dies at one of its calls to the store or the provider: before the call has had its effect, or after. */
export class Mortal {
  /** The calls that it made, by name. */
  readonly calls: string[] = []
  isDead = false

  /** @param death at which of its calls, by number from 1 or by the name of the first such call */
  constructor(private readonly death?: { at: number | string; moment: 'before' | 'after' }) {}

  /** The same object, reached from this process. */
  reach<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        const call = value.bind(target) as (...input: unknown[]) => unknown
        // The provider's list is a call like the others.
        const isListing = name === 'list' && 'putIfAbsent' in target
        return isListing
          ? this.listing(call as (...input: unknown[]) => AsyncIterable<unknown>)
          : this.calling(String(name), call)
      },
    })
  }

  private calling(name: string, call: (...input: unknown[]) => unknown) {
    return (...input: unknown[]): Promise<unknown> => this.meet(name, async () => call(...input))
  }

  private listing(list: (...input: unknown[]) => AsyncIterable<unknown>) {
    const meet = (work: () => Promise<unknown[]>): Promise<unknown[]> => this.meet('list', work)
    return async function* (...input: unknown[]): AsyncGenerator<unknown> {
      yield* await meet(async () => {
        const all: unknown[] = []
        for await (const one of list(...input)) all.push(one)
        return all
      })
    }
  }

  private async meet<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.isDead) throw new Death()
    this.calls.push(name)
    const at = this.death?.at
    if (at !== this.calls.length && at !== name) return work()
    this.isDead = true
    if (this.death?.moment === 'after') await work().catch(() => undefined)
    throw new Death()
  }
}

/** A provider that recognises no repeated order, forgets ended machines and is slow to show new ones; times in milliseconds. */
const RUDE = { forgetsAfterMs: 10, listsLagMs: 15, effectWithinMs: 15, answersAfterMs: 2 } as const

/** The send of a worker that died may be in progress for this long. */
const SEND_LIMIT_MS = patient(60)

/** A send of another worker may be over before the provider's word for it is due. */
const LOOK_AGAIN_MS = 20

/** Workers that come and go, over one store and one provider. */
export class Senders {
  /**
   * @param untilEffect waits until a send without an answer can have no more effect, instead of the time that its outcome names
   * @param sendLimitMs longer than any send of the provider takes
   */
  constructor(
    readonly store: MemoryStore,
    private readonly provider: Backend,
    private readonly untilEffect: (order: Order) => Promise<void> = async () => undefined,
    private readonly sendLimitMs = SEND_LIMIT_MS,
  ) {}

  worker(process = new Mortal()): BackendActivities {
    const store: ObjectStore = process.reach(this.store)
    return createBackendActivities({
      backend: process.reach(this.provider),
      store,
      now: Date.now,
      monotonicMs: () => performance.now(),
      sendLimitMs: this.sendLimitMs,
      handOverSecrets: async () => undefined,
      maskSecrets: async (_jobId, text) => text,
      owners: async () => 'absent',
    })
  }

  /** What a workflow has of its order: the activity is repeated as Temporal would, and an unknown result is looked up. */
  async obtain(order: Order, workers = [this.worker()]): Promise<MachineHandle | undefined> {
    const outcome = await this.launch(order, workers)
    if (outcome.kind === 'launched') return outcome.handle
    if (outcome.kind === 'refused') return undefined
    await this.untilEffect(order)
    const worker = workers.at(-1)!
    for (;;) {
      const found = await perform(worker, 'find', { order })
      if (found.kind === 'found') return found.handles[0]
      if (found.kind === 'absent') return undefined
      await this.wait(Math.min(found.againInMs, LOOK_AGAIN_MS))
    }
  }

  /** Each try is the next worker's, the last of them tries on. */
  private async launch(order: Order, workers: BackendActivities[]): Promise<LaunchOutcome> {
    for (let attempt = 1; ; attempt++) {
      const worker = workers[Math.min(attempt, workers.length) - 1]!
      try {
        return await perform(worker, 'launch', { order, recordSeq: 3 }, { attempt })
      } catch (error) {
        if ((error as { nonRetryable?: boolean }).nonRetryable === true) throw error
        await this.wait(1)
      }
    }
  }

  async settle(order: Order): Promise<void> {
    const input = {
      order,
      timing: QUICK,
      windowMs: 0,
      handle: null,
      end: null,
      drainReason: null,
      recordSeq: 4,
    }
    await perform(this.worker(), 'settle', input)
  }

  wait(durationMs: number): Promise<void> {
    return pause(durationMs)
  }
}

/** A store in memory and a rude provider. */
export class SendingPlace extends Senders {
  readonly world: ScriptedWorld

  constructor(wishes: Partial<WorldOptions> = {}) {
    const store = new MemoryStore(Date.now)
    const world = new ScriptedWorld({
      clock: new RealClock(),
      store,
      wares: [{ ...SPOT, stock: Infinity }],
      ...RUDE,
      capabilities: { idempotency: 'tag' },
      behave: () => ({ neverStarts: true }),
      ...wishes,
    })
    super(store, createScriptedBackend(world))
    this.world = world
  }

  order(): Order {
    return makeOrder({ store: this.store, offers: this.world.offers({}), timing: QUICK })
  }

  dispose(): void {
    this.world.dispose()
  }
}
