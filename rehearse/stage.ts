import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Backend } from '../backends/backend'
import type { PlanInput } from '../core/activities'
import { defined } from '../core/defined'
import { NO_FORECAST } from '../core/job/forecast'
import type { MachineHandle } from '../core/handle'
import type { BundleRef, JobSpec } from '../core/job/job'
import { EMPTY_LEDGER } from '../core/job/ledger'
import type { BackendAnswer, Plan } from '../core/job/plan'
import type { Timing } from '../core/time/timing'
import { makeOrder } from '../planner/plan/order'
import { BUNDLE_LIMITS, packBundle, storeBundle, type Bundle } from '../storage/bundles'
import type { Environment } from '../storage/home'
import { layout } from '../storage/layout'
import { openStore } from '../storage/open-store'
import { attemptKey, ensureDeploymentKey, sealSecrets, type SecretValues } from '../storage/secrets'
import type { ObjectStore } from '../storage/store'
import { readWorkerConfig } from '../service/config'
import { deploymentOf } from '../service/deployment'
import { makeBackend } from '../service/make-backend'
import { runnerPublisher } from '../service/runner-program'
import { SecretIssuer } from '../service/secrets'
import type { Host, Machine, Part } from './host'

/** A call of the local backend takes longer only if this machine hangs. */
const CALL_LIMIT_MS = 60_000
/** A local store makes beats cheap, and each one shows the program's steps. */
const BEAT_MS = 100
/** Reserve of the runner for its result after a notice. */
const POWER_OFF_MS = 2_000
const KEY_NONCE_BYTES = 16

export interface StageOptions {
  /** An empty folder for everything that the rehearsal writes. */
  folder: string
  environment: Environment
  spec: JobSpec
  /** The folder to send along; null for none. */
  directory: string | null
  secrets: SecretValues
  now: () => number
  /** The runner's zipapp; this version's if missing. */
  runner?: string
}

/**
 * This host as a separate deployment: a store in a folder, the local backend, and orders from the planner's code. The caller plays the
 * control plane and the provider.
 */
export class Stage implements Host {
  readonly sight = 'folder'
  readonly pace = { pollMs: 25, listMs: 200, goneMs: 250 }
  private readonly handles = new Map<Machine, MachineHandle>()
  private readonly sealed = new Set<string>()

  private constructor(
    readonly store: ObjectStore,
    private readonly options: StageOptions,
    private readonly parts: {
      backend: Backend
      deployment: string
      timing: Timing
      runnerSha256: string
      desk: SecretIssuer
      keyFile: string
      code: Bundle | null
      /** Short, because the paths of sockets are. */
      temporary: string
    },
  ) {}

  static async open(options: StageOptions): Promise<Stage> {
    const { folder, environment, spec, directory } = options
    // These settings are those of the job in the user's own deployment; the others are for this folder.
    const { checkpointQuietMs, leaseMs, startWithinMs, drainMs } = readWorkerConfig(environment).timing
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const keyFile = join(folder, 'secret.key')
    const temporary = await mkdtemp(join(tmpdir(), 'crucible-t-'))
    const config = readWorkerConfig({
      ...environment,
      CRUCIBLE_HOME: folder,
      CRUCIBLE_STORE: pathToFileURL(join(folder, 'store')).href,
      CRUCIBLE_SECRET_KEY_FILE: keyFile,
      CRUCIBLE_BACKENDS: 'local',
      CRUCIBLE_LOCAL_ROOT: join(folder, 'machines'),
      CRUCIBLE_LOCAL_SPOT: 'yes',
      TMPDIR: temporary,
    })
    const store = openStore(config.home.storeUrl, options.now)
    await store.make?.()
    const deployment = await deploymentOf(store)
    const desk = await SecretIssuer.open(store, keyFile)
    const backend = await makeBackend(config, 'local', { store, deployment, secrets: desk })
    const runnerSha256 = await runnerPublisher(store, options.runner)()
    const timing = {
      ...config.timing,
      checkpointQuietMs,
      leaseMs,
      startWithinMs,
      drainMs,
      beatMs: BEAT_MS,
      powerOffMs: POWER_OFF_MS,
    }
    const leaveOut = spec.checkpoint.directory === undefined ? [] : [spec.checkpoint.directory]
    const code = directory === null ? null : await packBundle({ directory, leaveOut, limits: BUNDLE_LIMITS })
    const parts = { backend, deployment, timing, runnerSha256, desk, keyFile, code, temporary }
    return new Stage(store, options, parts)
  }

  async close(): Promise<void> {
    await this.parts.code?.remove()
    await rm(this.parts.temporary, { recursive: true, force: true })
  }

  begin(part: Part): Promise<string> {
    return Promise.resolve(rehearsalId(this.options.folder, part))
  }

  /** Launches the next machine of a job, as the control plane does after planning. */
  async next(jobId: string, before: number): Promise<Machine> {
    const attempt = before + 1
    const { backend, deployment, timing, runnerSha256, desk } = this.parts
    const { spec, folder } = this.options
    const answer = await this.offers()
    const plan: Plan = {
      placements: answer.offers.map((offer) => ({
        offer,
        costMicroUsd: 0,
        durationMs: 0,
        forecast: NO_FORECAST,
        reasons: [],
        risks: [],
      })),
      rejections: [],
      isDurationAssumed: true,
      silentBackends: [],
    }
    const input: PlanInput = {
      jobId,
      deployment,
      attempt,
      recordSeq: 0,
      ledger: EMPTY_LEDGER,
      avoid: [],
      bundle: await this.bundle(jobId),
      resolved: {
        spec: { ...spec, resources: answer.resources },
        policy: { failuresMax: 0, interruptionsMax: 0, unclassifiedMax: 0 },
        timing,
        runnerSha256,
        storeUrl: this.store.url,
      },
    }
    const order = makeOrder(plan, input, [answer])
    await this.sealSecrets(jobId)
    await desk.handOver(order)
    const issued = { ...order.runner, issuedAtMs: this.options.now() }
    await this.store.putIfAbsent(layout.order(jobId, attempt), JSON.stringify(issued))
    const launched = await backend.launch(order, this.call())
    if (launched.kind === 'refused') throw new Error(launched.failure.message)
    if (launched.kind !== 'launched') throw new Error('this machine did not start the program')
    const root = await this.jobFolder(join(folder, 'machines', 'machines', order.attemptId))
    const work = join(root, 'work')
    const checkpoints =
      spec.checkpoint.directory === undefined
        ? join(root, 'checkpoints')
        : join(work, spec.checkpoint.directory)
    const machine: Machine = { jobId, attempt, folders: { checkpoints, work } }
    this.handles.set(machine, launched.handle)
    return machine
  }

  /** The local backend gives all attempts of a job one directory, named in the record of the machine. */
  private async jobFolder(directory: string): Promise<string> {
    const record = JSON.parse(await readFile(join(directory, 'machine.json'), 'utf8')) as { folder?: string }
    return record.folder ?? directory
  }

  async strike(machine: Machine, noticeMs: number | null): Promise<void> {
    await this.parts.backend.interrupt?.(this.handleOf(machine), { noticeMs }, this.call())
  }

  stop(machine: Machine): Promise<void> {
    return this.strike(machine, null)
  }

  async isGone(machine: Machine): Promise<boolean> {
    const [seen] = await this.parts.backend.observe([this.handleOf(machine)], this.call())
    return seen?.state === 'gone'
  }

  /** Ends a machine and removes its directory and its temporary files: no other machine has them. */
  async clear(machine: Machine): Promise<void> {
    await this.parts.backend.terminate(this.handleOf(machine), this.call())
    for (const name of await readdir(this.parts.temporary))
      await rm(join(this.parts.temporary, name), { recursive: true, force: true })
  }

  /** No attempt outlives its `clear`, so this needs no action. */
  end(): Promise<void> {
    return Promise.resolve()
  }

  private handleOf(machine: Machine): MachineHandle {
    return this.handles.get(machine)!
  }

  private call(): { signal: AbortSignal } {
    return { signal: AbortSignal.timeout(CALL_LIMIT_MS) }
  }

  /** Returns the offers of this host; missing GPUs are ignored. */
  private async offers(): Promise<BackendAnswer & { resources: JobSpec['resources'] }> {
    const { backend } = this.parts
    const { gpus, shmGiB } = this.options.spec.resources
    const wished = defined({ shmGiB, gpus })
    const fits = async (resources: JobSpec['resources']): Promise<BackendAnswer['offers']> => {
      const offers = await backend.offers(resources, this.call())
      return offers.filter(({ capacityType, shape }) => {
        return capacityType === 'spot' && shape.gpus >= (resources.gpus?.min ?? 0)
      })
    }
    const first = await fits(wished)
    const resources = first.length > 0 ? wished : {}
    const offers = first.length > 0 ? first : await fits({})
    return { backend: backend.name, capabilities: backend.capabilities, offers, resources }
  }

  /** Returns the bundle, so that every attempt gets the code as it was at the start. */
  private async bundle(jobId: string): Promise<BundleRef | null> {
    const { code } = this.parts
    return code === null ? null : storeBundle(this.store, jobId, code)
  }

  private async sealSecrets(jobId: string): Promise<void> {
    const { secrets } = this.options
    if (Object.keys(secrets).length === 0 || this.sealed.has(jobId)) return
    this.sealed.add(jobId)
    const key = attemptKey(await ensureDeploymentKey(this.parts.keyFile), jobId)
    await this.store.put(layout.secrets(jobId), sealSecrets(key, secrets, randomBytes(KEY_NONCE_BYTES)))
  }
}

/** An id unique among rehearsals of this host, because it identifies machines. */
function rehearsalId(folder: string, part: string): string {
  return `job-${part}-${createHash('sha256').update(folder).digest('hex').slice(0, 10)}`
}
