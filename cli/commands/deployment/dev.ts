import { join } from 'node:path'
import type { Command } from 'commander'
import {
  closeHome,
  removeDevNote,
  writeDevNote,
  writePrivately,
  type DevNote,
  type Environment,
  type Home,
} from '../../../client/config'
import { CrucibleError, toCrucibleError } from '../../../client/errors'
import { jobsUiUrl } from '../../../client/job/read-view'
import type { WorkerConfig } from '../../../service/config'
import { countArgument } from '../../kit/arguments'
import { checkSurroundings } from '../../kit/surroundings'
import { SHARED_CLOUD, SHARED_USER, SHARED_USER_REMEDY } from '../../../core/shared-user'
import type { Cli } from '../../cli'
import type { DevCloud } from '../../dev/cloud'
import { watchDisk } from '../../dev/disk'
import type { Server } from '../../dev/server'
import { acquireLock, type Lock } from '../../dev/temporal/lock'
import { progressOn } from '../../dev/temporal/progress'
import { examples } from '../../examples'
import type * as workerConfig from '../../../service/config'
import type * as resolving from '../../dev/temporal/resolve'
import type * as devCloud from '../../dev/cloud'
import type * as devServer from '../../dev/server'
import type * as logging from '../../../workers/logging'
import type * as running from '../../../workers/run'
import type * as devWorkers from '../../dev/workers'

const PORT_MAX = 65_535

interface Options {
  port?: number
  uiPort?: number
  /** A world file, or `true` for the usual world. */
  sim?: string | true
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Run everything on this machine in the foreground: all workers, and a Temporal server unless the environment names one. ' +
        'State is kept between runs. Ctrl-C stops it; jobs keep running on their machines and are picked up at the next start.',
    )
    .option(
      '--port <port>',
      "port of Temporal's gRPC service (default: 7233, or a free one)",
      countArgument(PORT_MAX),
    )
    .option(
      '--ui-port <port>',
      "port of Temporal's Web UI (default: 8233, or a free one)",
      countArgument(PORT_MAX),
    )
    .option(
      '--sim [world]',
      'also run a small cloud: an S3 store, and simulated machines of EC2 or of the providers in CRUCIBLE_BACKENDS; ' +
        'WORLD is a file with its prices, capacity and faults',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible dev', 'in a separate terminal'],
        ['CRUCIBLE_LOCAL_SPOT=yes crucible dev', 'with spot machines, to try interruptions'],
        ['crucible dev --sim', 'a small cloud with EC2 machines'],
        ['CRUCIBLE_BACKENDS=ec2,lambda,modal crucible dev --sim', 'a small cloud with three providers'],
        ['crucible dev --sim world.yaml', 'a small cloud described by a file'],
        ['TEMPORAL_ADDRESS=host:7233 crucible dev', 'workers only, for a server that runs elsewhere'],
      ),
    )
    .action((options: Options) => dev(cli, options))
}

async function dev(cli: Cli, options: Options): Promise<void> {
  checkSurroundings()
  const signal = cli.interruption()
  const { readWorkerConfig } = require('../../../service/config') as typeof workerConfig
  // Settings of simulated providers are only known once the small cloud runs.
  const config = readWorkerConfig(
    options.sim === undefined ? cli.environment : { ...cli.environment, CRUCIBLE_BACKENDS: 'local' },
  )
  const lock = await takeHome(config.home, signal)
  let cloud: DevCloud | undefined
  let server: Server | undefined
  try {
    cloud = await cloudFor(cli, config, { options, signal })
    server = await serverFor(cli, config, { options, signal })
    lock.update({ address: server.address, uiUrl: server.uiUrl ?? '' })
    const environment = cloud?.environmentWith(cli.environment)
    const read = environment === undefined ? config : readWorkerConfig(environment)
    cloud?.refuseRealAccounts(read)
    await runWith(cli, read, { server, cloud, environment })
  } catch (error) {
    // The user stopped it during the start.
    if (!signal.aborted) throw error
  } finally {
    await Promise.all([server?.stop(), cloud?.stop()])
    lock.release()
  }
}

type DevInfo = Partial<Pick<DevNote, 'address' | 'uiUrl'>>

/** Takes the home, because each one can have only one `crucible dev`. */
async function takeHome(home: Home, signal: AbortSignal): Promise<Lock<DevInfo>> {
  const { directory } = home
  try {
    closeHome(home, process.getuid?.())
  } catch (error) {
    throw unusable(directory, error)
  }
  const path = join(directory, 'dev', 'lock')
  const lock = await acquireLock<DevInfo>(path, { info: {}, waitMs: 0, signal }).catch((error: unknown) => {
    throw signal.aborted ? error : unusable(directory, error)
  })
  if (!('heldBy' in lock)) return lock
  const { processes, info } = lock.heldBy
  const pid = processes[0]!.pid
  const where =
    info.address === undefined
      ? 'it is still starting'
      : `Temporal at ${info.address}${info.uiUrl ? `, Web UI at ${info.uiUrl}` : ''}`
  throw new CrucibleError(
    'failed',
    `crucible dev (process ${pid}) is already running for ${directory}: ${where}.`,
    {
      hint: `Use it, stop it (kill ${pid}), or choose another home with CRUCIBLE_HOME.`,
      details: { pid, ...info },
    },
  )
}

function unusable(directory: string, error: unknown): CrucibleError {
  const { kind, message } = toCrucibleError(error)
  return new CrucibleError(
    kind,
    `${directory} cannot be used as Crucible's home: ${message.replace(/\.$/, '')}.`,
    {
      hint: 'Make it writable, free some space, or choose another home with CRUCIBLE_HOME.',
      cause: error,
    },
  )
}

/** Folder for data that outlives the small cloud of a home. */
const placeOfCloud = ({ directory }: Home): string => join(directory, 'dev', 'sim')

/** Preferred ports of the small cloud and its store. */
const CLOUD_PORTS = { port: 4566, storePort: 4567 }

async function cloudFor(
  cli: Cli,
  { home }: WorkerConfig,
  { options: { sim }, signal }: { options: Options; signal: AbortSignal },
): Promise<DevCloud | undefined> {
  if (sim === undefined) return undefined
  if ((cli.environment.CRUCIBLE_STORE ?? '') !== '') {
    throw new CrucibleError('usage', 'CRUCIBLE_STORE is set, but --sim starts its own store.', {
      hint: 'Unset CRUCIBLE_STORE, or leave out --sim.',
    })
  }
  const { startDevCloud } = require('../../dev/cloud') as typeof devCloud
  const { claimPort } = require('../../dev/server') as typeof devServer
  const progress = progressOn(cli.out.stderr, () => cli.now())
  progress.note('Starting the small cloud.')
  const port = await claimPort(CLOUD_PORTS.port, { progress })
  const storePort = await claimPort(CLOUD_PORTS.storePort, { progress })
  const place = placeOfCloud(home)
  return startDevCloud({
    world: sim === true ? undefined : sim,
    backends: cli.environment.CRUCIBLE_BACKENDS?.split(',').map((name) => name.trim()),
    port,
    storePort,
    storeDirectory: join(place, 'store'),
    machines: { link: join(place, 'machines') },
    server: { home: home.directory, env: { ...cli.environment }, progress, signal },
  })
}

async function serverFor(
  cli: Cli,
  { home }: WorkerConfig,
  { options, signal }: { options: Options; signal: AbortSignal },
): Promise<Server> {
  const { resolveTemporal } = require('../../dev/temporal/resolve') as typeof resolving
  const { devPorts, startServer } = require('../../dev/server') as typeof devServer
  const progress = progressOn(cli.out.stderr, () => cli.now())
  const { directory } = home
  const place = options.sim === undefined ? join(directory, 'dev') : placeOfCloud(home)
  const found = await resolveTemporal({ home: directory, env: { ...cli.environment }, progress, signal })
  const isOurs = found.kind === 'executable'
  if (isOurs) progress.note('Starting the Temporal server and the workers.')
  const ports = isOurs ? await devPorts({ grpc: options.port, ui: options.uiPort }, { progress }) : {}
  return startServer({ found, progress, signal, ports, dataFile: join(place, 'temporal.db') })
}

interface Surroundings {
  server: Server
  cloud: DevCloud | undefined
  /** Environment of the deployment, if it differs from the process's own. */
  environment: Environment | undefined
}

async function runWith(
  cli: Cli,
  read: WorkerConfig,
  { server, cloud, environment }: Surroundings,
): Promise<void> {
  const { createLogger, installRuntime } = require('../../../workers/logging') as typeof logging
  const { rolesOf } = require('../../../workers/run') as typeof running
  const { openMonitor, startWorkers } = require('../../dev/workers') as typeof devWorkers
  const signal = cli.interruption()
  const { connection, namespace, address } = server
  const config: WorkerConfig = { ...read, temporal: { connection, namespace } }
  const isQuiet = cli.environment.CRUCIBLE_LOG === undefined
  const logger = createLogger({
    level: isQuiet ? 'warn' : config.logLevel,
    isPretty: cli.out.stderr.isTTY === true,
  })
  const monitor = await openMonitor(config.monitor)
  installRuntime(logger, monitor)
  const roles = rolesOf(config)
  const workers = await startWorkers({ config, roles, logger, signal, monitor })
  const note: DevNote = {
    pid: process.pid,
    address,
    uiUrl: server.uiUrl ?? '',
    ...(cloud && {
      cloud: {
        url: cloud.cloud.endpoint,
        simulated: cloud.simulated,
        controlKey: cloud.cloud.controlKey,
      },
      environment: settingsOf(cloud, environment),
    }),
  }
  const stopLooking = watchDisk(config.home.directory, (text) => cli.out.warn(text))
  try {
    writeDevNote(config.home, note)
    if (cloud !== undefined) writeCredentials(config.home, cloud)
    tellReady(cli, config, { server, cloud })
    const ends = [aborted(signal), workers.ended, server.ended]
    const reason = await Promise.race(cloud === undefined ? ends : [...ends, cloud.cloud.ended])
    if (!signal.aborted) throw new CrucibleError('unavailable', reason ?? 'The workers stopped unexpectedly.')
    const meanwhile = cloud
      ? 'the machines of the small cloud end, and their jobs resume at the next start'
      : 'jobs keep running on their machines'
    cli.out.note(`Stopping; ${meanwhile}. Press Ctrl-C again to stop immediately.`)
    // Ctrl-C is the expected end.
    cli.exitCode = 0
  } finally {
    stopLooking()
    removeDevNote(config.home, note)
    await workers.stop()
    await monitor?.close()
  }
}

/** Settings for a client of this deployment. */
function settingsOf({ environment }: DevCloud, effective: Environment = {}): Record<string, string> {
  const entries = Object.entries(environment).map(([name, value]) => [name, effective[name] ?? value])
  return Object.fromEntries(entries) as Record<string, string>
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

type Row = [name: string, value: string]

function rowsOfCloud({ cloud }: DevCloud, home: Home): Row[] {
  const { endpoint, region } = cloud
  const keys = `AWS_SHARED_CREDENTIALS_FILE=${credentialsFile(home)}`
  return [
    ['cloud', `${endpoint}, ${region} (aws --endpoint-url ${endpoint} --region ${region}, with ${keys})`],
    ['store', home.storeUrl],
  ]
}

/** Keys of the small cloud for programs of this user. */
const credentialsFile = (home: Home): string => join(placeOfCloud(home), 'credentials')

function writeCredentials(home: Home, { cloud: { credentials } }: DevCloud): void {
  const { accessKeyId, secretAccessKey } = credentials
  const lines = [
    '[default]',
    `aws_access_key_id = ${accessKeyId}`,
    `aws_secret_access_key = ${secretAccessKey}`,
    '',
  ]
  writePrivately(credentialsFile(home), lines.join('\n'))
}

function tellReady(
  cli: Cli,
  { home, backends }: WorkerConfig,
  { server: { address, namespace, uiUrl }, cloud }: Pick<Surroundings, 'server' | 'cloud'>,
): void {
  const { out } = cli
  out.jsonLine({
    pid: process.pid,
    address,
    namespace,
    uiUrl,
    home: home.directory,
    backends: [...backends.keys()],
    ...(cloud && { cloud: cloud.cloud.endpoint, store: home.storeUrl }),
  })
  const rows: Row[] = [
    ['Temporal', `${address} (namespace ${namespace})`],
    ...(uiUrl === null ? [] : [['jobs', jobsUiUrl(uiUrl, namespace)] as Row]),
    ['backends', [...backends.keys()].join(', ')],
    ['home', home.directory],
    ...(cloud === undefined ? [] : rowsOfCloud(cloud, home)),
  ]
  out.line(out.paint.bold('Crucible is ready.'))
  for (const [name, value] of rows) out.line(`  ${out.paint.dim(name.padEnd(8))}  ${value}`)
  out.line(
    cli.asCalled('In another terminal: `crucible submit train.py --follow`, `crucible list`. Ctrl-C stops.'),
  )
  // As root, each job has a user; `crucible doctor` says where that fails.
  if (process.getuid?.() === 0) return
  if (backends.has('local')) out.note(out.paintNote.yellow(`${SHARED_USER} ${SHARED_USER_REMEDY}`))
  if (cloud !== undefined) out.note(out.paintNote.yellow(`Small cloud: ${SHARED_CLOUD}`))
}
