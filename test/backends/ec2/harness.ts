import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { EC2Client, RunInstancesCommand, type _InstanceType } from '@aws-sdk/client-ec2'
import type { Backend } from '../../../backends/backend'
import { createBackendOver, createEc2Backend } from '../../../backends/ec2'
import type { Ec2Api } from '../../../backends/ec2/sdk/api'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { Ec2Deps } from '../../../backends/ec2/host'
import { createSdkApi } from '../../../backends/ec2/sdk/index'
import { readUserData, templateSpec, type TemplateFacts } from '../../../backends/ec2/launch/template'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import {
  DrivenClock,
  startCloud,
  type Cloud,
  type CloudOptions,
  type JournalEntry,
  type WorldText,
} from '#small-cloud'
import { until } from '../../support/until'
import type { MachineSpec } from '../../../packages/small-cloud/src/machines/machine'
import { PaperMachine } from '../../../packages/small-cloud/test/support'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { capacityTypeOf, offersFor, type Way } from './ways'
import { adoptKeys } from '../../support/cloud-keys'

/** The default image. */
export const DEFAULT_IMAGE =
  '/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id'

export const EC2_TRAITS: Traits = {
  looksForTags: false,
  startsLater: true,
  keepsLogs: true,
  tellsEnds: true,
  interruptsMachines: false,
  queues: false,
  billsUntilCalled: false,
  confirmsEnds: true,
  takesHandOvers: false,
  duplicatesAre: 'machines',
}

export const CONFIG: Ec2Config = {
  region: 'us-east-1',
  regions: ['us-east-1'],
  subnets: 'default',
  securityGroups: { name: 'crucible-machine' },
  profile: 'crucible-machine',
  tags: {},
  image: '/images/{arch}/latest',
  neuronImage: '/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id',
  types: ['*'],
  hasSpot: true,
  reservations: 'all',
  hasGrants: true,
  diskGiB: 100,
  registerWithinMs: 600_000,
  templatesKeptMs: 168 * 3_600_000,
  staleForMs: 300,
}

const DEPLOYMENT = 'test'
const ROLE = 'crucible-machine'
const TYPE = 'g5.xlarge'
const BLOCK_TYPE = 'p5.48xlarge'

/**
 * In the place of the runner: notes that it was started and that it was asked to end, and stays until then; longer while a file `hold`
 * lies next to it.
 */
const STAND_IN = `import os, signal, sys, time
root = sys.argv[sys.argv.index("--root") + 1]
def end(*_):
    open(os.path.join(root, "ended"), "w").write("x")
    while os.path.exists(os.path.join(root, "hold")):
        time.sleep(0.02)
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
with open(os.path.join(root, "starts"), "a") as file:
    file.write("x")
open(os.path.join(root, "runner.json"), "w").close()
time.sleep(600)
`
const STAND_IN_SHA256 = createHash('sha256').update(STAND_IN).digest('hex')

const at = (ms: number): [number, number] => [ms, ms]
export const DURATIONS = {
  pending: at(30),
  boot: at(10),
  register: at(10),
  delivery: at(10),
  shuttingDown: at(30),
  osShutdown: at(500),
  statusChecks: at(10),
}
/** Micro-dollars an hour of 100 GiB of gp3 at $0.08 a month, and of a public address. */
export const BESIDE = 11_111 + 5_000

const WORLD: WorldText = {
  durations: DURATIONS,
  regions: { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], groups: [ROLE] } },
  roles: {
    [ROLE]: { managed: ['AmazonSSMManagedInstanceCore'], hasProfile: true, trusts: ['ec2.amazonaws.com'] },
  },
  reservations: [
    { kind: 'on-demand', type: TYPE, zone: 'us-east-1b', count: 4 },
    { kind: 'capacity-block', type: BLOCK_TYPE, zone: 'us-east-1a', count: 4, ends: '24h' },
  ],
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

interface HarnessOptions {
  world?: WorldText
  config?: Partial<Ec2Config>
  deps?: Partial<Ec2Deps>
  /** How machines are bought where a test does not care. */
  way?: Way
}

export type PaperOptions = HarnessOptions & {
  /** When the cloud begins. */
  startMs?: number
}

/** The backend over the SDK, and that over the wire, to a cloud whose machines really run what they are sent. */
export class Ec2Harness implements Harness {
  get handleData(): Record<string, string> {
    return { region: this.config.region }
  }

  readonly store = new ClaimedStore((attemptId) => this.#claimOf(attemptId))
  readonly #templates = new Set<string>()

  private constructor(
    readonly cloud: Cloud,
    readonly directory: string,
    readonly config: Ec2Config,
    private readonly deps: Ec2Deps,
    readonly backend: Backend,
    private readonly way: Way,
  ) {}

  static make(world: WorldText = {}, config: Partial<Ec2Config> = {}, way?: Way): Promise<Ec2Harness> {
    return Ec2Harness.#start({ world, config, way }, {})
  }

  /** In driven time, with machines without processes: for tests of what the provider says and is asked. */
  static async onPaper({
    startMs = Date.now(),
    deps = {},
    ...options
  }: PaperOptions = {}): Promise<PaperHarness> {
    const clock = new DrivenClock(startMs)
    const machines = new Map<string, PaperMachine>()
    const createMachine = (spec: MachineSpec): PaperMachine => {
      const machine = new PaperMachine(spec)
      machines.set(spec.id, machine)
      return machine
    }
    const timed = { ...options, deps: { clock: () => clock.nowMs(), ...deps } }
    const meanwhile = async <T>(call: Promise<T>): Promise<T> => {
      let isOver = false
      const settle = (): void => void (isOver = true)
      call.then(settle, settle)
      while (!isOver) {
        await clock.advance(10)
        await pause(1)
      }
      return call
    }
    return Object.assign(await Ec2Harness.#start(timed, { clock, createMachine }), {
      clock,
      machines,
      meanwhile,
    })
  }

  static async #start(
    { world = {}, config = {}, deps = {}, way = 'on-demand' }: HarnessOptions,
    how: Pick<CloudOptions, 'clock' | 'createMachine'>,
  ): Promise<Ec2Harness> {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-ec2-'))
    const cloud = await startCloud({ world: { ...WORLD, ...world }, directory, ...how })
    adoptKeys(cloud)
    const all = {
      ...CONFIG,
      image: DEFAULT_IMAGE,
      types: [TYPE, BLOCK_TYPE, 'm7i.*', 'c7i.*'],
      staleForMs: 300,
      endpoint: cloud.endpoint,
      ...config,
    }
    const allDeps = { ...DEPS, ...deps }
    return new Ec2Harness(cloud, directory, all, allDeps, await createEc2Backend(all, allDeps), way)
  }

  reopen(changes: Partial<Ec2Config> = {}, deps: Partial<Ec2Deps> = {}): Promise<Backend> {
    return createEc2Backend({ ...this.config, ...changes }, { ...this.deps, ...deps })
  }

  /** A backend of one Region some of whose calls are answered by the test. */
  reopenWith(
    change: (api: Ec2Api) => Ec2Api,
    changes: Partial<Ec2Config> = {},
    deps: Partial<Ec2Deps> = {},
  ): Backend {
    const { region, endpoint, buyerRole } = { ...this.config, ...changes }
    return createBackendOver(
      change(createSdkApi({ region, endpoint, buyerRole })),
      { ...this.config, ...changes },
      { ...this.deps, ...deps },
    )
  }

  async launched(order: Order): Promise<MachineHandle> {
    const outcome = await this.backend.launch(order, patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    return outcome.handle
  }

  /** The next call of this action is refused, and has no effect. */
  fail(
    action: string,
    code: string,
    { times = 1, ...facts }: { status?: number; message?: string; times?: number } = {},
  ): void {
    this.cloud.addFault({ fault: 'error', code, times, ...facts, where: { action } })
  }

  calls(action: string): JournalEntry[] {
    return this.cloud.journal.calls({ action })
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { way } = this
    const { capacityType = capacityTypeOf(way), deployment = DEPLOYMENT, isStuck = false, ...rest } = wanted
    const offers = offersFor(await this.backend.offers({}, patiently()), way, capacityType)
    const order = makeOrder({
      store: this.store,
      offers,
      deployment,
      runnerStart: 'after-launch',
      runnerSha256: STAND_IN_SHA256,
      ...rest,
    })
    await issueOrder(this.store, order, this.deps.clock())
    if (isStuck)
      this.cloud.addFault({ fault: 'no-boot', where: { tags: { 'crucible:attempt': order.attemptId } } })
    await this.#makeTemplate(order)
    return order
  }

  /** Before the launch, so that this is one request. */
  async #makeTemplate(order: Order): Promise<void> {
    const facts = order.offers[0]!.data as TemplateFacts
    if (this.#templates.has(facts['template']!)) return
    this.#templates.add(facts['template']!)
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

  /** What the machine of an attempt knows about itself, where the stand-in runs there. */
  #claimOf(attemptId: string): string | undefined {
    const machine = this.#instancesOf(attemptId).find(({ id }) => this.#runnersOn(id, attemptId) > 0)
    return machine && this.read(machine.id, attemptId, 'machine-id').trim()
  }

  /** A file of the runner's directory on a machine; empty when it does not exist. */
  read(machineId: string, attemptId: string, name: string): string {
    try {
      return readFileSync(this.#pathOn(machineId, attemptId, name), 'utf8')
    } catch {
      return ''
    }
  }

  /** From now on a runner that is asked to end stays, and with it its machine's shutdown; until what this answers is called. */
  hold(machineId: string, attemptId: string): () => void {
    const path = this.#pathOn(machineId, attemptId, 'hold')
    writeFileSync(path, '')
    return () => rmSync(path)
  }

  #pathOn(machineId: string, attemptId: string, name: string): string {
    return join(this.directory, machineId, 'var/lib/crucible', attemptId, name)
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.#instancesOf(attemptId).filter(({ state }) => state !== 'terminated').length
  }

  async fill(): Promise<void> {
    this.cloud.addFault({ fault: 'no-capacity', where: { capacity: 'spot' } })
    this.cloud.addFault({ fault: 'no-capacity', where: { capacity: 'on-demand' } })
    const client = new EC2Client({ region: this.config.region, endpoint: this.cloud.endpoint })
    for (const { id, kind, type, zone, free } of this.cloud.reservations())
      if (free > 0)
        await client.send(
          new RunInstancesCommand({
            ImageId: `resolve:ssm:${DEFAULT_IMAGE.replace('{arch}', 'x86_64')}`,
            MinCount: free,
            MaxCount: free,
            InstanceType: type as _InstanceType,
            Placement: { AvailabilityZone: zone },
            CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: id } },
            InstanceMarketOptions: kind === 'capacity-block' ? { MarketType: kind } : undefined,
          }),
        )
    client.destroy()
  }

  async breakDown(): Promise<void> {
    for (const service of ['ec2', 'ssm', 'sts', 'iam'] as const)
      this.cloud.addFault({ fault: 'error', code: 'UnauthorizedOperation', status: 403, where: { service } })
  }

  get #launchAction(): string {
    return capacityTypeOf(this.way) === 'reserved' ? 'RunInstances' : 'CreateFleet'
  }

  stall(): void {
    this.cloud.addFault({
      fault: 'lost-answer',
      instead: 'silence',
      times: 1,
      where: { action: this.#launchAction },
    })
  }

  failNextLaunch(): void {
    this.cloud.addFault({
      fault: 'error',
      code: 'RequestLimitExceeded',
      status: 503,
      times: 1,
      where: { action: this.#launchAction },
    })
  }

  launchesSent(): number {
    return this.cloud.journal.calls({ action: this.#launchAction }).length
  }

  loseNextAnswer(): boolean {
    this.cloud.addFault({ fault: 'lost-answer', times: 1, where: { action: this.#launchAction } })
    return true
  }

  /** As a second worker with other data would, whose order has another token. */
  async duplicate({ attemptId, offers }: Order): Promise<void> {
    const { tags, zone } = this.#instancesOf(attemptId)[0]!
    const client = new EC2Client({ region: this.config.region, endpoint: this.cloud.endpoint })
    await client.send(
      new RunInstancesCommand({
        MinCount: 1,
        MaxCount: 1,
        InstanceType: TYPE,
        LaunchTemplate: { LaunchTemplateName: (offers[0]!.data as TemplateFacts)['template']! },
        Placement: { AvailabilityZone: zone },
        InstanceMarketOptions: this.way === 'spot' ? { MarketType: 'spot' as const } : undefined,
        TagSpecifications: [
          {
            ResourceType: 'instance',
            Tags: Object.entries(tags)
              .filter(([key]) => !key.startsWith('aws:'))
              .map(([Key, Value]) => ({ Key, Value })),
          },
        ],
      }),
    )
    client.destroy()
  }

  async dispose(): Promise<void> {
    await this.cloud.stop()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

const DEPS = {
  clock: Date.now,
  runnerUrl: async (): Promise<string> =>
    `data:application/octet-stream;base64,${Buffer.from(STAND_IN).toString('base64')}`,
}

/** Whose time and machines a test drives. */
export type PaperHarness = Ec2Harness & {
  clock: DrivenClock
  machines: Map<string, PaperMachine>
  /** Lets time pass until a call that waits for a machine is answered. */
  meanwhile<T>(call: Promise<T>): Promise<T>
}
