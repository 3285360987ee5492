import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../backends/backend'
import { createLocalBackend } from '../../backends/local'
import { parseLocalConfig } from '../../backends/local/config'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'
import { readClientConfig } from '../../client/config'
import { Context } from '../../client/context'
import { SmallDisk } from './disk'
import { killMachine, processesOf, signal } from './machines'
import type { Part, PartOptions } from './part'
import { Server, WorkerProcess } from './parts'
import { Seam } from './seam'

const ROOT = join(__dirname, '..', '..')

/** The built product, and what starts it here, in a folder of their own, so that work on the tree does not change what is run. */
export class Product {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-chaos-product-')))

  constructor() {
    cpSync(join(ROOT, 'dist'), join(this.folder, 'dist'), { recursive: true })
    for (const path of ['package.json', 'test/chaos', 'test/support'])
      cpSync(join(ROOT, path), join(this.folder, path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'))
  }

  path(...names: string[]): string {
    return join(this.folder, ...names)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export const TIMING = {
  /** Longer than any outage but a blackout. */
  leaseMs: 20 * 60_000,
  leaseShortMs: 5_000,
  drainMs: 4_000,
  powerOffMs: 1_000,
} as const

/** What small disks are made of, where this user may mount any. */
export type DiskName = 'store' | 'machines'

export interface StageOptions {
  product: Product
  executable: TemporalExecutable
  seed: number
  isLeaseShort: boolean
  /** Folders that are to be small disks. */
  disks: readonly DiskName[]
  /** Of every process, in addition. */
  settings?: Readonly<Record<string, string>>
  /** Of the workers' processes, in addition. */
  ofWorkers?: Readonly<Record<string, string>>
}

interface Parts {
  server: Server
  orchestrator: Part
  backendWorker: Part
}

/** A whole deployment of real processes in a folder of its own. */
export interface Stage {
  home: string
  parts: Parts
  disks: ReadonlyMap<DiskName, SmallDisk>
  /** The provider itself, for what only a provider does. */
  provider: Backend
  context: Context
  /** What a process of the product needs to know the deployment. */
  settings: Readonly<Record<string, string>>
  seam: Seam
  /** What went wrong that no fault explains, such as a part that ended although nothing in the run ended it. */
  failures: string[]
  /** Aborts with the first of them: there is no use in waiting on. */
  failed: AbortSignal
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), `crucible-chaos-${options.seed}-`)))
  for (const folder of ['store', 'machines', 'logs', 'journals']) mkdirSync(join(home, folder))
  const disks = mountAll(home, options.disks)
  const failures: string[] = []
  const failing = new AbortController()
  const part = (name: string): PartOptions => ({
    name,
    log: join(home, 'logs', `${name}.log`),
    onFailure: (what) => {
      failures.push(what)
      failing.abort()
    },
  })
  const { product } = options
  const dataFile = join(home, 'temporal.db')
  const server = await Server.create(part('server'), { executable: options.executable, dataFile })
  const settings = { ...settingsOf(home, options), TEMPORAL_ADDRESS: server.address, ...options.settings }
  const ofWorkers = { ...settings, ...options.ofWorkers }
  const main = product.path('dist', 'cli', 'main.js')
  const seam = join(home, 'seam')
  const parts: Parts = {
    server,
    orchestrator: new WorkerProcess(part('orchestrator'), {
      args: [main, 'worker', 'orchestrator'],
      environment: ofWorkers,
    }),
    backendWorker: new WorkerProcess(part('backend-worker'), {
      args: [
        '--import',
        product.path('test', 'support', 'typescript.mjs'),
        '-e',
        `require(${JSON.stringify(product.path('test', 'chaos', 'backend-worker.ts'))})`,
        '--',
      ],
      environment: { ...ofWorkers, CHAOS_PRODUCT: product.folder, CHAOS_SEAM: seam },
    }),
  }
  return {
    home,
    parts,
    disks,
    provider: await providerOf(settings),
    context: new Context(readClientConfig(settings), Date.now),
    settings,
    seam: new Seam(seam),
    failures,
    failed: failing.signal,
  }
}

export async function startAll({ parts }: Stage): Promise<void> {
  await parts.server.start()
  await Promise.all([parts.orchestrator.start(), parts.backendWorker.start()])
}

/** Ends everything in good order; answers the processes that are still left, and ends them too. */
export async function stopAll({ parts, context, home }: Stage): Promise<string[]> {
  await context.close()
  await Promise.all([parts.orchestrator.stop(), parts.backendWorker.stop()])
  await parts.server.stop()
  const left = processesOf(home)
  for (const { pid, machine } of left) {
    if (machine !== undefined) killMachine(machine)
    signal(pid, 'SIGKILL')
  }
  return left.map(({ pid, command }) => `${pid} ${command}`)
}

/** Takes the disks away, and the folder unless it is wanted. */
export function clear({ disks, home }: Stage, { isKept }: { isKept: boolean }): void {
  for (const disk of disks.values()) {
    if (isKept) disk.keep()
    disk.unmount()
  }
  if (!isKept) rmSync(home, { recursive: true, force: true, maxRetries: 5 })
}

function mountAll(home: string, names: readonly DiskName[]): Stage['disks'] {
  const disks = new Map<DiskName, SmallDisk>()
  for (const name of names) {
    const disk = SmallDisk.mount(join(home, name))
    if (disk !== undefined) disks.set(name, disk)
  }
  return disks
}

function settingsOf(home: string, { isLeaseShort }: StageOptions): Record<string, string> {
  const seconds = (ms: number): string => `${ms / 1_000}s`
  return {
    CRUCIBLE_HOME: home,
    CRUCIBLE_LEASE: seconds(isLeaseShort ? TIMING.leaseShortMs : TIMING.leaseMs),
    CRUCIBLE_DRAIN: seconds(TIMING.drainMs),
    CRUCIBLE_POWER_OFF: seconds(TIMING.powerOffMs),
    CRUCIBLE_CHECKPOINT_QUIET: '0.3s',
    CRUCIBLE_BEAT: '0.5s',
    CRUCIBLE_OBSERVE: '0.3s',
    CRUCIBLE_GONE_CONFIRM: '0.6s',
    CRUCIBLE_LOCAL_ROOT: join(home, 'machines'),
    CRUCIBLE_LOCAL_SPOT: 'yes',
    CRUCIBLE_LOCAL_PRICE: '0.40',
    CRUCIBLE_LOCAL_SPOT_PRICE: '0.12',
    CRUCIBLE_LOCAL_SLOTS: '4',
    // Its programs write into the home of the run.
    CRUCIBLE_LOCAL_UIDS: 'no',
    CRUCIBLE_OWNER: 'chaos',
    PATH: process.env['PATH'] ?? '',
    // Nothing of the user's is read or written.
    HOME: home,
  }
}

async function providerOf(settings: Record<string, string>): Promise<Backend> {
  const parsed = parseLocalConfig(settings)
  if ('problems' in parsed) throw new Error(parsed.problems.join('\n'))
  return createLocalBackend(parsed.config, {
    fetchRunner: () => Promise.reject(new Error('nothing is launched from here')),
    clock: Date.now,
  })
}
