import { createHash } from 'node:crypto'
import type { HandOver } from '../../../backends/registry'
import type { Order } from '../../../core/job/plan'
import { layout } from '../../../storage/layout'
import { handOvers } from '../../../service/hand-over'
import { filesOfUserData } from '../../support/user-data'
import type { HandOversHarness } from '../harness'
import type { MemoryStore } from '../scripted/memory-store'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const keyOf = (attemptId: string): string => digest(`the key of ${attemptId}`).toString('hex')
const grantOf = (attemptId: string): string => `the grant of ${attemptId}`

/** What a provider of a test knows of its machines. */
export interface Machines {
  /** All that it keeps of the machines of an attempt; `userData` apart. */
  keptOf(attemptId: string): { userData: string; rest: string }[]
  repeatSend(order: Order): Promise<void>
  takenOf(attemptId: string): Promise<number>
}

/** Real hand-overs, in the store of a test. */
export class TestHandOvers implements HandOversHarness {
  readonly issued: HandOver[] = []
  #isNextDeleted = false

  constructor(
    private readonly store: MemoryStore,
    private readonly machines: Machines,
  ) {}

  readonly issue = async (order: Order, send: string): Promise<HandOver> => {
    const issue = handOvers({
      store: this.store,
      secrets: { keyOf, handOverKeyOf: (name) => digest(`the key of the send ${name}`) },
      grants: { grantFile: async ({ attemptId }) => grantOf(attemptId) },
      now: Date.now,
    })
    const handOver = await issue(order, send)
    this.issued.push(handOver)
    if (this.#isNextDeleted) await this.store.delete(layout.handOver(order.jobId, order.attempt, send))
    this.#isNextDeleted = false
    return handOver
  }

  read(url: string): Promise<Buffer | undefined> {
    return this.store.ask('GET', url)
  }

  deleteNext(): void {
    this.#isNextDeleted = true
  }

  keptOf(attemptId: string): string {
    return this.machines
      .keptOf(attemptId)
      .flatMap(({ userData, rest }) => [rest, ...filesOfUserData(userData).map(({ text }) => text)])
      .join('\n')
  }

  secretsOf(attemptId: string): string[] {
    return [keyOf(attemptId), grantOf(attemptId)]
  }

  repeatSend(order: Order): Promise<void> {
    return this.machines.repeatSend(order)
  }

  takenOf(attemptId: string): Promise<number> {
    return this.machines.takenOf(attemptId)
  }
}
