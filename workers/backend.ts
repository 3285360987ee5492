import type { Client } from '@temporalio/client'
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker'
import { createBackendActivities } from '../activities/machine/backend'
import { LaunchPace } from '../activities/machine/launch-pace'
import { createReservingActivities } from '../activities/reserving/activities'
import { WatchLoop } from '../activities/watch/loop'
import type { GrantSource } from '../activities/watch/grants'
import { createWatchActivities } from '../activities/watch/activities'
import type { Backend } from '../backends/backend'
import type { BackendActivities, LaunchInput } from '../core/activities'
import type { ReservingActivities } from '../core/reservation/activities'
import { backendQueue, launchQueue, watchQueue } from '../core/queues'
import type { Logger } from 'pino'
import type { ObjectStore } from '../storage/store'
import type { Metrics } from '../activities/metrics'
import { ownersThrough } from './owners'
import { wakeThrough } from './waking'
import { Authentication } from './authentication'
import type { SecretIssuer } from '../service/secrets'
import { identityOf } from '../service/worker-identity'

export interface BackendWorkerDeps {
  connection: NativeConnection
  namespace: string
  /** See `identityOf`; that of this process without a version if missing. */
  identity?: string
  /** Deployment whose tasks these workers accept; any task if missing. */
  deployment?: string
  client: Client
  store: ObjectStore
  backend: Backend
  secrets: Pick<SecretIssuer, 'handOver' | 'mask'>
  /** Source of grants; missing if the store needs no credentials, or the machines have their own. */
  grants?: GrantSource | undefined
  /** Verifier of signatures; missing in tests of other features, which accept every request. */
  authentication?: Authentication | undefined
  /** Counts what the workers do; missing where no address serves them. */
  metrics?: Metrics | undefined
  /** See `SendingDeps`. */
  sendLimitMs?: number
  /** See `PurchaseDeps`. */
  purchaseLimitMs?: number
  /** The worker's wall clock; `Date.now` if missing. */
  now?: () => number
  /** The worker's monotonic clock, for durations; `performance.now` if missing. */
  monotonicMs?: () => number
  /** Called when the provider does not answer about running machines, which no job reports. */
  logger?: Pick<Logger, 'warn' | 'info'>
}

/** Concurrent watches in one process: an entry in a set each, observed together. */
const WATCHES_MAX = 10_000

/**
 * Concurrent verbs in one process. Most of them wait: a settlement for the end of its machine, a launch for its turn at the provider.
 * Hundreds of jobs that end at one moment must not keep another job's launch or terminate waiting for a slot.
 */
const VERBS_MAX = 10_000

/** A worker holds as many launches as it can send in these minutes; the others wait in their task queue. */
const LAUNCHES_HELD_MINUTES = 10

/**
 * Creates the workers of one backend: one for its verbs, one for its watches, so that watches never starve a terminate, and one for its
 * launches if its account limits them, so that waiting launches delay nothing else.
 */
export async function createBackendWorkers(deps: BackendWorkerDeps): Promise<Worker[]> {
  const launches = await createLaunchWorker(deps)
  return [
    ...(await Promise.all([createVerbsWorker(deps), createWatchWorker(deps)])),
    ...(launches === undefined ? [] : [launches]),
  ]
}

/** @internal Tests start and end it alone. */
export function createVerbsWorker(deps: BackendWorkerDeps): Promise<Worker> {
  return Worker.create({
    ...optionsOf(deps),
    taskQueue: backendQueue(deps.backend.name),
    activities: { ...activitiesOf(deps), ...reservingActivitiesOf(deps) },
    maxConcurrentActivityTaskExecutions: VERBS_MAX,
  })
}

/** Undefined if the account allows any number of launches. @internal Tests start and end it alone. */
export async function createLaunchWorker(deps: BackendWorkerDeps): Promise<Worker | undefined> {
  const { store, backend, now = Date.now, monotonicMs = () => performance.now() } = deps
  const { launchesPerMinute } = backend.capabilities.pace ?? {}
  if (launchesPerMinute === undefined) return undefined
  const launchPace = new LaunchPace({ store, backend: backend.name, launchesPerMinute }, { now, monotonicMs })
  const activities = activitiesOf(deps, launchPace)
  return Worker.create({
    ...optionsOf(deps),
    taskQueue: launchQueue(backend.name),
    activities: { launch: (input: LaunchInput) => activities.launch(input) },
    // `maxTaskQueueActivitiesPerSecond` does not keep the rate: docs/decisions/0043-launches-take-turns.md.
    maxConcurrentActivityTaskExecutions: Math.ceil(launchesPerMinute * LAUNCHES_HELD_MINUTES),
  })
}

function optionsOf({
  connection,
  namespace,
  deployment,
  backend,
  metrics,
  identity = identityOf(backend.name),
  authentication = new Authentication(),
}: BackendWorkerDeps): Pick<
  WorkerOptions,
  'connection' | 'namespace' | 'identity' | 'interceptors' | 'dataConverter' | 'shutdownGraceTime'
> {
  return {
    connection,
    namespace,
    identity,
    ...authentication.workerOptions(deployment, metrics?.measure(backend.name)),
    // A launch in progress gets time to answer; another worker takes over a settlement.
    shutdownGraceTime: '5 seconds',
  }
}

function activitiesOf(deps: BackendWorkerDeps, launchPace?: LaunchPace): BackendActivities {
  const { client, store, backend, secrets, grants, sendLimitMs, now = Date.now } = deps
  return createBackendActivities({
    backend,
    store,
    now,
    monotonicMs: deps.monotonicMs ?? (() => performance.now()),
    handOverSecrets: (order) => secrets.handOver(order),
    maskSecrets: (jobId, text) => secrets.mask(jobId, text),
    owners: ownersThrough(client),
    wake: wakeThrough(client),
    grants,
    launchPace,
    sendLimitMs,
  })
}

function reservingActivitiesOf({
  client,
  store,
  backend,
  purchaseLimitMs,
  now = Date.now,
}: BackendWorkerDeps): ReservingActivities {
  const deps = { backend, store, now, wake: wakeThrough(client) }
  return createReservingActivities({ ...deps, purchaseLimitMs })
}

/** @internal Tests start and end it alone. */
export function createWatchWorker({
  connection,
  namespace,
  deployment,
  store,
  backend,
  identity = identityOf(backend.name),
  grants,
  logger,
  metrics,
  now = Date.now,
  monotonicMs = () => performance.now(),
  authentication = new Authentication(),
}: BackendWorkerDeps): Promise<Worker> {
  const loop = new WatchLoop(backend, store, now, monotonicMs)
  loop.grants = grants
  metrics?.readWatches(backend.name, loop)
  loop.onProviderTrouble = (trouble) => {
    if (trouble === undefined) logger?.info(`${backend.name} answers about its machines again`)
    else logger?.warn({ trouble }, `${backend.name} does not answer about its machines, which keep running`)
  }
  return Worker.create({
    connection,
    namespace,
    identity,
    taskQueue: watchQueue(backend.name),
    activities: createWatchActivities(loop),
    ...authentication.workerOptions(deployment, metrics?.measure(backend.name)),
    maxConcurrentActivityTaskExecutions: WATCHES_MAX,
    // Watches are handed over immediately.
    shutdownGraceTime: 0,
  })
}
