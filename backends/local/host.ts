import { mkdir } from 'node:fs/promises'
import { availableParallelism, hostname } from 'node:os'
import type { Order } from '../../core/job/plan'
import { Ages } from '../../core/time/ages'
import { BackendError } from '../errors'
import { createExclusive, type Exclusive } from './calls'
import { machineEnvironment, NOTICE_DEFAULT_MS, PYTHON_DEFAULT, type LocalConfig } from './config'
import { Holds } from './holds'
import { readGpus, type GpuInventory } from './gpus'
import { readJobUsers, type JobUsers } from './job-users'
import { scanProcesses, type ProcessScan, type ProcessReader } from './processes'
import { createLinuxReader } from './processes-linux'
import { createPsReader } from './processes-ps'
import { findPython } from './python'
import { createPaths, type Paths } from './records'

/** Dependencies that the caller provides. */
export interface LocalDeps {
  /** Copies the runner program with this digest to a path; the backend verifies the digest. */
  fetchRunner(sha256: string, toPath: string): Promise<void>
  /** Milliseconds since 1970. */
  clock(): number
  /** Milliseconds by a clock that never steps, for durations; `clock` if missing. */
  monotonic?(): number
  /** Deployment whose machines may be found and ended; every deployment's if missing. */
  deployment?: string
  /** The attempt's key for its sealed secrets, 64 hex digits; missing without secrets. */
  secretKeyOf?(attemptId: string): string
  /** Credentials for the store, as the text of a file for the runner; missing for a store without credentials. */
  grantFile?(order: Order): Promise<string>
}

/** This host, as the verbs use it. */
export interface Host {
  config: Required<Omit<LocalConfig, 'uids'>> & Pick<LocalConfig, 'uids'>
  deps: LocalDeps
  paths: Paths
  /** Name of the host, used as the place of its offers. */
  place: string
  exclusive: Exclusive
  holds: Holds
  /** How long ago machines were launched. */
  ages: Ages
  /** Creates the folders under the root, once: if they vanish later, their disk has vanished, and with it the knowledge of machines. */
  makeFolders(): Promise<void>
  /** The clock for durations, which never steps. */
  monotonicMs: () => number
  /** The start of the last sweep by `monotonicMs`, and the paths that looked old then. */
  sweeps: { atMs: number; old: ReadonlySet<string> }
  processes(): ProcessScan
  /** Path of the Python that runs the runner; throws a `BackendError` without one. */
  python(signal: AbortSignal): Promise<string>
  gpus(signal: AbortSignal): Promise<GpuInventory>
  jobUsers(signal: AbortSignal): Promise<JobUsers>
}

/** GPUs do not come or go during planning, and waking the driver takes seconds. */
const GPUS_FRESH_MS = 30_000
/** Validity of a found Python; a missing one is searched for again at once. */
const PYTHON_FRESH_MS = 60_000
/** Finding out which user can run what takes some processes. */
const USERS_FRESH_MS = 60_000

export function createHost(config: LocalConfig, deps: LocalDeps): Host {
  const environment = config.environment ?? machineEnvironment()
  const reader = readerFor(process.platform)
  const paths = createPaths(config.root)
  const monotonicMs = (): number => deps.monotonic?.() ?? deps.clock()
  let hasFolders = false
  let seen: { inventory: GpuInventory; atMs: number } | undefined
  let python: { path: string; atMs: number } | undefined
  let users: { found: JobUsers; atMs: number } | undefined
  const host: Host = {
    config: {
      ...config,
      slots: config.slots ?? availableParallelism(),
      noticeMs: config.noticeMs ?? NOTICE_DEFAULT_MS,
      python: config.python ?? PYTHON_DEFAULT,
      environment,
    },
    deps,
    paths,
    place: hostname(),
    exclusive: createExclusive(),
    holds: new Holds(() => performance.now()),
    ages: new Ages({ now: () => deps.clock(), monotonicMs }),
    makeFolders: async () => {
      if (hasFolders) return
      for (const folder of [paths.machines, paths.staging, paths.tombstones]) {
        await mkdir(folder, { recursive: true, mode: 0o700 })
      }
      hasFolders = true
    },
    monotonicMs,
    sweeps: { atMs: -Infinity, old: new Set() },
    processes: () => scanProcesses(reader),
    python: async (signal) => {
      const nowMs = monotonicMs()
      if (python === undefined || nowMs - python.atMs > PYTHON_FRESH_MS) {
        const found = await findPython(host.config.python, environment, signal)
        if (found.kind === 'refused') throw new BackendError(found.failure)
        python = { path: found.path, atMs: nowMs }
      }
      return python.path
    },
    gpus: async (signal) => {
      const nowMs = monotonicMs()
      if (seen === undefined || nowMs - seen.atMs > GPUS_FRESH_MS) {
        seen = { inventory: await readGpus(environment, signal), atMs: nowMs }
      }
      return seen.inventory
    },
    jobUsers: async (signal) => {
      const nowMs = monotonicMs()
      if (users === undefined || nowMs - users.atMs > USERS_FRESH_MS) {
        users = { found: await readJobUsers(host, signal), atMs: nowMs }
      }
      return users.found
    },
  }
  return host
}

function readerFor(platform: NodeJS.Platform): ProcessReader {
  return platform === 'linux' ? createLinuxReader() : createPsReader(platform)
}
