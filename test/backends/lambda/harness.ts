import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { cloudInit } from '../../../backends/bootstrap'
import { createLambdaBackend } from '../../../backends/lambda'
import type { LambdaConfig } from '../../../backends/lambda/config'
import type { LambdaDeps } from '../../../backends/lambda/host'
import type { LaunchRequest } from '../../../backends/lambda/api'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import { layout } from '../../../storage/layout'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import type { MachineSpec } from '../../../packages/small-cloud/src/machines/machine'
import { until } from '../../support/until'
import { PaperMachine } from '../../../packages/small-cloud/test/support'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { TestHandOvers } from './hand-overs'
import { WireStore } from './wire-store'

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

/** In the place of the runner: records that it was started, and runs until it is ended. */
const STAND_IN = `import os, sys, time
if sys.argv[1] == "run":
    root = sys.argv[sys.argv.index("--root") + 1]
    with open(os.path.join(root, "starts"), "a") as file:
        file.write("x")
    open(os.path.join(root, "runner.json"), "w").close()
time.sleep(600)
`
const STAND_IN_SHA256 = createHash('sha256').update(STAND_IN).digest('hex')

const TYPE = 'gpu_1x_a10'
const REGION = 'us-east-1'
const STOCK = 5
const at = (ms: number): [number, number] => [ms, ms]
export const DURATIONS = { pending: at(30), boot: at(10), shuttingDown: at(30), osShutdown: at(500) }
const WORLD: WorldText = {
  durations: DURATIONS,
  lambda: { throttling: 'off', stock: [{ count: 0 }, { type: TYPE, region: REGION, count: STOCK }] },
}

export interface HarnessOptions {
  world?: WorldText
  config?: Partial<LambdaConfig>
  /** Machines without processes, for tests that only count them. */
  isOnPaper?: boolean
}

/** The backend over HTTP, to a cloud whose machines really run what they are sent. */
export class LambdaHarness implements Harness {
  readonly store = new WireStore((attemptId) => this.#claimantOf(attemptId))
  readonly handOvers = new TestHandOvers(this.store, {
    keptOf: (attemptId) =>
      this.launchesOf(attemptId).map(({ user_data: userData, ...rest }) => ({
        userData,
        rest: JSON.stringify(rest),
      })),
    repeatSend: (order) => this.#launch(this.launchesOf(order.attemptId).at(-1)!),
    takenOf: async (attemptId) => {
      const isDecided = ({ id, isImpaired }: { id: string; isImpaired: boolean }): boolean =>
        isImpaired || this.read(id, attemptId, 'starts') !== ''
      await until(() => this.instancesOf(attemptId).every(isDecided))
      return this.instancesOf(attemptId).filter(({ isImpaired }) => !isImpaired).length
    },
  })
  readonly deps: LambdaDeps = { clock: Date.now, handOver: this.handOvers.issue }
  backend!: Backend

  private constructor(
    readonly cloud: Cloud,
    readonly directory: string,
    readonly config: LambdaConfig,
  ) {}

  static async make({
    world = {},
    config = {},
    isOnPaper = false,
  }: HarnessOptions = {}): Promise<LambdaHarness> {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-lambda-'))
    const merged = { ...WORLD, ...world, lambda: { ...WORLD.lambda, ...world.lambda } }
    const createMachine = isOnPaper ? (spec: MachineSpec) => new PaperMachine(spec) : undefined
    const cloud = await startCloud({ world: merged, directory, createMachine })
    const { endpoint, apiKey } = cloud.providers['lambda']!
    const all = { ...CONFIG, endpoint: endpoint!, apiKey: apiKey!, ...config }
    const made = new LambdaHarness(cloud, directory, all)
    await made.store.listen()
    await made.store.put(layout.runner(STAND_IN_SHA256), STAND_IN)
    made.backend = await made.reopen()
    return made
  }

  reopen(changes: Partial<LambdaConfig> = {}): Promise<Backend> {
    return createLambdaBackend({ ...this.config, ...changes }, this.deps)
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { isStuck = false, ...rest } = wanted
    const offers = await this.backend.offers({}, patiently())
    const order = makeOrder({
      store: this.store,
      offers: offers.filter(({ type }) => type === TYPE).slice(0, 1),
      runnerSha256: STAND_IN_SHA256,
      ...rest,
    })
    await issueOrder(this.store, order, Date.now())
    if (isStuck)
      this.cloud.addFault({ fault: 'no-boot', where: { tags: { 'crucible:attempt': order.attemptId } } })
    return order
  }

  instancesOf(attemptId: string): ReturnType<Cloud['instances']> {
    return this.cloud.instances().filter(({ tags }) => tags['crucible:attempt'] === attemptId)
  }

  billedToMs(attemptId: string): number | undefined {
    return this.instancesOf(attemptId)[0]?.bill.untilMs
  }

  async startsOf(attemptId: string): Promise<number> {
    await until(() =>
      this.instancesOf(attemptId).every(
        ({ id, state }) =>
          !['booting', 'active'].includes(state) || this.read(id, attemptId, 'starts').length > 0,
      ),
    )
    const machines = this.instancesOf(attemptId)
    const runners = machines.reduce((sum, { id }) => sum + this.read(id, attemptId, 'starts').length, 0)
    return Math.max(machines.length, runners)
  }

  /** The name with which the machine of the stand-in claims. */
  #claimantOf(attemptId: string): string | undefined {
    const machine = this.instancesOf(attemptId).find(({ id }) => this.read(id, attemptId, 'starts') !== '')
    return machine && this.read(machine.id, attemptId, 'send-name').trim()
  }

  /** A file of the runner's directory on a machine; empty without one. */
  read(machineId: string, attemptId: string, name: string): string {
    try {
      return readFileSync(join(this.directory, machineId, 'var/lib/crucible', attemptId, name), 'utf8')
    } catch {
      return ''
    }
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.instancesOf(attemptId).filter(({ state }) => state !== 'terminated').length
  }

  async fill(): Promise<void> {
    const taken = this.cloud.instances().filter(({ state }) => state !== 'terminated').length
    for (let free = STOCK - taken; free > 0; free--) await this.#launch({})
  }

  /** What was asked of the provider for an attempt. */
  launchesOf(attemptId: string): LaunchRequest[] {
    return this.cloud.journal
      .calls({ service: 'lambda', action: 'launch' })
      .map(({ parameters }) => parameters as LaunchRequest)
      .filter(({ name }) => name === attemptId)
  }

  /** Launches behind the backend's back. */
  async #launch(change: object): Promise<void> {
    const answer = await fetch(`${this.config.endpoint}/api/v1/instance-operations/launch`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.config.apiKey}`,
        'user-agent': 'another client',
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        region_name: REGION,
        instance_type_name: TYPE,
        ssh_key_names: ['crucible'],
        ...change,
      }),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }

  async breakDown(): Promise<void> {
    const where = { service: 'lambda' } as const
    this.cloud.addFault({ fault: 'error', code: 'global/account-inactive', status: 403, where })
  }

  stall(): void {
    const where = { service: 'lambda', action: 'launch' } as const
    this.cloud.addFault({ fault: 'lost-answer', instead: 'silence', times: 1, where })
  }

  failNextLaunch(): void {
    const where = { service: 'lambda', action: 'launch' } as const
    const code = 'global/rate-limit-exceeded'
    this.cloud.addFault({ fault: 'error', code, status: 429, times: 1, where })
  }

  launchesSent(): number {
    return this.cloud.journal.calls({ service: 'lambda', action: 'launch' }).length
  }

  loseNextAnswer(): boolean {
    const where = { service: 'lambda', action: 'launch' } as const
    this.cloud.addFault({ fault: 'lost-answer', times: 1, where })
    return true
  }

  /** As a second send that is not on record. */
  async duplicate(order: Order): Promise<void> {
    const { attemptId } = order
    const { tags } = this.instancesOf(attemptId)[0]!
    const send = sendNameOf(attemptId, 2)
    const changed = { ...tags, 'crucible:send': send, 'crucible:at': String(Number(tags['crucible:at']) + 1) }
    await this.#launch({
      hostname: send,
      name: attemptId,
      user_data: cloudInit(await this.handOvers.issue(order, send), { attemptId, send }),
      tags: Object.entries(changed).map(([key, value]) => ({ key, value })),
    })
  }

  async dispose(): Promise<void> {
    await this.cloud.stop()
    await this.store.close()
    rmSync(this.directory, { recursive: true, force: true })
  }
}
