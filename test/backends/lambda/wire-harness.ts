import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { cloudInit } from '../../../backends/bootstrap'
import { createLambdaBackend } from '../../../backends/lambda'
import type { LambdaConfig } from '../../../backends/lambda/config'
import type { LambdaDeps } from '../../../backends/lambda/host'
import { TAGS } from '../../../backends/lambda/machines'
import type { HandOver } from '../../../backends/registry'
import type { HandOverDocument } from '../../../core/documents'
import type { Order } from '../../../core/plan'
import { sendNameOf } from '../../../core/queues'
import { sealSecrets } from '../../../storage/secrets'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { until } from '../../support/until'
import { patiently, type Harness, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG } from './harness'

/** In the place of the runner: notes that it was started, and stays until it is told to end. */
const STAND_IN = `import os, sys, time
if sys.argv[1] == "run":
    root = sys.argv[sys.argv.index("--root") + 1]
    with open(os.path.join(root, "starts"), "a") as file:
        file.write("x")
time.sleep(600)
`
const STAND_IN_SHA256 = createHash('sha256').update(STAND_IN).digest('hex')
const dataUrl = (body: string | Buffer): string =>
  `data:application/octet-stream;base64,${Buffer.from(body).toString('base64')}`

const TYPE = 'gpu_1x_a10'
const REGION = 'us-east-1'
const STOCK = 5
const at = (ms: number): [number, number] => [ms, ms]
export const DURATIONS = { pending: at(30), boot: at(10), shuttingDown: at(30), osShutdown: at(500) }
const WORLD: WorldText = {
  durations: DURATIONS,
  lambda: { throttling: 'off', stock: [{ count: 0 }, { type: TYPE, region: REGION, count: STOCK }] },
}

/** The machines reach no store of this process; what the runner would claim there is on their disks. */
class ClaimedStore extends MemoryStore {
  constructor(private readonly sendOf: (attemptId: string) => string | undefined) {
    super(Date.now)
  }

  override async get(key: string): Promise<Buffer | undefined> {
    const [, jobId, attempt] = /^jobs\/([^/]+)\/attempts\/(\d+)\/claim\.json$/.exec(key) ?? []
    if (jobId === undefined) return super.get(key)
    const send = this.sendOf(`${jobId}-${attempt}`)
    return send === undefined ? undefined : Buffer.from(JSON.stringify({ machine: 'unnamed-1', send }))
  }
}

/** What a machine is handed over: all of it in the URL. */
export async function handOver({ jobId, attempt, attemptId, storeUrl }: Order): Promise<HandOver> {
  const key = randomBytes(32)
  const document: HandOverDocument = {
    ...{ version: 1, jobId, attempt, attemptId, storeUrl },
    ...{ runnerSha256: STAND_IN_SHA256, runnerUrl: dataUrl(STAND_IN) },
    // Nothing is left to delete.
    deleteUrl: 'file:///no-such-hand-over',
    ...{ key: '0'.repeat(64), grant: null, startMs: 600_000, endMs: 600_000, stopSeconds: 1 },
  }
  const sealed = sealSecrets(key, { handOver: JSON.stringify(document) }, randomBytes(16))
  return { url: dataUrl(sealed), key: key.toString('hex') }
}

const DEPS: LambdaDeps = { clock: Date.now, handOver }

/** The backend over HTTP, to a cloud whose machines really run what they are sent. */
export class WireHarness implements Harness {
  readonly store = new ClaimedStore((attemptId) => this.#claimOf(attemptId))

  private constructor(
    readonly cloud: Cloud,
    readonly directory: string,
    readonly config: LambdaConfig,
    readonly backend: Backend,
  ) {}

  static async make(world: WorldText = {}, changes: Partial<LambdaConfig> = {}): Promise<WireHarness> {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-lambda-'))
    const merged = { ...WORLD, ...world, lambda: { ...WORLD.lambda, ...world.lambda } }
    const cloud = await startCloud({ world: merged, directory })
    const { endpoint, apiKey } = cloud.providers['lambda']!
    const config = { ...CONFIG, endpoint: endpoint!, apiKey: apiKey!, ...changes }
    return new WireHarness(cloud, directory, config, await createLambdaBackend(config, DEPS))
  }

  reopen(changes: Partial<LambdaConfig> = {}, deps: Partial<LambdaDeps> = {}): Promise<Backend> {
    return createLambdaBackend({ ...this.config, ...changes }, { ...DEPS, ...deps })
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { isStuck = false, ...rest } = wanted
    const offers = await this.backend.offers({}, patiently())
    const order = makeOrder({
      ...{ store: this.store, offers: offers.filter(({ type }) => type === TYPE).slice(0, 1) },
      ...rest,
    })
    await issueOrder(this.store, order, Date.now())
    if (isStuck)
      this.cloud.addFault({ fault: 'no-boot', where: { tags: { [TAGS.attempt]: order.attemptId } } })
    return order
  }

  instancesOf(attemptId: string): ReturnType<Cloud['instances']> {
    return this.cloud.instances().filter(({ tags }) => tags[TAGS.attempt] === attemptId)
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

  #claimOf(attemptId: string): string | undefined {
    const machine = this.instancesOf(attemptId).find(({ id }) => this.read(id, attemptId, 'starts') !== '')
    return machine && this.read(machine.id, attemptId, 'send-name').trim()
  }

  /** A file of the runner's directory on a machine; empty when there is none. */
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

  /** Launches behind the backend's back. */
  async #launch(change: object): Promise<void> {
    const answer = await fetch(`${this.config.endpoint}/api/v1/instance-operations/launch`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${this.config.apiKey}`, 'user-agent': 'another client' },
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        ...{ region_name: REGION, instance_type_name: TYPE, ssh_key_names: ['crucible'] },
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

  /** As a second send that nobody knows of. */
  async duplicate(order: Order): Promise<void> {
    const { attemptId } = order
    const { tags } = this.instancesOf(attemptId)[0]!
    const send = sendNameOf(attemptId, 2)
    const changed = { ...tags, [TAGS.send]: send, [TAGS.at]: String(Number(tags[TAGS.at]) + 1) }
    await this.#launch({
      ...{ hostname: send, name: attemptId },
      user_data: cloudInit(await handOver(order), { attemptId, send }),
      tags: Object.entries(changed).map(([key, value]) => ({ key, value })),
    })
  }

  async dispose(): Promise<void> {
    await this.cloud.stop()
    rmSync(this.directory, { recursive: true, force: true })
  }
}
