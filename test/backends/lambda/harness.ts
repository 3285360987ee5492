import type { Backend } from '../../../backends/backend'
import { createBackendOver } from '../../../backends/lambda'
import type { LaunchRequest } from '../../../backends/lambda/api'
import type { LambdaConfig } from '../../../backends/lambda/config'
import type { LambdaDeps } from '../../../backends/lambda/host'
import { TAGS } from '../../../backends/lambda/machines'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import { layout } from '../../../storage/layout'
import { cloudInit } from '../../../backends/bootstrap'
import { parametersOfUserData, readHandOver } from '../../support/user-data'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { FakeLambda, refusal } from './fake-api'
import { TestHandOvers } from './hand-overs'

export const LAMBDA_TRAITS: Traits = {
  looksForTags: true,
  startsLater: false,
  keepsLogs: false,
  tellsEnds: false,
  interruptsMachines: false,
  queues: false,
  billsUntilCalled: true,
  confirmsEnds: true,
  takesHandOvers: true,
  duplicatesAre: 'machines',
}

export const CONFIG: LambdaConfig = {
  apiKey: 'secret_of_a_test_1234',
  endpoint: 'http://127.0.0.1:9',
  types: ['*'],
  sshKey: 'crucible',
  staleForMs: 300,
  requestsPerSecond: 1_000,
  launchesPerMinute: 60_000,
}

/** The backend over a fake of the API. */
export class LambdaHarness implements Harness {
  readonly lambda = new FakeLambda()
  readonly store = new MemoryStore(Date.now)
  readonly handOvers = new TestHandOvers(this.store, {
    keptOf: (attemptId) =>
      this.launchesOf(attemptId).map(({ user_data: userData, ...rest }) => ({
        userData,
        rest: JSON.stringify(rest),
      })),
    repeatSend: async ({ attemptId }) => void this.lambda.launch(this.launchesOf(attemptId).at(-1)!),
    takenOf: async (attemptId) => {
      await Promise.all(this.starting)
      return this.taken.filter((one) => one === attemptId).length
    },
  })
  readonly deps: LambdaDeps = { clock: Date.now, handOver: this.handOvers.issue }
  readonly backend: Backend
  private readonly starting: Promise<void>[] = []
  private readonly taken: string[] = []
  private readonly stuck = new Set<string>()

  constructor(readonly config: LambdaConfig = { ...CONFIG, staleForMs: 0 }) {
    this.backend = createBackendOver(this.lambda.open, config, this.deps)
    this.lambda.onLaunch = (request) => this.starting.push(this.start(request))
  }

  private launchesOf(attemptId: string): LaunchRequest[] {
    return this.lambda.launches.filter(({ name }) => name === attemptId)
  }

  /** As the bootstrap: reads and deletes the hand-over, and claims the attempt; without it, nothing. */
  private async start({ user_data: userData, name }: LaunchRequest): Promise<void> {
    if (this.stuck.has(name)) return
    const parameters = parametersOfUserData(userData)
    const told = await readHandOver(parameters, (method, url) => this.store.ask(method, url))
    if (told === undefined) return
    await this.store.ask('DELETE', told.deleteUrl)
    this.taken.push(told.attemptId)
    const claim = { machine: 'unnamed-1', send: parameters.send }
    await this.store.putIfAbsent(layout.claim(told.jobId, told.attempt), JSON.stringify(claim))
  }

  async reopen(): Promise<Backend> {
    return createBackendOver(this.lambda.open, this.config, this.deps)
  }

  async order({ isStuck = false, ...wanted }: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const offers = (await this.backend.offers({}, patiently())).slice(0, 1)
    const order = makeOrder({ store: this.store, offers, ...wanted })
    if (isStuck) this.stuck.add(order.attemptId)
    await issueOrder(this.store, order, Date.now())
    return order
  }

  private machinesOf(attemptId: string): number {
    const { instances, ended } = this.lambda
    const isOf = ({ tags }: (typeof instances)[number]): boolean =>
      tags.some(({ key, value }) => key === TAGS.attempt && value === attemptId)
    return [...instances, ...ended].filter(isOf).length
  }

  billedToMs(attemptId: string): number | undefined {
    const isBilled = this.lambda.instances.some(({ tags }) => tags.some(({ value }) => value === attemptId))
    return isBilled ? undefined : Date.now()
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

  async duplicate(order: Order): Promise<void> {
    const { attemptId } = order
    const first = this.lambda.launches.find(({ name }) => name === attemptId)!
    const send = sendNameOf(attemptId, 2)
    const handOver = await this.handOvers.issue(order, send)
    const tags = first.tags.map(({ key, value }) => ({
      key,
      value: key === TAGS.send ? send : key === TAGS.at ? String(Number(value) + 1) : value,
    }))
    const user_data = cloudInit(handOver, { attemptId, send })
    this.lambda.launch({ ...first, hostname: send, tags, user_data })
  }

  async dispose(): Promise<void> {}
}
