import type { Client } from '@temporalio/client'
import { Worker, type NativeConnection } from '@temporalio/worker'
import { createBackendActivities } from '../activities/backend'
import { WatchLoop } from '../activities/watch/loop'
import type { GrantSource } from '../activities/watch/grants'
import { createWatchActivities } from '../activities/watch/activities'
import type { Backend } from '../backends/backend'
import { defined } from '../core/defined'
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
  /** Deployment whose tasks these workers accept; any task if missing. */
  deployment?: string
  client: Client
  store: ObjectStore
  backend: Backend
  secrets: Pick<SecretIssuer, 'handOver' | 'mask'>
  /** Missing if the store needs no credentials, or the machines have their own. */
  grants?: GrantSource | undefined
  /** Missing in tests of other features: then every request is accepted. */
  authentication?: Authentication | undefined
  /** See `SendingDeps`. */
  sendLimitMs?: number
  /** Called when the provider does not answer about running machines, which no job reports. */
  logger?: Pick<Logger, 'warn' | 'info'>
}

/** Concurrent watches in one process: an entry in a set each, observed together. */
const WATCHES_MAX = 10_000

/** The two workers of one backend: one for its verbs, and one for its watches, so that watches never starve a terminate. */
export async function createBackendWorkers(deps: BackendWorkerDeps): Promise<Worker[]> {
  return Promise.all([createVerbsWorker(deps), createWatchWorker(deps)])
}

export function createVerbsWorker(deps: BackendWorkerDeps): Promise<Worker> {
  const { connection, namespace, client, store, backend, secrets, grants, deployment, sendLimitMs } = deps
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
      ...defined({ sendLimitMs }),
    }),
    ...authentication.workerOptions(deployment),
    // A launch in progress gets time to answer; another worker takes over a settlement.
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
    else logger?.warn({ trouble }, `${backend.name} does not answer about its machines, which keep running`)
  }
  return Worker.create({
    connection,
    namespace,
    taskQueue: watchQueue(backend.name),
    activities: createWatchActivities(loop),
    ...authentication.workerOptions(deployment),
    maxConcurrentActivityTaskExecutions: WATCHES_MAX,
    // Watches are handed over immediately.
    shutdownGraceTime: 0,
  })
}
