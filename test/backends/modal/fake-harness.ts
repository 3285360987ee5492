import type { Backend } from '../../../backends/backend'
import { createBackendOver } from '../../../backends/modal'
import { RUN_MS_MAX, type ModalConfig } from '../../../backends/modal/config'
import type { JobRequest } from '../../../backends/modal/documents'
import type { ModalDeps } from '../../../backends/modal/host'
import type { Order } from '../../../core/job/plan'
import { layout } from '../../../storage/layout'
import { parametersOfVariable, readHandOver, type BootstrapParameters } from '../../support/user-data'
import { patiently, type Harness, type WantedOrder } from '../harness'
import { TestHandOvers } from '../lambda/hand-overs'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { FakeGateway, proxyAnswer, refusal } from './fake-gateway'

export const CONFIG: ModalConfig = {
  ...{ url: 'http://127.0.0.1:9', token: { key: 'wk-0123456789', secret: 'ws-secret' }, gpus: ['T4'] },
  ...{ runMsMax: RUN_MS_MAX, hasCache: true, imageSecrets: {}, cacheUnusedMs: 7 * 86_400_000 },
}

/** The parameters of the bootstrap in a container's variables. */
export function parametersOfContainer({ env }: Pick<JobRequest, 'env'>): BootstrapParameters {
  return parametersOfVariable(env['CRUCIBLE_BOOTSTRAP']!)
}

/** The backend over a fake of the gateway. */
export class FakeHarness implements Harness {
  readonly modal = new FakeGateway()
  readonly config: ModalConfig = { ...CONFIG }
  readonly store = new MemoryStore(Date.now)
  readonly handOvers = new TestHandOvers(this.store, {
    keptOf: (attemptId) =>
      this.modal.submits
        .filter(({ key }) => key === attemptId)
        .map(({ request }) => ({
          userData: '#cloud-config\n{"write_files":[]}',
          rest: JSON.stringify([request, parametersOfContainer(request)]),
        })),
    repeatSend: async (order) => void (await this.backend.launch(order, patiently())),
    takenOf: async (attemptId) => {
      await Promise.all(this.starting)
      return this.taken.filter((one) => one === attemptId).length
    },
  })
  readonly deps: ModalDeps = { clock: Date.now, handOver: this.handOvers.issue }
  readonly backend: Backend
  private readonly starting: Promise<void>[] = []
  private readonly taken: string[] = []
  private readonly stuck = new Set<string>()

  constructor() {
    this.backend = createBackendOver(this.modal.open, this.config, this.deps)
    this.modal.onStart = (request, key) => this.starting.push(this.start(request, key))
  }

  async reopen(): Promise<Backend> {
    return createBackendOver(this.modal.open, this.config, this.deps)
  }

  async order({ isStuck = false, ...wanted }: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const offers = (await this.backend.offers({}, patiently())).slice(0, 1)
    const order = makeOrder({ store: this.store, offers, ...wanted })
    if (isStuck) this.stuck.add(order.attemptId)
    await issueOrder(this.store, order, Date.now())
    return order
  }

  /** As the bootstrap: reads and deletes the hand-over, and claims the attempt; without it, ends. */
  private async start(request: JobRequest, key: string): Promise<void> {
    if (this.stuck.has(key)) return
    const told = await readHandOver(parametersOfContainer(request), (method, url) =>
      this.store.ask(method, url),
    )
    if (told === undefined) return this.modal.end(key, 'ended', 0)
    await this.store.ask('DELETE', told.deleteUrl)
    this.taken.push(told.attemptId)
    await this.store.putIfAbsent(layout.claim(told.jobId, told.attempt), JSON.stringify({ machine: key }))
  }

  async startsOf(attemptId: string): Promise<number> {
    await Promise.all(this.starting)
    return this.modal.sandboxesOf(attemptId).length
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.modal.sandboxesOf(attemptId).filter(({ isRunning }) => isRunning).length
  }

  async fill(): Promise<void> {
    this.modal.isFull = true
  }

  holdQueue(): () => void {
    this.modal.isFull = true
    return () => this.modal.release()
  }

  async breakDown(): Promise<void> {
    this.modal.before.set('*', () => Promise.reject(proxyAnswer(404, 'modal-http: app not found')))
  }

  stall(): void {
    this.modal.stall()
  }

  failNextLaunch(): void {
    this.modal.failNext('submit', refusal(429, 'rate-limited'))
  }

  launchesSent(): number {
    return this.modal.calls.filter((name) => name === 'submit').length
  }

  /** The backend asks the gateway what it knows. */
  loseNextAnswer(): boolean {
    this.modal.loseNext('submit')
    return false
  }

  async duplicate({ attemptId }: Order): Promise<void> {
    this.modal.addSandbox(attemptId)
  }

  async dispose(): Promise<void> {}
}
