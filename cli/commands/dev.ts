import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Command } from 'commander'
import { removeDevNote, writeDevNote, type DevNote, type Home } from '../../client/config'
import { CrucibleError, toCrucibleError } from '../../client/errors'
import type { WorkerConfig } from '../../workers/config'
import { countArgument } from '../arguments'
import type { Cli } from '../cli'
import type { Server } from '../dev/server'
import { acquireLock, type Lock } from '../dev/temporal/lock'
import { progressOn } from '../dev/temporal/progress'
import { examples } from '../examples'
import type * as workerConfig from '../../workers/config'
import type * as resolving from '../dev/temporal/resolve'
import type * as devServer from '../dev/server'
import type * as logging from '../../workers/logging'
import type * as running from '../../workers/run'
import type * as devWorkers from '../dev/workers'

/** Loaded by who runs the command: help and completion need none of it. */
const lazily = createRequire(__filename)

const PORT_MAX = 65_535

interface Options {
  port?: number
  uiPort?: number
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Run everything on this machine in the foreground: the Temporal server, unless the environment names one, and all workers. ' +
        'Its state is kept between runs. Ctrl-C stops it; jobs go on on their machines and are taken up again at the next start.',
    )
    .option(
      '--port <port>',
      "port of Temporal's gRPC service (usually 7233, or a free one)",
      countArgument(PORT_MAX),
    )
    .option(
      '--ui-port <port>',
      "port of Temporal's Web UI (usually 8233, or a free one)",
      countArgument(PORT_MAX),
    )
    .addHelpText(
      'after',
      examples(
        ['crucible dev', 'in a terminal of its own'],
        ['CRUCIBLE_LOCAL_SPOT=yes crucible dev', 'with spot machines, to try interruptions'],
        ['TEMPORAL_ADDRESS=host:7233 crucible dev', 'workers only, for a server that runs elsewhere'],
      ),
    )
    .action((options: Options) => dev(cli, options))
}

async function dev(cli: Cli, options: Options): Promise<void> {
  const signal = cli.interruption()
  const { readWorkerConfig } = lazily('../../workers/config') as typeof workerConfig
  const config = readWorkerConfig(cli.environment)
  const lock = await takeHome(config.home, signal)
  let server: Server | undefined
  try {
    server = await serverFor(cli, config, { options, signal })
    lock.update({ address: server.address, uiUrl: server.uiUrl ?? '' })
    await runWith(cli, config, server)
  } catch (error) {
    // Told to stop while it was still starting.
    if (!signal.aborted) throw error
  } finally {
    await server?.stop()
    lock.release()
  }
}

type DevInfo = Partial<Pick<DevNote, 'address' | 'uiUrl'>>

/** One `crucible dev` for each home. */
async function takeHome({ directory }: Home, signal: AbortSignal): Promise<Lock<DevInfo>> {
  const path = join(directory, 'dev', 'lock')
  const lock = await acquireLock<DevInfo>(path, { info: {}, waitMs: 0, signal }).catch((error: unknown) => {
    throw signal.aborted ? error : unusable(directory, error)
  })
  if (!('heldBy' in lock)) return lock
  const { processes, info } = lock.heldBy
  const pid = processes[0]!.pid
  const where =
    info.address === undefined
      ? 'it is just starting'
      : `Temporal at ${info.address}${info.uiUrl ? `, its Web UI at ${info.uiUrl}` : ''}`
  throw new CrucibleError(
    'failed',
    `A crucible dev (process ${pid}) runs already for ${directory}: ${where}.`,
    {
      hint: `Use that one, stop it (kill ${pid}), or choose another home with CRUCIBLE_HOME.`,
      details: { pid, ...info },
    },
  )
}

function unusable(directory: string, error: unknown): CrucibleError {
  const { kind, message } = toCrucibleError(error)
  return new CrucibleError(kind, `${directory} cannot be used as Crucible's home: ${message}.`, {
    hint: 'Make it writable, make room, or choose another home with CRUCIBLE_HOME.',
    cause: error,
  })
}

async function serverFor(
  cli: Cli,
  { home }: WorkerConfig,
  { options, signal }: { options: Options; signal: AbortSignal },
): Promise<Server> {
  const { resolveTemporal } = lazily('../dev/temporal/resolve') as typeof resolving
  const { devPorts, startServer } = lazily('../dev/server') as typeof devServer
  const progress = progressOn(cli.out.stderr, () => cli.now())
  const { directory } = home
  const found = await resolveTemporal({ home: directory, env: { ...cli.environment }, progress, signal })
  const isOurs = found.kind === 'executable'
  if (isOurs) progress.note('Starting the Temporal server and the workers.')
  const ports = isOurs ? await devPorts({ grpc: options.port, ui: options.uiPort }, progress) : {}
  return startServer({ found, progress, signal, ports, dataFile: join(directory, 'dev', 'temporal.db') })
}

async function runWith(cli: Cli, read: WorkerConfig, server: Server): Promise<void> {
  const { createLogger, installRuntime } = lazily('../../workers/logging') as typeof logging
  const { rolesOf } = lazily('../../workers/run') as typeof running
  const { startWorkers } = lazily('../dev/workers') as typeof devWorkers
  const signal = cli.interruption()
  const { connection, namespace, address } = server
  const config: WorkerConfig = { ...read, temporal: { connection, namespace } }
  const isQuiet = cli.environment.CRUCIBLE_LOG === undefined
  const logger = createLogger({
    level: isQuiet ? 'warn' : config.logLevel,
    isPretty: cli.out.stderr.isTTY === true,
  })
  installRuntime(logger)
  const roles = rolesOf(config)
  const workers = await startWorkers({ config, roles, logger, signal })
  const note: DevNote = { pid: process.pid, address, uiUrl: server.uiUrl ?? '' }
  try {
    writeDevNote(config.home, note)
    tellReady(cli, config, server)
    const reason = await Promise.race([aborted(signal), workers.ended, server.ended])
    if (!signal.aborted) throw new CrucibleError('unavailable', reason ?? 'The workers have ended.')
    cli.out.note('Stopping; jobs go on on their machines. Once more to end at once.')
    // This is how it is meant to end.
    cli.exitCode = 0
  } finally {
    removeDevNote(config.home, note)
    await workers.stop()
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function tellReady(cli: Cli, { home, backends }: WorkerConfig, { address, namespace, uiUrl }: Server): void {
  const { out } = cli
  out.jsonLine({
    pid: process.pid,
    address,
    namespace,
    uiUrl,
    home: home.directory,
    backends: [...backends.keys()],
  })
  const rows: [string, string][] = [
    ['Temporal', `${address} (namespace ${namespace})`],
    ...(uiUrl === null ? [] : [['Web UI', uiUrl] as [string, string]]),
    ['backends', [...backends.keys()].join(', ')],
    ['home', home.directory],
  ]
  out.line(out.paint.bold('Crucible is ready.'))
  for (const [name, value] of rows) out.line(`  ${out.paint.dim(name.padEnd(8))}  ${value}`)
  out.line(
    cli.asCalled('In another terminal: `crucible submit train.py --follow`, `crucible list`. Ctrl-C stops.'),
  )
}
