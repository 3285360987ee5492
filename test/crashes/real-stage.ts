import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS } from '../../backends/registry'
import type { Part, PartOptions } from '../chaos/part'
import { Server, WorkerProcess } from '../chaos/parts'
import type { Product } from '../chaos/stage'
import { closeGround, openGround, type CloudGround } from '../clouds/cloud'
import type { CloudProvider } from '../clouds/provider'
import type { WorldText } from '#small-cloud'
import { readDeploymentKey } from '../../storage/secrets'
import { S3_ENVIRONMENT } from '../support/s3'
import { testServer } from '../support/temporal'
import { KillProxy } from './kill-proxy'
import type { Crash, CrashPlan } from './plan'
import { ROLES, type Role } from './site'

/** What dies with the process that made the call, and for how long all of it is gone. */
export interface ProcessPlan extends CrashPlan {
  isServerKilled: boolean
  downMs: number
}

/** Beyond what the provider needs. */
export interface StageWishes {
  world?: WorldText
  /** Of the workers. */
  settings?: Readonly<Record<string, string>>
  /** Processes that serve the backend. */
  backendWorkers?: number
}

/** Fast enough to be done soon, slow enough to be at work when something dies. */
const STEPS_PER_SECOND = 20

/** The Temporal server, and the two workers of the built product, each behind somebody who kills it in its calls to the cloud. */
export class RealStage {
  readonly struck: Crash[] = []
  /** When processes died. */
  readonly diedAtMs: number[] = []
  /** How often each call was made, by `role: call`. */
  readonly calls = new Map<string, number>()
  /** What ended without having been killed. */
  readonly failures: string[] = []
  readonly home = mkdtempSync(join(tmpdir(), 'crucible-processes-'))
  private readonly secretKeyFile = join(this.home, 'secret.key')
  private readonly proxies: KillProxy[] = []
  private readonly workers = new Map<Role, Part[]>()
  private readonly revivals: Promise<void>[] = []
  private started: Server | undefined

  private constructor(
    private readonly plan: ProcessPlan,
    readonly ground: CloudGround,
    private readonly more: Readonly<Record<string, string>>,
  ) {}

  static async open(
    plan: ProcessPlan,
    { provider, product }: { provider: CloudProvider; product: Product },
    { world = {}, settings = {}, backendWorkers = 1 }: StageWishes = {},
  ): Promise<RealStage> {
    const ground = await openGround({
      provider,
      world: { ...world, faults: [...(world.faults ?? []), ...plan.faults] },
      hasBucket: true,
      behave: () => ({ stepsPerSecond: STEPS_PER_SECOND }),
    })
    const stage = new RealStage(plan, ground, settings)
    const dataFile = join(stage.home, 'temporal.db')
    stage.started = await Server.create(stage.part('server'), {
      executable: testServer().executable,
      dataFile,
    })
    await stage.server.start()
    const more = Array.from({ length: backendWorkers - 1 }, () => 'backend' as const)
    await Promise.all([...ROLES, ...more].map((role) => stage.startWorker(role, product)))
    return stage
  }

  get server(): Server {
    if (this.started === undefined) throw new Error('the stage has no server yet')
    return this.started
  }

  /** The deployment's key, which its first worker has made. */
  async key(): Promise<Buffer> {
    const key = await readDeploymentKey(this.secretKeyFile)
    if (key === undefined) throw new Error('no worker has made the key of the deployment')
    return key
  }

  /** Of a process of the product in addition to the workers. */
  get environment(): Record<string, string> {
    return this.settings(this.ground.cloud.endpoint)
  }

  /** Resolves when all that was killed is back. */
  async whole(): Promise<void> {
    await Promise.all(this.revivals)
  }

  async close(): Promise<void> {
    await this.whole()
    await Promise.all([...this.workers.values()].flat().map((worker) => worker.stop()))
    await this.server.stop()
    await Promise.all(this.proxies.map((proxy) => proxy.close()))
    await closeGround(this.ground)
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 })
  }

  private part(name: string): PartOptions {
    const onFailure = (what: string): void => void this.failures.push(what)
    return { name, log: join(this.home, `${name}.log`), onFailure }
  }

  private async startWorker(role: Role, product: Product): Promise<void> {
    const proxy = await KillProxy.open({
      target: this.ground.cloud.endpoint,
      meet: (call) => this.meet(`${role}: ${call}`),
      kill: () => this.killAll(role),
    })
    this.proxies.push(proxy)
    const served = role === 'backend' ? this.ground.provider.name : 'orchestrator'
    const others = this.workers.get(role) ?? []
    const name = others.length === 0 ? role : `${role}-${others.length + 1}`
    const worker = new WorkerProcess(this.part(name), {
      args: [product.path('dist', 'cli', 'main.js'), 'worker', served],
      environment: this.settings(proxy.url),
    })
    this.workers.set(role, [...others, worker])
    await worker.start()
  }

  private meet(call: string): Crash | undefined {
    const occurrence = (this.calls.get(call) ?? 0) + 1
    this.calls.set(call, occurrence)
    const crash = this.plan.crashes.find((each) => each.call === call && each.occurrence === occurrence)
    if (crash !== undefined) this.struck.push(crash)
    return crash
  }

  private killAll(role: Role): void {
    const isBoth = this.plan.crashes.some(({ isOfBoth }) => isOfBoth)
    for (const each of isBoth ? ROLES : [role])
      for (const worker of this.workers.get(each)!) this.kill(worker)
    if (this.plan.isServerKilled) this.kill(this.server)
  }

  /** When this returns it is dead; it comes back later. */
  private kill(part: Part): void {
    const dying = part.kill()
    this.diedAtMs.push(Date.now())
    const revive = async (): Promise<void> => {
      if (!(await dying)) return
      await sleep(this.plan.downMs)
      await part.start()
    }
    this.revivals.push(revive())
  }

  private settings(cloudUrl: string): Record<string, string> {
    const { provider, cloud } = this.ground
    const { region, credentials } = cloud
    const { url } = this.ground.storage.store
    const store = new URL(url)
    store.searchParams.set('endpoint', cloudUrl)
    return {
      ...S3_ENVIRONMENT,
      AWS_REGION: region,
      AWS_DEFAULT_REGION: region,
      AWS_ENDPOINT_URL: cloudUrl,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      TEMPORAL_ADDRESS: this.server.address,
      CRUCIBLE_HOME: this.home,
      CRUCIBLE_SECRET_KEY_FILE: this.secretKeyFile,
      CRUCIBLE_STORE: store.href,
      CRUCIBLE_BACKENDS: provider.name,
      ...this.reach(cloudUrl),
      ...provider.settings,
      ...this.more,
      CRUCIBLE_LEASE: '10m',
      CRUCIBLE_SILENCE: '2m',
      CRUCIBLE_DRAIN: '2s',
      CRUCIBLE_POWER_OFF: '0.5s',
      CRUCIBLE_BEAT: '0.5s',
      CRUCIBLE_OBSERVE: '0.5s',
      CRUCIBLE_GONE_CONFIRM: '0.5s',
      PATH: process.env['PATH'] ?? '',
      HOME: this.home,
    }
  }
  /** The settings that lead to the provider, by way of an address. */
  private reach(cloudUrl: string): Readonly<Record<string, string>> {
    const { provider, cloud } = this.ground
    const { endpoint = cloud.endpoint, ...keys } = cloud.providers[provider.name] ?? {}
    const at = endpoint.replace(cloud.endpoint, cloudUrl)
    return BACKENDS[provider.name]!.simulated!({ ...keys, endpoint: at }).reach
  }
}
