import type * as Jest from '@jest/globals'
import assert from 'node:assert'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import * as tar from 'tar'
import type { Checkpoint, Manifest } from '../../core/job/checkpoint'
import type {
  Beat,
  Drain,
  IssuedRunnerOrder,
  Lease,
  Limits,
  LogLine,
  RunnerResult,
} from '../../core/documents'
import { parseBeat, parseLogLine, parseManifest, parseOrder, parseResult } from '../../intake/documents'
import { readArtifact } from '../../storage/artifacts'
import { listCheckpoints, readManifest } from '../../storage/checkpoints'
import { markedStore } from '../support/marked-store'
import { layout } from '../../storage/layout'
import { readLines } from '../../storage/logs'
import type { ObjectStore } from '../../storage/store'
import { packRunner } from '../support/runner-program'
import { until } from '../support/until'

/** Of its own for each process of tests: it distinguishes machines. */
export const JOB = `job-under-test-${process.pid}`

/** The order that a test has in mind, where it differs from the usual one. */
export type Wanted = Partial<IssuedRunnerOrder>

/** A machine: the real runner, started as a backend would. */
export class Machine {
  readonly root: string
  readonly attempt: number
  /** The process that was started. */
  readonly guard: ChildProcess
  readonly exited: Promise<number | null>
  readonly #world: World
  console = ''

  constructor(world: World, options: { attempt: number; root: string; arguments: string[]; python: string }) {
    this.#world = world
    this.attempt = options.attempt
    this.root = options.root
    mkdirSync(this.root, { recursive: true })
    this.guard = spawn(
      options.python,
      [
        world.program,
        'run',
        '--store',
        world.store.url,
        '--job',
        world.jobId,
        '--attempt',
        String(options.attempt),
        '--root',
        this.root,
        ...options.arguments,
      ],
      { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...world.environment } },
    )
    for (const stream of [this.guard.stdout, this.guard.stderr])
      stream?.on('data', (data: Buffer) => (this.console += data.toString()))
    this.exited = new Promise((resolve) => this.guard.once('exit', (code) => resolve(code)))
  }

  /** What it has said may come after its end. */
  async says(words: string): Promise<void> {
    await until(() => this.console.includes(words)).catch((error: unknown) => {
      throw new Error(`it said ${JSON.stringify(this.console)}, not ${words}`, { cause: error })
    })
  }

  get storeUrl(): string {
    return this.#world.store.url
  }

  get id(): string {
    return `${this.#world.jobId}-${this.attempt}`
  }

  /** The runner proper: the younger one of its guard's two children. */
  runner(): number {
    return this.#children()[1]!
  }

  /** The older one. */
  timekeeper(): number {
    return this.#children()[0]!
  }

  #children(): number[] {
    const found = machineProcesses(this.id).filter(({ parent }) => parent === this.guard.pid)
    assert.equal(found.length, 2)
    return found.map(({ pid }) => pid).sort((a, b) => a - b)
  }

  async beat(): Promise<Beat | undefined> {
    const body = await this.#world.store.get(layout.beat(this.#world.jobId, this.attempt))
    return body && parseBeat(body.toString())
  }

  async result(): Promise<RunnerResult | undefined> {
    const body = await this.#world.store.get(layout.result(this.#world.jobId, this.attempt))
    return body && parseResult(body.toString())
  }

  /** Waits for the end of the machine; its result. */
  async end(): Promise<RunnerResult> {
    await this.exited
    const result = await this.result()
    if (result === undefined) throw new Error(`there is no result; the machine said: ${this.console}`)
    return result
  }

  async untilBeat(isSo: (beat: Beat) => boolean): Promise<Beat> {
    let found: Beat | undefined
    await until(async () => {
      found = await this.beat()
      return found !== undefined && isSo(found)
    })
    return found!
  }

  async lines(): Promise<LogLine[]> {
    const range = { jobId: this.#world.jobId, attempt: this.attempt, afterLine: 0, isOver: true }
    const lines: LogLine[] = []
    for await (const line of readLines(this.#world.store, range, parseLogLine)) lines.push(line)
    return lines
  }

  /** What the command has printed. */
  async output(): Promise<string[]> {
    return (await this.lines()).filter(({ s }) => s === 'out').map(({ m }) => m)
  }

  async remarks(): Promise<string> {
    return (await this.lines())
      .filter(({ s }) => s === 'runner')
      .map(({ m }) => m)
      .join('\n')
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8')
  }
}

/** A store, and this test in the place of the control plane and of the provider. */
export class World {
  readonly folder = mkdtempSync(join(tmpdir(), 'crucible-runner-'))
  readonly storeFolder = join(this.folder, 'store')
  readonly store: ObjectStore
  readonly program: string
  readonly machines: Machine[] = []
  readonly environment: NodeJS.ProcessEnv
  /** Of its own for each world whose machines run at the same time as those of another. */
  readonly jobId: string

  /** @param store a folder of its own when missing */
  constructor(program: string, store?: ObjectStore, jobId = JOB) {
    this.program = program
    this.jobId = jobId
    this.store = store ?? markedStore(this.storeFolder)
    this.environment = { ...process.env, HOME: this.folder, MACHINE_CREDENTIAL: 'must not be seen' }
    delete this.environment['XDG_CACHE_HOME']
  }

  /** Packs files as the user's code and puts them into the store. */
  async bundle(files: Record<string, string>): Promise<IssuedRunnerOrder['bundle']> {
    const folder = mkdtempSync(join(this.folder, 'code-'))
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    const archive = join(this.folder, 'bundle.tar.gz')
    await tar.create({ gzip: true, portable: true, cwd: folder, file: archive }, ['.'])
    return this.putBundle(readFileSync(archive))
  }

  async putBundle(body: Buffer): Promise<NonNullable<IssuedRunnerOrder['bundle']>> {
    const sha256 = createHash('sha256').update(body).digest('hex')
    await this.store.put(layout.bundle(this.jobId, sha256), body)
    return { sha256, sizeBytes: body.length }
  }

  /** Puts the order of an attempt. */
  async order(wanted: Wanted): Promise<IssuedRunnerOrder> {
    const attempt = wanted.attempt ?? 1
    const order: IssuedRunnerOrder = {
      version: 1,
      jobId: this.jobId,
      jobName: 'under-test',
      attempt,
      attemptId: `${this.jobId}-${attempt}`,
      run: 'true',
      setup: null,
      image: null,
      shmGiB: null,
      env: {},
      secrets: [],
      bundle: null,
      inputs: [],
      outputs: [],
      checkpoint: { directory: null, everyMs: 0, quietMs: 300, keep: 3 },
      limits: { seq: 0, deadlineAtMs: null, budget: null },
      leaseMs: 120_000,
      drainMs: 10_000,
      powerOffMs: 2_000,
      startWithinMs: 60_000,
      beatMs: 100,
      notice: { kind: 'none' },
      issuedAtMs: Date.now(),
      ...wanted,
    }
    await this.store.put(layout.order(this.jobId, attempt), JSON.stringify(order))
    return parseOrder(JSON.stringify(order))
  }

  /** Starts a machine for an order that was put before. */
  start(options: { attempt?: number; root?: string; arguments?: string[] } = {}): Machine {
    const attempt = options.attempt ?? 1
    const machine = new Machine(this, {
      attempt,
      root: options.root ?? join(this.folder, `machine-${attempt}`),
      arguments: options.arguments ?? [],
      python: process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
    })
    this.machines.push(machine)
    return machine
  }

  /** Puts an order and starts its machine. */
  async launch(wanted: Wanted, ...args: string[]): Promise<Machine> {
    const { attempt } = await this.order(wanted)
    return this.start({ attempt, arguments: args })
  }

  async drain(attempt: number, drain: Partial<Drain>): Promise<void> {
    const document = { reason: 'migrated', windowMs: 10_000, requestedAtMs: Date.now(), ...drain }
    const { seq = 1 } = drain
    const key = seq === 1 ? layout.drain(this.jobId, attempt) : layout.shorterDrain(this.jobId, attempt, seq)
    await this.store.putIfAbsent(key, JSON.stringify(document))
  }

  async lease(attempt: number, lease: Lease): Promise<void> {
    await this.store.put(layout.lease(this.jobId, attempt), JSON.stringify(lease))
  }

  async limits(attempt: number, limits: Limits): Promise<void> {
    await this.store.putIfAbsent(layout.limits(this.jobId, attempt, limits.seq), JSON.stringify(limits))
  }

  checkpoints(): Promise<Checkpoint[]> {
    return listCheckpoints(this.store, this.jobId)
  }

  async manifest(checkpoint: Checkpoint): Promise<Manifest> {
    const manifest = await readManifest(this.store, { jobId: this.jobId, checkpoint }, parseManifest)
    if (manifest === undefined) throw new Error(`checkpoint ${checkpoint.id} has no manifest`)
    return manifest
  }

  /** Text of an artifact as the newest attempt left it, or `undefined` if it left none. */
  async artifact(path: string): Promise<string | undefined> {
    return (await readArtifact(this.store, this.jobId, path))?.toString()
  }

  dispose(): void {
    const left = this.machines.flatMap(({ id }) => machineProcesses(id))
    for (const { pid } of left) process.kill(pid, 'SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
    assert.deepEqual(left, [])
  }
}

/**
 * Packs the runner once for a file of tests; gives each test a world of its own, and looks for processes left behind.
 *
 * @param driver a script that starts the runner of the checkout, instead of the packed one
 */
export function useWorlds(driver?: string): (store?: ObjectStore, jobId?: string) => World {
  // Jest's globals rather than its package, which cannot be imported outside of it: the habits use these machines as programs do.
  const { afterAll, afterEach, beforeAll } = globalThis as unknown as typeof Jest
  let folder = ''
  let worlds: World[] = []
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-program-'))
    await packRunner(join(folder, 'runner.pyz'))
  })
  afterEach(() => {
    const ended = worlds
    worlds = []
    for (const world of ended) world.dispose()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return (store, jobId) => {
    const world = new World(driver ?? join(folder, 'runner.pyz'), store, jobId)
    worlds.push(world)
    return world
  }
}

/** Whether a process runs a script of the bundle, rather than looking after the one that does. */
export function runs({ command }: MachineProcess, script: string): boolean {
  return command.includes(script) && !command.includes(' leash ') && !command.startsWith('sh ')
}

interface MachineProcess {
  pid: number
  parent: number
  command: string
}

/** The living processes that carry a machine's name in their environment. */
export function machineProcesses(attemptId: string): MachineProcess[] {
  const mark = `CRUCIBLE_MACHINE=${attemptId}`
  return existsSync('/proc/self/environ') ? processesOfProc(mark) : processesOfPs(mark)
}

/** A backend adds the deployment to the attempt's id. */
function isMarked(words: string[], mark: string): boolean {
  return words.some((word) => word === mark || word.startsWith(`${mark}.`))
}

function processesOfProc(mark: string): MachineProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!isMarked(readFileSync(`/proc/${name}/environ`, 'utf8').split('\0'), mark)) return []
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return state === 'Z' ? [] : [{ pid: Number(name), parent: Number(parent), command }]
      } catch {
        return [] // gone meanwhile
      }
    })
}

/** Without /proc, `ps` shows the environment behind the command. */
function processesOfPs(mark: string): MachineProcess[] {
  return execFileSync('ps', ['-axEww', '-o', 'pid=,ppid=,stat=,command='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , state, ...words]) => state !== undefined && !state.startsWith('Z') && isMarked(words, mark))
    .map(([pid, parent, , ...words]) => ({
      pid: Number(pid),
      parent: Number(parent),
      command: words.join(' '),
    }))
}
