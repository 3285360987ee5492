import type { Backend } from '../../../backends/backend'
import { createBackendOver } from '../../../backends/lambda'
import type { LaunchRequest } from '../../../backends/lambda/api'
import type { LambdaConfig } from '../../../backends/lambda/config'
import type { LambdaDeps } from '../../../backends/lambda/host'
import { TAGS } from '../../../backends/lambda/machines'
import type { Order } from '../../../core/plan'
import { parseAttemptId, sendNameOf } from '../../../core/queues'
import { layout } from '../../../storage/layout'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { FakeLambda, refusal } from './fake-api'

export const LAMBDA_TRAITS: Traits = {
  looksForTags: true,
  startsLater: false,
  keepsLogs: false,
  tellsEnds: false,
  interruptsMachines: false,
  duplicatesAre: 'machines',
}

export const CONFIG: LambdaConfig = {
  apiKey: 'secret_of_a_test_1234',
  endpoint: 'http://127.0.0.1:9',
  types: ['*'],
  sshKey: 'crucible',
  staleForMs: 300,
  requestsPerSecond: 1_000,
  launchesPerMinute: 5,
}

const HAND_OVER = { url: 'https://store.example/hand-over', key: '0'.repeat(64) }

/** The backend over a fake of the API. */
export class LambdaHarness implements Harness {
  readonly lambda = new FakeLambda()
  readonly store = new MemoryStore(Date.now)
  readonly deps: LambdaDeps = { clock: Date.now, handOver: async () => HAND_OVER }
  readonly backend: Backend

  constructor(readonly config: LambdaConfig = { ...CONFIG, staleForMs: 0 }) {
    this.backend = createBackendOver(this.lambda.open, config, this.deps)
    // In the place of the runner, which finds its send's name on its machine.
    this.lambda.onLaunch = (request) => void this.claim(request)
  }

  private async claim({ tags }: LaunchRequest): Promise<void> {
    const tag = (name: string): string | undefined => tags.find(({ key }) => key === name)?.value
    const { jobId, attempt } = parseAttemptId(tag(TAGS.attempt) ?? '') ?? {}
    if (jobId === undefined || attempt === undefined) return
    const claim = { machine: 'unnamed-1', send: tag(TAGS.send) }
    await this.store.putIfAbsent(layout.claim(jobId, attempt), JSON.stringify(claim))
  }

  async reopen(): Promise<Backend> {
    return createBackendOver(this.lambda.open, this.config, this.deps)
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const offers = (await this.backend.offers({}, patiently())).slice(0, 1)
    const order = makeOrder({ store: this.store, offers, ...wanted })
    await issueOrder(this.store, order, Date.now())
    return order
  }

  private machinesOf(attemptId: string): number {
    const { instances, ended } = this.lambda
    const isOf = ({ tags }: (typeof instances)[number]): boolean =>
      tags.some(({ key, value }) => key === TAGS.attempt && value === attemptId)
    return [...instances, ...ended].filter(isOf).length
  }

  async startsOf(attemptId: string): Promise<number> {
    return this.machinesOf(attemptId)
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.lambda.instances.filter(({ tags }) => tags.some(({ value }) => value === attemptId)).length
  }

  async fill(): Promise<void> {
    this.lambda.stock = 0
  }

  async breakDown(): Promise<void> {
    this.lambda.before.set('*', () => Promise.reject(refusal(401, 'global/invalid-api-key')))
  }

  stall(): void {
    this.lambda.stall()
  }

  failNextLaunch(): void {
    this.lambda.failNext('launch', refusal(429, 'global/rate-limit-exceeded'))
  }

  launchesSent(): number {
    return this.lambda.calls.filter((name) => name === 'launch').length
  }

  loseNextAnswer(): boolean {
    this.lambda.loseNext('launch')
    return true
  }

  async duplicate({ attemptId }: Order): Promise<void> {
    const first = this.lambda.launches.find(({ name }) => name === attemptId)!
    const send = sendNameOf(attemptId, 2)
    const tags = first.tags.map(({ key, value }) => ({
      key,
      value: key === TAGS.send ? send : key === TAGS.at ? String(Number(value) + 1) : value,
    }))
    this.lambda.launch({ ...first, hostname: send, tags })
  }

  async dispose(): Promise<void> {}
}
