import type { Client } from '@temporalio/client'
import { Worker, type NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import { createCopyingActivities } from '../activities/copying'
import { createDecidingActivities } from '../activities/plan/deciding'
import type { AskOffers } from '../activities/plan/asking'
import { Treasury } from '../activities/money/treasury'
import { createInputSizes } from '../activities/plan/input-sizes'
import { createPlanningActivities } from '../activities/plan/planning'
import { createDrainingActivities } from '../activities/machine/draining'
import { createStoreActivities } from '../activities/garbage/store'
import { createReservationDocuments } from '../activities/reserving/documents'
import { createRetrainingActivities } from '../activities/retraining/activities'
import { WaitingLine } from '../activities/plan/waiting-line'
import type { OrchestratorActivities } from '../core/activities'
import type { ReservationDocuments } from '../core/reservation/activities'
import type { RetrainingActivities } from '../core/retraining/run'
import { ORCHESTRATOR_QUEUE, ORCHESTRATOR_ROLE } from '../core/queues'
import { limitsAnybody } from '../core/money/treasury'
import { INPUT_MEASURERS } from '../service/input-measurers'
import type { ObjectStore } from '../storage/store'
import type { Authentication } from './authentication'
import { workflowBundle } from './bundle'
import { nearBackends, type WorkerConfig } from '../service/config'
import type { Metrics } from '../activities/metrics'
import { measureInput, postJson } from './outside'
import { ownersThrough } from './owners'
import { runnerPublisher } from '../service/runner-program'
import { wakeThrough } from './waking'

export interface OrchestratorDeps {
  config: WorkerConfig
  connection: NativeConnection
  /** See `identityOf`. */
  identity: string
  store: ObjectStore
  askOffers: AskOffers
  client: Client
  /** Deployment whose tasks it accepts. */
  deployment: string
  /** Opens the secrets of schedules. */
  key: Buffer
  authentication: Authentication
  /** Counts what the worker does; missing where no address serves them. */
  metrics?: Metrics | undefined
  logger: Logger
}

/** Workflows cached in memory; beyond that, the oldest are dropped and replayed when needed. */
const CACHED_WORKFLOWS_MAX = 5_000

/** Workflows, planning, decisions and documents, on `ORCHESTRATOR_QUEUE`. */
export async function createOrchestrator(deps: OrchestratorDeps): Promise<Worker> {
  const { config, connection, store, askOffers, client, authentication, metrics, logger } = deps
  const now = Date.now
  const limits = config.monthly
  // Without limits, this worker starts no treasury, but settles reservations made by others.
  const treasury = new Treasury({ client, store, owners: ownersThrough(client), limits })
  const planning = createPlanningActivities({
    store,
    backends: [...config.backends.keys()],
    askOffers,
    now,
    timing: config.timing,
    treasury: limitsAnybody(limits) ? treasury : undefined,
    publishRunner: runnerPublisher(store),
    inputSizes: createInputSizes({ measurers: INPUT_MEASURERS, monotonicMs: () => performance.now() }),
    line: new WaitingLine({
      store,
      owners: ownersThrough(client),
      now,
      backends: [...config.backends.keys()],
      near: nearBackends(config),
      random: Math.random,
      wake: wakeThrough(client),
      onTrouble: (error) =>
        logger.warn(
          { error: (error as Error).message },
          'the order of waiting jobs could not be kept; a job asks independently',
        ),
    }),
  })
  const activities: OrchestratorActivities & ReservationDocuments & RetrainingActivities = {
    ...planning,
    ...createCopyingActivities({ store, now }),
    ...createDecidingActivities({ client, store, now, treasury }),
    ...createReservationDocuments({
      store,
      now,
      treasury,
      key: deps.key,
      post: postJson,
      preview: (spec) => planning.previewPlan({ spec }),
    }),
    ...createRetrainingActivities({
      client,
      store,
      now,
      key: deps.key,
      measure: measureInput,
      post: postJson,
      preview: (spec, owner) => planning.previewPlan({ spec, owner }),
    }),
    ...createDrainingActivities({ client, store, now }),
    ...createStoreActivities({ store, now, owners: ownersThrough(client), treasury }),
  }
  metrics?.readJobs(client, [...config.backends.keys()])
  return Worker.create({
    connection,
    namespace: config.temporal.namespace,
    identity: deps.identity,
    taskQueue: ORCHESTRATOR_QUEUE,
    workflowBundle: await authentication.guard(workflowBundle(), deps.deployment),
    activities,
    ...authentication.workerOptions(deps.deployment, metrics?.measure(ORCHESTRATOR_ROLE)),
    maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
    shutdownGraceTime: '5 seconds',
  })
}
