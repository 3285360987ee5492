import { randomBytes } from 'node:crypto'
import type { Client } from '@temporalio/client'
import { IllegalStateError, type NativeConnection, type Worker } from '@temporalio/worker'
import type { Logger } from 'pino'
import { closeHome } from '../storage/home'
import { openStore } from '../storage/open-store'
import { notePlace } from '../storage/places'
import type { ObjectStore } from '../storage/store'
import { openDeploymentKey } from '../storage/deployment-key'
import { readDeploymentKey } from '../storage/secrets'
import { Authentication } from './authentication'
import { createBackendWorkers } from './backend'
import { nearBackends, type WorkerConfig } from '../service/config'
import { connect, untilAnswered } from './connect'
import {
  ensureGarbageCollection,
  ensureSearchAttributes,
  knownDeployment,
  openOwnStore,
} from '../service/deployment'
import { GrantIssuer, granterFor } from '../service/grants'
import { makeBackend } from '../service/make-backend'
import type { Monitor } from './monitor'
import { offersThroughWorkers } from './offers'
import { createOrchestrator } from './orchestrator'
import { ORCHESTRATOR_ROLE } from '../core/queues'
import { checkSameDeployment } from './same-deployment'
import { SecretIssuer } from '../service/secrets'
import { identityOf } from '../service/worker-identity'
import { takeOver } from './taking-over'

/** Role of a process: `orchestrator`, or the name of a backend. */
export type Role = string

/** Roles that a configuration allows, in the order of the documentation. */
export function rolesOf(config: WorkerConfig): Role[] {
  return [ORCHESTRATOR_ROLE, ...config.backends.keys()]
}

export interface RunOptions {
  config: WorkerConfig
  roles: readonly Role[]
  logger: Logger
  /** Version of this product, which `crucible workers` shows. */
  version?: string
  /** Serves what monitors ask this process for; missing without such an address. */
  monitor?: Monitor | undefined
  /** Stops the workers gracefully: no new tasks; tasks in progress are finished or handed over. */
  signal: AbortSignal
  /** Called when all workers poll. */
  onReady?: () => void
}

/** Runs workers of some roles in this process until the signal aborts. Throws when one of them cannot continue. */
export async function runWorkers(options: RunOptions): Promise<void> {
  const { config, logger, signal } = options
  closeHome(config.home, process.getuid?.())
  const patience = { logger, signal }
  const store = openStore(config.home.storeUrl)
  const { secretKeyFile } = config.home
  const known = (): Promise<string | undefined> =>
    untilAnswered(() => deploymentHeld(config, patience), patience)
  const deployment = await openOwnStore(store, { known, secretKeyFile })
  const key = await openDeploymentKey(store, secretKeyFile)
  const { connection, workers } = await untilAnswered(async () => {
    const connection = await connect(config.temporal, patience)
    try {
      return { connection, workers: await makeWorkers({ ...options, store, deployment, key, connection }) }
    } catch (error) {
      // Existing workers keep using it and their queues: anything created next needs another one.
      await connection.close().catch(ignoreHeldConnection)
      throw error
    }
  }, patience)
  if (options.monitor !== undefined)
    options.monitor.isReady = () => workers.every((worker) => worker.getState() === 'RUNNING')
  try {
    await runUntil(signal, workers, options.onReady)
  } finally {
    await connection.close()
  }
}

/** The deployment that the Temporal server holds, signed or not: a worker without a store has no key to tell. */
async function deploymentHeld(
  { temporal, home }: WorkerConfig,
  patience: Pick<RunOptions, 'logger' | 'signal'>,
): Promise<string | undefined> {
  const key = (await readDeploymentKey(home.secretKeyFile)) ?? randomBytes(KEY_BYTES)
  const connection = await connect(temporal, patience)
  try {
    return await knownDeployment(new Authentication(key).client(connection, temporal.namespace))
  } finally {
    await connection.close()
  }
}

const KEY_BYTES = 32

async function makeWorkers(at: Composition): Promise<Worker[]> {
  const { config, logger, signal, store, deployment, connection } = at
  const authentication = new Authentication(at.key)
  const client = authentication.client(connection, config.temporal.namespace, deployment)
  const patience = { logger, signal }
  await untilAnswered(() => ensureSearchAttributes(client, config.temporal.namespace), patience)
  const place = { address: addressOf(config), store, deployment }
  await untilAnswered(() => checkSameDeployment(client, place), patience)
  const made = await Promise.allSettled(
    at.roles.map((role) => createRole({ ...at, client, authentication }, role)),
  )
  const workers = made.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  const failed = made.find((each) => each.status === 'rejected')
  if (failed === undefined) return workers
  // A worker has a thread from the start; only one that has run can be ended.
  await runUntil(AbortSignal.abort(), workers)
  throw failed.reason
}

function addressOf({ temporal }: WorkerConfig): string {
  return temporal.connection.address ?? 'localhost:7233'
}

function ignoreHeldConnection(error: unknown): void {
  if (!(error instanceof IllegalStateError)) throw error
}

type Composition = RunOptions & {
  store: ObjectStore
  deployment: string
  key: Buffer
  connection: NativeConnection
}

async function createRole(
  at: Composition & { client: Client; authentication: Authentication },
  role: Role,
): Promise<Worker[]> {
  const { config, store, connection, client, deployment, logger, authentication } = at
  const identity = identityOf(role, at.version)
  const metrics = at.monitor?.metrics
  if (role !== ORCHESTRATOR_ROLE) {
    const secrets = await SecretIssuer.open(store, config.home.secretKeyFile)
    const granter = granterFor(config, role, store)
    const { timing } = config
    const monotonicMs = (): number => performance.now()
    const grants =
      granter && new GrantIssuer({ granter, keys: secrets, timing, now: Date.now, monotonicMs, logger })
    const backend = await makeBackend(config, role, { store, deployment, secrets, grants, logger })
    for (const place of backend.places ?? []) await notePlace(store, { backend: role, place })
    const workers = await createBackendWorkers({
      connection,
      identity,
      namespace: config.temporal.namespace,
      deployment,
      client,
      store,
      backend,
      secrets,
      grants,
      metrics,
      logger,
      authentication,
    })
    await takeOverGladly(client, { role, logger })
    return workers
  }
  const backends = [...config.backends.keys()]
  await ensureGarbageCollection(client, { store, deployment, backends, logger })
  // Another deployment may have been faster on a new server.
  await checkSameDeployment(client, { address: addressOf(config), store, deployment })
  const askOffers = offersThroughWorkers(client, () => performance.now(), nearBackends(config))
  return [
    await createOrchestrator({
      config,
      connection,
      identity,
      client,
      store,
      askOffers,
      deployment,
      authentication,
      metrics,
      key: at.key,
      logger,
    }),
  ]
}

/** Takes over what a dead process of this host has left. What is not taken over waits for its heartbeat timeout. */
async function takeOverGladly(
  client: Client,
  { role, logger }: { role: Role; logger: Logger },
): Promise<void> {
  try {
    const count = await takeOver(client, role)
    if (count > 0) logger.info({ backend: role, count }, 'took over the work of a worker that had ended')
  } catch (error) {
    logger.warn(
      { backend: role, error: (error as Error).message },
      'the work of a dead worker is taken up later',
    )
  }
}

async function runUntil(signal: AbortSignal, workers: Worker[], onReady?: () => void): Promise<void> {
  const stop = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
  }
  signal.addEventListener('abort', stop, { once: true })
  // A worker that fails stops the others, because a process that does half of its work is useless.
  const running = workers.map((worker) =>
    worker.run().catch((error: unknown) => {
      stop()
      throw error
    }),
  )
  if (signal.aborted) stop()
  else onReady?.()
  await Promise.all(running)
}
