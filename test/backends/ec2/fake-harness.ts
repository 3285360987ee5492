import type { Backend } from '../../../backends/backend'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { Ec2Deps } from '../../../backends/ec2/host'
import { createBackendOver } from '../../../backends/ec2'
import type { Order } from '../../../core/plan'
import { until } from '../../support/until'
import { patiently, type Harness, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { layout } from '../../../storage/layout'
import { MemoryStore } from '../scripted/memory-store'
import { FakeAws } from './fake-api'
import { poolKey, reservations, SUBNETS, TYPES } from './fake-market'
import { CONFIG } from './harness'
import { capacityTypeOf, offersFor, type Way } from './ways'

const STUCK = 'sleep 600'
const DEPLOYMENT = 'test'

interface Spec {
  jobId: string
  attempt: number
  machineId: string
}

/** The backend over an AWS that behaves, at the boundary of its own terms. */
export class FakeHarness implements Harness {
  readonly aws: FakeAws
  readonly store = new MemoryStore(Date.now)
  readonly backend: Backend

  constructor(
    readonly config: Partial<Ec2Config> = {},
    readonly deps: Partial<Ec2Deps> = {},
    /** How machines are bought where a test does not care; with reservations where it is given. */
    private readonly way?: Way,
  ) {
    this.aws = new FakeAws(deps.clock ?? Date.now)
    if (way !== undefined) this.aws.reservations = reservations(this.aws.now())
    this.aws.onCommand = (machine, { comment, lines }) => {
      if (comment.startsWith('crucible start ')) {
        machine.startRunner()
        void this.#claim(lines.join('\n'))
      }
      return {}
    }
    this.backend = this.open()
  }

  /** As the runner does, by the id that it is given. */
  async #claim(script: string): Promise<void> {
    const [, text] = /b64decode\("([^"]+)"\)/.exec(script)!
    const { jobId, attempt, machineId } = JSON.parse(Buffer.from(text!, 'base64').toString()) as Spec
    await this.store.putIfAbsent(layout.claim(jobId, attempt), JSON.stringify({ machine: machineId }))
  }

  open(deps: Partial<Ec2Deps> = {}): Backend {
    return createBackendOver(
      this.aws.api(),
      { ...CONFIG, ...this.config },
      {
        clock: Date.now,
        runnerUrl: async (sha256) => `https://store.example/${sha256}`,
        ...this.deps,
        ...deps,
      },
    )
  }

  async reopen(): Promise<Backend> {
    return this.open()
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { way = 'on-demand' } = this
    const { capacityType = capacityTypeOf(way), deployment = DEPLOYMENT, isStuck = false, ...rest } = wanted
    const offers = await this.backend.offers({}, patiently())
    const order = makeOrder({
      store: this.store,
      offers: offersFor(offers, way, capacityType),
      run: isStuck ? STUCK : 'train',
      runnerStart: 'after-launch',
      deployment,
      ...rest,
    })
    await issueOrder(this.store, order, Date.now())
    if (isStuck) this.#stuck(order.attemptId)
    return order
  }

  /** The machine of this attempt never comes up. */
  #stuck(attemptId: string): void {
    const add = this.aws.add.bind(this.aws)
    this.aws.add = (request, pool) => {
      const machine = add(request, pool)
      machine.isStuck = request.tags['crucible:attempt'] === attemptId
      return machine
    }
  }

  async startsOf(attemptId: string): Promise<number> {
    const machines = this.aws.machinesOf(attemptId)
    await until(() => machines.every(({ state }) => state !== 'pending'))
    return Math.max(
      machines.length,
      machines.reduce((sum, { starts }) => sum + starts, 0),
    )
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.aws.machinesOf(attemptId).filter(({ state }) => state !== 'terminated').length
  }

  async fill(): Promise<void> {
    for (const capacityType of ['spot', 'on-demand'])
      for (const { name } of TYPES)
        for (const { id } of SUBNETS)
          this.aws.empty.set(poolKey(capacityType, name, id), 'InsufficientInstanceCapacity')
    this.aws.reservations = this.aws.reservations.map((one) => ({ ...one, free: 0 }))
  }

  async breakDown(): Promise<void> {
    this.aws.isBroken = true
  }

  get #launchCall(): string {
    return capacityTypeOf(this.way ?? 'on-demand') === 'reserved' ? 'runReserved' : 'createFleet'
  }

  stall(): void {
    this.aws.faults.push({ call: this.#launchCall, when: 'hangs' })
  }

  failNextLaunch(): void {
    this.aws.fail(this.#launchCall, 'RequestLimitExceeded', { httpStatus: 503 })
  }

  /** A first fleet that finds no template has not been a launch. */
  launchesSent(): number {
    return this.aws.countOf(this.#launchCall) - this.aws.countOf('createTemplate')
  }

  loseNextAnswer(): boolean {
    this.aws.faults.push({ call: this.#launchCall, when: 'after' })
    return true
  }

  /** As a second worker with other data would, whose order has another token. */
  async duplicate({ attemptId }: Order): Promise<void> {
    const [machine] = this.aws.machinesOf(attemptId)
    const { capacityType, tags, type, subnet = SUBNETS[0]!.id } = machine!.view()
    this.aws.add({ capacityType, tags }, { type, subnet })
  }

  async dispose(): Promise<void> {
    // It is all in memory.
  }
}
