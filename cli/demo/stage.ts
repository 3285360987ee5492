import { execFile } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { homeOf, removeDevNote, writeDevNote, type DevNote, type Environment } from '../../client/config'
import { Context } from '../../client/context'
import { CrucibleError } from '../../client/errors'
import { SECOND_MS } from '../../core/time'
import { readWorkerConfig, type WorkerConfig } from '../../workers/config'
import { deploymentOf } from '../../workers/deployment'
import { createLogger, installRuntime } from '../../workers/logging'
import { makeBackend } from '../../workers/make-backend'
import { rolesOf } from '../../workers/run'
import type { Cli } from '../cli'
import { startServer, type Server } from '../dev/server'
import type { Progress } from '../dev/temporal/progress'
import { resolveExecutable } from '../dev/temporal/resolve'
import { startWorkers, type RunningWorkers } from '../dev/workers'

type Backend = Awaited<ReturnType<typeof makeBackend>>

/** A whole Crucible of its own in a temporary folder: nothing of the user's is touched. */
export interface Stage {
  home: string
  context: Context
  /** The provider, which the demo plays. */
  backend: Backend
  /** How long it took to get the Temporal server's program, which is long only once. */
  setUpMs: number
  /** Rejects when server or workers cannot go on. */
  broken: Promise<never>
  /** Ends everything. Answers what is left all the same, for which there is no reason. */
  close(): Promise<string[]>
}

/** Machines of this host at prices that nobody pays, as a cloud might ask for a small one. */
const PRETENDED = {
  CRUCIBLE_LOCAL_SPOT: 'yes',
  CRUCIBLE_LOCAL_PRICE: '0.40',
  CRUCIBLE_LOCAL_SPOT_PRICE: '0.12',
  // Two jobs are shown, of one cpu each.
  CRUCIBLE_LOCAL_SLOTS: '2',
}

const BACKEND = 'local'
const OWNER = 'demo'

/** Builds the stage; when that fails, or the signal aborts before it is done, nothing of it is left. */
export async function setStage(cli: Cli, progress: Progress, signal: AbortSignal): Promise<Stage> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'crucible-demo-')))
  const parts: Parts = { home }
  try {
    return await build(cli, parts, { progress, signal })
  } catch (error) {
    await takeDown(parts)
    throw error
  }
}

/** What there is so far, to be taken down in the opposite order. */
interface Parts {
  home: string
  server?: Server
  config?: WorkerConfig
  workers?: RunningWorkers
  context?: Context
  backend?: Backend
  deployment?: string
  note?: DevNote
}

async function build(
  cli: Cli,
  parts: Parts,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<Stage> {
  const { home } = parts
  const environment = environmentOf(cli.environment, home)
  const read = readWorkerConfig(environment)
  const { store } = new Context({ ...read, owner: OWNER, environment }, () => cli.now())
  const at = { store, deployment: (parts.deployment = await deploymentOf(store)) }
  const backend = (parts.backend = await makeBackend(read, BACKEND, at))
  await checkBackend(backend, signal)
  // The executable comes from the user's own cache, so that it is got once.
  const cache = homeOf(cli.environment).directory
  const soughtAtMs = cli.now()
  const found = await resolveExecutable({ home: cache, env: { ...cli.environment }, progress, signal })
  const setUpMs = cli.now() - soughtAtMs
  const server = (parts.server = await startServer({ found, progress, signal, ports: {} }))
  const { connection, namespace, address, uiUrl } = server
  const config = (parts.config = { ...read, temporal: { connection, namespace } })
  const logger = createLogger({ level: 'error', isPretty: cli.out.stderr.isTTY === true })
  installRuntime(logger)
  parts.workers = await startWorkers({ config, roles: rolesOf(config), logger, signal })
  parts.note = { pid: process.pid, address, uiUrl: uiUrl ?? '' }
  writeDevNote(config.home, parts.note)
  const context = (parts.context = cli.context({
    ...config,
    owner: OWNER,
    environment,
    ...(uiUrl === null ? {} : { temporalUiUrl: uiUrl }),
  }))
  const broken = Promise.race([parts.workers.ended, server.ended]).then((reason) => {
    throw new Error(reason ?? 'The workers have ended.')
  })
  // Heard where it is raced against; after the end nobody listens any more.
  broken.catch(() => undefined)
  return { home, context, backend, setUpMs, broken, close: () => takeDown(parts) }
}

/** Before anything is started: a machine without Python cannot show anything. */
async function checkBackend(backend: Backend, signal: AbortSignal): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CALL_LIMIT_MS)])
  const problem = (await backend.check({ signal: limit })).find(({ severity }) => severity === 'error')
  if (problem === undefined) return
  throw new CrucibleError('failed', `The demo cannot run here: ${problem.message}.`, { hint: problem.remedy })
}

/** The user's environment without anything that leads to a Crucible or a Temporal of the user's. */
function environmentOf(environment: Environment, home: string): Environment {
  const kept = Object.entries(environment).filter(
    ([name]) => !/^(?:CRUCIBLE|TEMPORAL)_/.test(name) || name === 'CRUCIBLE_LOCAL_PYTHON',
  )
  return { ...Object.fromEntries(kept), ...PRETENDED, CRUCIBLE_HOME: home }
}

const CALL_LIMIT_MS = 30 * SECOND_MS

async function takeDown({
  home,
  server,
  config,
  workers,
  context,
  backend,
  deployment,
  note,
}: Parts): Promise<string[]> {
  if (config !== undefined && note !== undefined) removeDevNote(config.home, note)
  await workers?.stop().catch(() => undefined)
  // Nobody launches any more: what is there now is all.
  if (backend !== undefined && deployment !== undefined) await endMachines(backend, deployment)
  await context?.close()
  await server?.stop()
  const left = await processesOf(home)
  await rm(home, { recursive: true, force: true, maxRetries: 5 })
  return left
}

async function endMachines(backend: Backend, deployment: string): Promise<void> {
  const signal = AbortSignal.timeout(CALL_LIMIT_MS)
  for (const { handle } of await backend.list(deployment, { signal }))
    await backend.terminate(handle, { signal })
}

/** Processes that were started with a path of the folder. */
async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,args='], {
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout.split('\n').filter((line) => line.includes(folder))
}
