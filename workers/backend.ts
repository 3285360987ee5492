import type { Client } from '@temporalio/client'
import { Worker, type NativeConnection } from '@temporalio/worker'
import { createBackendActivities } from '../activities/backend'
import { failureInterceptor } from '../activities/failures'
import { Fleet } from '../activities/fleet'
import { createWatchActivities } from '../activities/watch'
import type { Backend } from '../backends/backend'
import { backendQueue, watchQueue } from '../core/queues'
import type { ObjectStore } from '../storage/store'
import { ownersThrough } from './owners'
import type { SecretsDesk } from './secrets'

export interface BackendWorkerDeps {
  connection: NativeConnection
  namespace: string
  client: Client
  store: ObjectStore
  backend: Backend
  secrets: Pick<SecretsDesk, 'handOver'>
}

/** Watches at once in one process: an entry in a set each, looked at together. */
const WATCHES_MAX = 10_000

/** The two workers of one backend: its verbs, and apart from them its watches, so that these never starve a terminate. */
export async function createBackendWorkers(deps: BackendWorkerDeps): Promise<Worker[]> {
  const { connection, namespace, client, store, backend, secrets } = deps
  const now = Date.now
  const common = {
    connection,
    namespace,
    interceptors: { activity: [() => ({ inbound: failureInterceptor })] },
    // Drains and watches are handed over at once; a launch under way is given time to answer.
    shutdownGraceTime: '5 seconds' as const,
  }
  const verbs = Worker.create({
    ...common,
    taskQueue: backendQueue(backend.name),
    activities: createBackendActivities({
      backend,
      store,
      now,
      handOverSecrets: (order) => secrets.handOver(order),
      owners: ownersThrough(client),
    }),
  })
  const watches = Worker.create({
    ...common,
    taskQueue: watchQueue(backend.name),
    activities: createWatchActivities(new Fleet(backend, store, now)),
    maxConcurrentActivityTaskExecutions: WATCHES_MAX,
    shutdownGraceTime: 0,
  })
  return Promise.all([verbs, watches])
}
