import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { BackendError } from '../../../backends/errors'
import { createLocalBackend } from '../../../backends/local'
import type { LocalConfig } from '../../../backends/local/config'
import type { LocalDeps } from '../../../backends/local/host'
import type { Order } from '../../../core/job/plan'
import type { ObjectStore } from '../../../storage/store'
import { markedStore } from '../../support/marked-store'
import { until } from '../../support/until'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'

export const LOCAL_TRAITS: Traits = {
  looksForTags: false,
  startsLater: false,
  keepsLogs: true,
  tellsEnds: true,
  interruptsMachines: true,
  queues: false,
  billsUntilCalled: false,
  confirmsEnds: true,
  takesHandOvers: false,
  duplicatesAre: 'processes',
}

const SLOTS = 4
/** Another deployment's machine, which takes all there is. */
const FILLER = 'filler'

/** A root of its own in the temporary directory, machines with a given runner program, and this host as it is. */
export class LocalHarness implements Harness {
  readonly root: string
  readonly store: ObjectStore
  readonly #starts: string
  #launchesSent = 0
  #isStalled = false
  #failing: BackendError | undefined
  readonly #made: string[] = []
  backend!: Backend

  private constructor(
    readonly directory: string,
    readonly runnerPath: string,
    readonly config: LocalConfig,
  ) {
    this.root = config.root
    this.store = markedStore(join(directory, 'store'))
    this.#starts = join(directory, 'starts')
  }

  static async make(runnerPath: string, config: Partial<LocalConfig> = {}): Promise<LocalHarness> {
    const directory = await mkdtemp(join(tmpdir(), 'crucible-local-'))
    const harness = new LocalHarness(directory, runnerPath, {
      root: join(directory, 'root'),
      slots: SLOTS,
      hasSpot: true,
      priceMicroUsdPerHour: 1_000_000,
      spotPriceMicroUsdPerHour: 300_000,
      ...config,
    })
    await mkdir(harness.#starts)
    harness.backend = await harness.reopen()
    return harness
  }

  reopen(config: Partial<LocalConfig> = {}, deps: Partial<LocalDeps> = {}): Promise<Backend> {
    return createLocalBackend({ ...this.config, ...config }, { ...this.deps(), ...deps })
  }

  deps(): LocalDeps {
    return {
      clock: Date.now,
      fetchRunner: async (_sha256, toPath) => {
        this.#launchesSent++
        const failing = this.#failing
        this.#failing = undefined
        if (failing !== undefined) throw failing
        if (this.#isStalled) await new Promise(() => undefined)
        await copyFile(this.runnerPath, toPath)
      },
    }
  }

  get runnerSha256(): string {
    return createHash('sha256').update(readFileSync(this.runnerPath)).digest('hex')
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { capacityType = 'on-demand', isStuck, deployment, ...options } = wanted
    const offers = await this.backend.offers(options.resources ?? {}, patiently())
    const draft = makeOrder({
      store: this.store,
      offers: offers.filter((offer) => offer.capacityType === capacityType),
      runnerSha256: this.runnerSha256,
      timing: { beatMs: 200 },
      deployment,
      ...options,
    })
    this.#made.push(draft.attemptId)
    const startsFile = join(this.#starts, draft.attemptId)
    const run = `${isStuck ? 'sleep 600; ' : `{ echo started >> '${startsFile}' || :; }; `}${options.run ?? 'exec sleep 600'}`
    const order = { ...draft, runner: { ...draft.runner, run } }
    await issueOrder(this.store, order, Date.now())
    return order
  }

  /** Workloads that have begun; a second one while the first lives would show within the time that the first took. */
  async startsOf(attemptId: string): Promise<number> {
    const path = join(this.#starts, attemptId)
    const lines = (): number => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0)
    await until(() => lines() > 0)
    return lines()
  }

  async runningOf(attemptId: string): Promise<number> {
    return processesMarked(attemptId).length
  }

  async fill(): Promise<void> {
    const order = await this.order({ deployment: FILLER, resources: { cpus: { min: SLOTS } } })
    await this.backend.launch(order, patiently())
  }

  async breakDown(): Promise<void> {
    await rm(this.root, { recursive: true, force: true })
    await writeFile(this.root, 'not a directory')
  }

  stall(): void {
    this.#isStalled = true
  }

  failNextLaunch(): void {
    this.#failing = new BackendError({ class: 'transient', message: 'the store does not answer' })
  }

  launchesSent(): number {
    return this.#launchesSent
  }

  loseNextAnswer(): boolean {
    return false
  }

  /** A second runner of the same directory, as a worker leaves it that dies before it has recorded its process. */
  async duplicate({ attemptId }: Order): Promise<void> {
    const directory = join(this.root, 'machines', attemptId)
    const record = JSON.parse(readFileSync(join(directory, 'machine.json'), 'utf8')) as { name?: string }
    const { name = attemptId } = record
    const child = spawn('sleep', ['600'], {
      cwd: directory,
      env: { ...process.env, CRUCIBLE_MACHINE: name, CRUCIBLE_CONTROL_DIR: join(directory, 'control') },
      detached: true,
      stdio: 'ignore',
    })
    await once(child, 'spawn')
    child.unref()
  }

  /** Ends by its own means whatever a failed test left. */
  async dispose(): Promise<void> {
    await until(() => {
      const left = this.#made.flatMap(processesMarked)
      for (const pid of left) kill(pid)
      return left.length === 0
    })
    await rm(this.directory, { recursive: true, force: true })
  }
}

/** Living processes with the machine's mark, of any deployment, found without the backend's help. */
export function processesMarked(attemptId: string): number[] {
  const mark = `CRUCIBLE_MACHINE=${attemptId}`
  const isMarked = (word: string): boolean => word === mark || word.startsWith(`${mark}.`)
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-axwwE', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n')
    return lines.filter((line) => line.split(' ').some(isMarked)).map((line) => Number.parseInt(line))
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).split('\0').some(isMarked))
    .map(Number)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself meanwhile.
  }
}

/** Empty for a process that ends meanwhile, and for zombies. */
function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}
