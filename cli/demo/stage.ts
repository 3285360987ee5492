import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { homeOf, removeDevNote, writeDevNote, type DevNote, type Environment } from '../../client/config'
import type { Context } from '../../client/context'
import { readWorkerConfig, type WorkerConfig } from '../../service/config'
import { createLogger, installRuntime } from '../../workers/logging'
import { rolesOf } from '../../workers/run'
import type { Cli } from '../cli'
import { storeServer } from '../dev/cloud'
import { startServer, type Server } from '../dev/server'
import type { Progress } from '../dev/temporal/progress'
import { resolveExecutable } from '../dev/temporal/resolve'
import { startWorkers, type RunningWorkers } from '../dev/workers'
import { orWithout, smallCloud, thisHost, type Scenery } from './scenery'

/** A complete Crucible in a temporary folder; nothing of the user's is touched. */
export interface Stage {
  home: string
  context: Context
  /** The provider, which the demo plays. */
  interrupt: Scenery['interrupt']
  fill: Scenery['fill']
  /** Time to obtain the servers' programs, which is long only on the first run. */
  setUpMs: number
  /** Rejects when the server or the workers cannot continue. */
  broken: Promise<never>
  /** Ends everything. Returns what unexpectedly remains. */
  close(): Promise<string[]>
}

export interface StageOptions {
  progress: Progress
  signal: AbortSignal
  /** Whether machines are processes of this host instead of a small cloud's. */
  isLocal: boolean
  /** Three providers instead of EC2 alone. */
  isEverywhere: boolean
}

const OWNER = 'demo'

/** Builds the stage; if that fails, or the signal aborts first, nothing remains. */
export async function setStage(cli: Cli, options: StageOptions): Promise<Stage> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'crucible-demo-')))
  // A root user's machines run as another user.
  await chmod(home, 0o711)
  const parts: Parts = { home }
  try {
    return await build(cli, parts, options)
  } catch (error) {
    await takeDown(parts)
    throw error
  }
}

/** Parts that exist so far and are closed in reverse order. */
interface Parts {
  home: string
  scenery?: Scenery
  server?: Server
  config?: WorkerConfig
  workers?: RunningWorkers
  context?: Context
  note?: DevNote
}

async function build(
  cli: Cli,
  parts: Parts,
  { progress, signal, isLocal, isEverywhere }: StageOptions,
): Promise<Stage> {
  const { home } = parts
  // The programs come from the user's cache, so that they are downloaded once.
  const seeking = { home: homeOf(cli.environment).directory, env: { ...cli.environment }, progress, signal }
  const own = environmentOf(cli.environment, home)
  const soughtAtMs = cli.now()
  if (!isLocal) await orWithout(storeServer(seeking), signal)
  const found = await resolveExecutable(seeking)
  const setUpMs = cli.now() - soughtAtMs
  const scenery = (parts.scenery = isLocal
    ? await thisHost(own, signal)
    : await orWithout(smallCloud(home, seeking, isEverywhere), signal))
  const environment = { ...own, ...scenery.environment }
  const read = readWorkerConfig(environment)
  const server = (parts.server = await startServer({ found, progress, signal, ports: {} }))
  const { connection, namespace, address, uiUrl } = server
  const config = (parts.config = { ...read, temporal: { connection, namespace } })
  const logger = createLogger({ level: 'error', isPretty: cli.out.stderr.isTTY === true })
  installRuntime(logger)
  parts.workers = await startWorkers({ config, roles: rolesOf(config), logger, signal })
  parts.note = {
    pid: process.pid,
    address,
    uiUrl: uiUrl ?? '',
    environment: scenery.environment as Record<string, string>,
  }
  writeDevNote(config.home, parts.note)
  const context = (parts.context = cli.context({
    ...config,
    owner: OWNER,
    environment,
    temporalUiUrl: uiUrl === null ? undefined : uiUrl,
  }))
  const broken = Promise.race([parts.workers.ended, server.ended, scenery.ended]).then((reason) => {
    throw new Error(reason ?? 'The workers stopped unexpectedly.')
  })
  // Each race handles the rejection itself; this handler covers the time after the last one.
  broken.catch(() => undefined)
  const { interrupt, fill } = scenery
  return { home, context, interrupt, fill, setUpMs, broken, close: () => takeDown(parts) }
}

/** The user's environment without anything that leads to another Crucible, Temporal server or account. */
function environmentOf(environment: Environment, home: string): Environment {
  const kept = Object.entries(environment).filter(
    ([name]) => !/^(?:CRUCIBLE|TEMPORAL|AWS)_/.test(name) || name === 'CRUCIBLE_LOCAL_PYTHON',
  )
  return { ...Object.fromEntries(kept), CRUCIBLE_HOME: home }
}

async function takeDown({ home, scenery, server, config, workers, context, note }: Parts): Promise<string[]> {
  if (config !== undefined && note !== undefined) removeDevNote(config.home, note)
  await workers?.stop().catch(() => undefined)
  // No process launches machines at this point, so the list is complete.
  await scenery?.close()
  await context?.close()
  await server?.stop()
  const left = await processesOf(home)
  await rm(home, { recursive: true, force: true, maxRetries: 5 })
  return left
}

/** Processes that this one started, or whose arguments contain a path of the folder. */
async function processesOf(folder: string): Promise<string[]> {
  const lines = process.platform === 'linux' ? linesOfProc() : await linesOfPs()
  return lines.filter((line) => line.includes(folder) || Number(line.trim().split(/\s+/)[1]) === process.pid)
}

async function linesOfPs(): Promise<string[]> {
  const listing = promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args='], {
    maxBuffer: 64 * 1024 * 1024,
  })
  const { stdout } = await listing
  return stdout.split('\n').filter((line) => Number(line.trim().split(/\s+/)[0]) !== listing.child.pid)
}

/** Lists processes as `ps` does, from /proc, because small images have no `ps`. */
function linesOfProc(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [`${pid} ${parent} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`]
    } catch {
      // Not a process, or one that has ended.
      return []
    }
  })
}
