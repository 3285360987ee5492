import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { createEc2Backend } from '../../../backends/ec2'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { Ec2Deps } from '../../../backends/ec2/host'
import { createSdkApi } from '../../../backends/ec2/sdk'
import { readUserData, templateSpec, type TemplateFacts } from '../../../backends/ec2/template'
import type { Order } from '../../../core/plan'
import { startCloud, type Cloud, type WorldText } from '../../../sim'
import { until } from '../../support/until'
import { patiently, type Harness, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG } from './harness'

const DEPLOYMENT = 'test'
const ROLE = 'crucible-machine'
const TYPE = 'g5.xlarge'

/** In the place of the runner: notes that it was started and that it was told to end, and stays until then. */
const STAND_IN = `import os, signal, sys, time
root = sys.argv[sys.argv.index("--root") + 1]
with open(os.path.join(root, "starts"), "a") as file:
    file.write("x")
def end(*_):
    open(os.path.join(root, "ended"), "w").write("x")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
time.sleep(600)
`
const STAND_IN_SHA256 = createHash('sha256').update(STAND_IN).digest('hex')

const at = (ms: number): [number, number] => [ms, ms]
const WORLD: WorldText = {
  durations: {
    ...{ pending: at(30), boot: at(10), register: at(10), delivery: at(10), shuttingDown: at(30) },
    ...{ osShutdown: at(500), statusChecks: at(10) },
  },
  regions: { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], groups: [ROLE] } },
  roles: {
    [ROLE]: { managed: ['AmazonSSMManagedInstanceCore'], hasProfile: true, trusts: ['ec2.amazonaws.com'] },
  },
  throttling: 'off',
}

/** The machines reach no store of this process; what the runner would claim there is on their disks. */
class ClaimedStore extends MemoryStore {
  constructor(private readonly claimOf: (attemptId: string) => string | undefined) {
    super(Date.now)
  }

  override async get(key: string): Promise<Buffer | undefined> {
    const [, jobId, attempt] = /^jobs\/([^/]+)\/attempts\/(\d+)\/claim\.json$/.exec(key) ?? []
    if (jobId === undefined) return super.get(key)
    const machine = this.claimOf(`${jobId}-${attempt}`)
    return machine === undefined ? undefined : Buffer.from(JSON.stringify({ machine }))
  }
}

/** The backend over the SDK, and that over the wire, to a cloud whose machines really run what they are sent. */
export class WireHarness implements Harness {
  readonly store = new ClaimedStore((attemptId) => this.#claimOf(attemptId))
  #hasTemplate = false

  private constructor(
    readonly cloud: Cloud,
    readonly directory: string,
    readonly config: Ec2Config,
    readonly backend: Backend,
  ) {}

  static async make(world: WorldText = {}, changes: Partial<Ec2Config> = {}): Promise<WireHarness> {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-wire-'))
    const cloud = await startCloud({ world: { ...WORLD, ...world }, directory })
    // Where the SDK looks for them.
    process.env['AWS_ACCESS_KEY_ID'] = cloud.credentials.accessKeyId
    process.env['AWS_SECRET_ACCESS_KEY'] = cloud.credentials.secretAccessKey
    const config = {
      ...CONFIG,
      ...{ image: IMAGE, types: [TYPE, 'm7i.*', 'c7i.*'], staleForMs: 300, endpoint: cloud.endpoint },
      ...changes,
    }
    return new WireHarness(cloud, directory, config, await createEc2Backend(config, DEPS))
  }

  reopen(changes: Partial<Ec2Config> = {}, deps: Partial<Ec2Deps> = {}): Promise<Backend> {
    return createEc2Backend({ ...this.config, ...changes }, { ...DEPS, ...deps })
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { capacityType = 'on-demand', deployment = DEPLOYMENT, isStuck = false, ...rest } = wanted
    const offers = (await this.backend.offers({}, patiently())).filter(
      (offer) => offer.capacityType === capacityType && offer.type === TYPE,
    )
    const order = makeOrder({
      ...{ store: this.store, offers, deployment, runnerStart: 'after-launch' },
      runnerSha256: STAND_IN_SHA256,
      ...rest,
    })
    await issueOrder(this.store, order, Date.now())
    if (isStuck)
      this.cloud.addFault({ fault: 'no-boot', where: { tags: { 'crucible:attempt': order.attemptId } } })
    await this.#makeTemplate(order)
    return order
  }

  /** Once, so that a launch is one request. */
  async #makeTemplate(order: Order): Promise<void> {
    if (this.#hasTemplate) return
    this.#hasTemplate = true
    const facts = order.offers[0]!.data as TemplateFacts
    const common = { deployment: order.deployment, userData: readUserData() }
    const api = createSdkApi({ region: this.config.region, endpoint: this.cloud.endpoint })
    await api.machines.createTemplate(templateSpec(facts['template']!, facts, common), patiently().signal)
  }

  #instancesOf(attemptId: string): ReturnType<Cloud['instances']> {
    return this.cloud.instances().filter(({ tags }) => tags['crucible:attempt'] === attemptId)
  }

  async startsOf(attemptId: string): Promise<number> {
    await until(() => this.#instancesOf(attemptId).every(({ state }) => state !== 'pending'))
    const machines = this.#instancesOf(attemptId)
    const hasStarted = this.cloud.journal.calls({ action: 'SendCommand' }).length > 0
    if (hasStarted)
      await until(() =>
        machines.some(({ id, state }) => state !== 'running' || this.#runnersOn(id, attemptId) > 0),
      )
    const runners = machines.reduce((sum, { id }) => sum + this.#runnersOn(id, attemptId), 0)
    return Math.max(machines.length, runners)
  }

  #runnersOn(machineId: string, attemptId: string): number {
    return this.read(machineId, attemptId, 'starts').length
  }

  /** What the machine of an attempt was told that it is, where the stand-in runs there. */
  #claimOf(attemptId: string): string | undefined {
    const machine = this.#instancesOf(attemptId).find(({ id }) => this.#runnersOn(id, attemptId) > 0)
    return machine && this.read(machine.id, attemptId, 'machine-id').trim()
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
    return this.#instancesOf(attemptId).filter(({ state }) => state !== 'terminated').length
  }

  async fill(): Promise<void> {
    this.cloud.addFault({ fault: 'no-capacity' })
  }

  async breakDown(): Promise<void> {
    for (const service of ['ec2', 'ssm', 'sts', 'iam'] as const)
      this.cloud.addFault({ fault: 'error', code: 'UnauthorizedOperation', status: 403, where: { service } })
  }

  stall(): void {
    this.cloud.addFault({
      fault: 'lost-answer',
      instead: 'silence',
      times: 1,
      where: { action: 'CreateFleet' },
    })
  }

  failNextLaunch(): void {
    this.cloud.addFault({
      ...{ fault: 'error', code: 'RequestLimitExceeded', status: 503, times: 1 },
      where: { action: 'CreateFleet' },
    })
  }

  launchesSent(): number {
    return this.cloud.journal.calls({ action: 'CreateFleet' }).length
  }

  loseNextAnswer(): boolean {
    this.cloud.addFault({ fault: 'lost-answer', times: 1, where: { action: 'CreateFleet' } })
    return true
  }

  async duplicate(): Promise<void> {
    throw new Error('a provider that honours tokens makes none')
  }

  async dispose(): Promise<void> {
    await this.cloud.stop()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

const IMAGE = '/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id'

const DEPS = {
  clock: Date.now,
  runnerUrl: async (): Promise<string> =>
    `data:application/octet-stream;base64,${Buffer.from(STAND_IN).toString('base64')}`,
}
