import type { Client } from '@temporalio/client'
import { Worker, type NativeConnection } from '@temporalio/worker'
import { createBackendActivities } from '../activities/backend'
import { WatchLoop } from '../activities/watch/loop'
import type { GrantSource } from '../activities/watch/grants'
import { createWatchActivities } from '../activities/watch/activities'
import type { Backend } from '../backends/backend'
import { backendQueue, watchQueue } from '../core/queues'
import type { Logger } from 'pino'
import type { ObjectStore } from '../storage/store'
import { ownersThrough } from './owners'
import { wakeThrough } from './waking'
import { Authentication } from './authentication'
import type { SecretIssuer } from './secrets'

export interface BackendWorkerDeps {
  connection: NativeConnection
  namespace: string
  /** Whose tasks these workers take; any task where it is missing. */
  deployment?: string
  client: Client
  store: ObjectStore
  backend: Backend
  secrets: Pick<SecretIssuer, 'handOver' | 'mask'>
  /** Missing where the store asks for no credentials, or the machines have their own. */
  grants?: GrantSource | undefined
  /** Missing in tests that look at something else: then whatever comes is done. */
  authentication?: Authentication | undefined
  /** Told when the provider does not answer about machines at work, which no job says. */
  logger?: Pick<Logger, 'warn' | 'info'>
}

/** Watches at once in one process: an entry in a set each, looked at together. */
const WATCHES_MAX = 10_000

/** The two workers of one backend: its verbs, and apart from them its watches, so that these never starve a terminate. */
export async function createBackendWorkers(deps: BackendWorkerDeps): Promise<Worker[]> {
  return Promise.all([createVerbsWorker(deps), createWatchWorker(deps)])
}

export function createVerbsWorker(deps: BackendWorkerDeps): Promise<Worker> {
  const { connection, namespace, client, store, backend, secrets, grants, deployment } = deps
  const { authentication = new Authentication() } = deps
  return Worker.create({
    connection,
    namespace,
    taskQueue: backendQueue(backend.name),
    activities: createBackendActivities({
      backend,
      store,
      now: Date.now,
      handOverSecrets: (order) => secrets.handOver(order),
      maskSecrets: (jobId, text) => secrets.mask(jobId, text),
      owners: ownersThrough(client),
      wake: wakeThrough(client),
      grants,
    }),
    ...authentication.workerOptions(deployment),
    // A launch under way is given time to answer; a settlement is taken up by another worker.
    shutdownGraceTime: '5 seconds',
  })
}

export function createWatchWorker({
  connection,
  namespace,
  deployment,
  store,
  backend,
  grants,
  logger,
  authentication = new Authentication(),
}: BackendWorkerDeps): Promise<Worker> {
  const loop = new WatchLoop(backend, store, Date.now)
  loop.grants = grants
  loop.onProviderTrouble = (trouble) => {
    if (trouble === undefined) logger?.info(`${backend.name} answers about its machines again`)
    else logger?.warn({ trouble }, `${backend.name} does not answer about its machines, which go on`)
  }
  return Worker.create({
    connection,
    namespace,
    taskQueue: watchQueue(backend.name),
    activities: createWatchActivities(loop),
    ...authentication.workerOptions(deployment),
    maxConcurrentActivityTaskExecutions: WATCHES_MAX,
    // Watches are handed over at once.
    shutdownGraceTime: 0,
  })
}
