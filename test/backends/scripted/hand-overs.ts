import { createHash } from 'node:crypto'
import type { HandOver } from '../../../backends/registry'
import type { Order } from '../../../core/job/plan'
import { layout } from '../../../storage/layout'
import { handOvers } from '../../../service/hand-over'
import { filesOfUserData } from '../../support/user-data'
import { until } from '../../support/until'
import type { HandOversHarness } from '../harness'
import type { MemoryStore } from './memory-store'
import type { HandOvers, ScriptedWorld } from './world'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const keyOf = (attemptId: string): string => digest(`the key of ${attemptId}`).toString('hex')
const grantOf = (attemptId: string): string => `the grant of ${attemptId}`

/** Hand-overs of a scripted world whose store is in memory: real ones, with keys that depend on the names only. */
export class ScriptedHandOvers implements HandOvers, HandOversHarness {
  readonly issued: HandOver[] = []
  #isNextDeleted = false

  constructor(
    private readonly store: MemoryStore,
    private readonly world: () => ScriptedWorld,
  ) {}

  async issue(order: Order, send: string): Promise<HandOver> {
    const issue = handOvers({
      store: this.store,
      secrets: { keyOf, handOverKeyOf: (name) => digest(`the key of the send ${name}`) },
      grants: { grantFile: async ({ attemptId }) => grantOf(attemptId) },
      now: () => this.world().clock.now(),
    })
    const handOver = await issue(order, send)
    this.issued.push(handOver)
    if (this.#isNextDeleted) await this.store.delete(layout.handOver(order.jobId, order.attempt, send))
    this.#isNextDeleted = false
    return handOver
  }

  ask(method: 'GET' | 'DELETE', url: string): Promise<Buffer | undefined> {
    return this.store.ask(method, url)
  }

  read(url: string): Promise<Buffer | undefined> {
    return this.ask('GET', url)
  }

  deleteNext(): void {
    this.#isNextDeleted = true
  }

  keptOf(attemptId: string): string {
    return this.world()
      .machinesOf(attemptId)
      .map(({ handle, userData }) => {
        const files = filesOfUserData(userData!).map(({ text }) => text)
        return [JSON.stringify(handle), ...files].join('\n')
      })
      .join('\n')
  }

  secretsOf(attemptId: string): string[] {
    return [keyOf(attemptId), grantOf(attemptId)]
  }

  async repeatSend(order: Order): Promise<void> {
    const { userData, handle } = this.world().machinesOf(order.attemptId).at(-1)!
    this.world().duplicate(order, { send: handle.send, userData })
  }

  async takenOf(attemptId: string): Promise<number> {
    const machines = this.world().machinesOf(attemptId)
    await until(() => machines.every(({ taken }) => taken !== undefined))
    return machines.filter(({ taken }) => taken === 'taken').length
  }
}
