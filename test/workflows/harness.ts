import { setTimeout as sleep } from 'node:timers/promises'
import { Client, type WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client'
import { Worker } from '@temporalio/worker'
import { createDecidingActivities } from '../../activities/deciding'
import { failureInterceptor } from '../../activities/failures'
import { createPlanningActivities } from '../../activities/planning'
import type { Backend } from '../../backends/backend'
import type { JobSpec } from '../../core/job'
import type { JobInput, JobResult, JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money'
import { jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { DEFAULT_TIMING, type Timing } from '../../core/timing'
import { createVerbsWorker, createWatchWorker, type BackendWorkerDeps } from '../../workers/backend'
import { offersThroughWorkers } from '../../workers/offers'
import { RealClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import type { ObjectStore } from '../../storage/store'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld, type WorldOptions } from '../backends/scripted/world'
import { freshNamespace } from '../support/namespace'
import type { TestConnection } from '../support/temporal'
import { testWorkflowBundle } from '../support/workflow-bundle'

/** A life of seconds: every duration a job has, small enough to wait for. */
export const QUICK: Timing = {
  ...DEFAULT_TIMING,
  leaseMs: 60_000,
  drainMs: 2_000,
  powerOffMs: 200,
  beatMs: 50,
  checkpointQuietMs: 50,
  startWithinMs: 10_000,
  silenceMs: 1_500,
  observeMs: 50,
  goneConfirmMs: 100,
}

export const SPEC: JobSpec = {
  name: 'train',
  run: 'train',
  inputs: [],
  resources: {},
  isInterruptible: true,
  checkpoint: {},
  backends: [],
  optimize: 'cost',
  retries: { failures: 0, interruptions: 10 },
  env: {},
  secrets: [],
  outputs: [],
}

export const SPOT = {
  capacityType: 'spot',
  type: 'v100',
  place: 'a',
  stock: 10,
  priceMicroUsdPerHour: microUsd(360),
} as const
export const ON_DEMAND = {
  capacityType: 'on-demand',
  type: 'v100',
  place: 'a',
  stock: 10,
  priceMicroUsdPerHour: microUsd(1_080),
} as const

/** A training that does not end before a test has done with it what it wants to do. */
export const LONG = { stepsTotal: 10_000 } as const

export interface WorldWishes extends Partial<Omit<WorldOptions, 'clock' | 'store'>> {
  timing?: Partial<Timing>
  /** Backends beside the scripted one that the deployment has and nobody serves. */
  unserved?: string[]
}

export type WorkerName = 'orchestrator' | 'verbs' | 'watches'

export const DEPLOYMENT_ID = 'dep-0123456789'

/** What the workers of a deployment work with. */
export interface Ground {
  store: ObjectStore
  backend: () => Backend
  /** Names of all backends that the deployment has. */
  backends: string[]
  timing: Timing
}

/** The real workers of a deployment, in a namespace of its own. */
export class ControlPlane {
  readonly client: Client
  private readonly workers = new Map<WorkerName, { worker: Worker; run: Promise<void> }>()

  constructor(
    private readonly at: TestConnection,
    readonly namespace: string,
    private readonly ground: Ground,
  ) {
    this.client = new Client({ connection: at.client.connection, namespace })
  }

  async startOrchestrator(): Promise<void> {
    const { client, namespace } = this
    const { store, backends, timing } = this.ground
    const now = Date.now
    const worker = await Worker.create({
      connection: this.at.nativeConnection,
      namespace,
      taskQueue: ORCHESTRATOR_QUEUE,
      workflowBundle: await testWorkflowBundle(),
      // A thread of their own would cost each of these short-lived workers more than all of its workflows do.
      debugMode: true,
      activities: {
        ...createPlanningActivities({
          ...{ store, backends, now, timing },
          askOffers: offersThroughWorkers(client, now),
          publishRunner: () => Promise.resolve('0'.repeat(64)),
        }),
        ...createDecidingActivities({ store, now }),
      },
      interceptors: { activity: [() => ({ inbound: failureInterceptor })] },
      shutdownGraceTime: 0,
    })
    this.run('orchestrator', worker)
  }

  async startBackend(): Promise<void> {
    await Promise.all([this.startVerbs(), this.startWatches()])
  }

  async startVerbs(): Promise<void> {
    this.run('verbs', await createVerbsWorker(this.backendDeps()))
  }

  async startWatches(): Promise<void> {
    this.run('watches', await createWatchWorker(this.backendDeps()))
  }

  private backendDeps(): BackendWorkerDeps {
    const { client, namespace } = this
    const { store, backend } = this.ground
    return {
      connection: this.at.nativeConnection,
      ...{ namespace, client, store },
      backend: backend(),
      secrets: { handOver: async () => undefined, mask: async (_jobId, text) => text },
    }
  }

  /** Stops a worker and starts a new one, as an upgrade does. */
  async restart(name: WorkerName): Promise<void> {
    if (!this.workers.has(name)) return
    await this.stop(name)
    switch (name) {
      case 'orchestrator':
        return this.startOrchestrator()
      case 'verbs':
        return this.startVerbs()
      case 'watches':
        return this.startWatches()
    }
  }

  /** Terminates an attempt, as somebody might in the Temporal UI. */
  async terminate(attemptId: string | undefined): Promise<void> {
    if (attemptId === undefined) return
    const workflowId = `job/${attemptId.replace(/-(\d+)$/, '/$1')}`
    await this.client.workflow
      .getHandle(workflowId)
      .terminate('by hand')
      .catch(() => undefined)
  }

  private run(name: WorkerName, worker: Worker): void {
    this.workers.set(name, { worker, run: worker.run() })
  }

  /** Stops one worker, as an upgrade would. */
  async stop(name: WorkerName): Promise<void> {
    const entry = this.workers.get(name)
    if (entry === undefined) return
    this.workers.delete(name)
    entry.worker.shutdown()
    await entry.run
  }

  async close(): Promise<void> {
    await Promise.all((['orchestrator', 'verbs', 'watches'] as const).map((name) => this.stop(name)))
  }

  /** Starts a job; its id is the same in every test, since the namespace is not. */
  async submit(spec: Partial<JobSpec> = {}, input: Partial<JobInput> = {}): Promise<JobHandle> {
    const jobId = input.jobId ?? 'job-test'
    const handle = await this.client.workflow.start(WORKFLOW_TYPES.job, {
      workflowId: jobWorkflowId(jobId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [
        {
          jobId,
          spec: { ...SPEC, ...spec },
          bundle: null,
          owner: 'somebody',
          deployment: DEPLOYMENT_ID,
          submittedAtMs: Date.now(),
          ...input,
        } satisfies JobInput,
      ],
    })
    return handle as JobHandle
  }
}

/** A whole deployment for one test: its own namespace, a store in memory, a scripted provider, and the real workers. */
export class Deployment extends ControlPlane {
  private constructor(
    at: TestConnection,
    namespace: string,
    readonly world: ScriptedWorld,
    readonly store: MemoryStore,
    wishes: WorldWishes,
  ) {
    super(at, namespace, {
      store,
      backend: () => createScriptedBackend(world),
      backends: [world.name, ...(wishes.unserved ?? [])],
      timing: { ...QUICK, ...wishes.timing },
    })
  }

  static async start(at: TestConnection, wishes: WorldWishes = {}): Promise<Deployment> {
    const namespace = await freshNamespace(at.client.connection as never)
    const store = new MemoryStore(Date.now)
    const world = new ScriptedWorld({ clock: new RealClock(), store, wares: [SPOT, ON_DEMAND], ...wishes })
    const deployment = new Deployment(at, namespace, world, store, wishes)
    await deployment.startOrchestrator()
    await deployment.startBackend()
    return deployment
  }

  /** Terminates the running attempt, as somebody might in the Temporal UI. */
  terminateAttempt(): Promise<void> {
    return this.terminate(this.world.machines.at(-1)?.handle.attemptId)
  }

  /** The store answers nobody for a while. */
  async storeOutage(durationMs: number): Promise<void> {
    this.store.isDown = true
    await sleep(durationMs)
    this.store.isDown = false
  }

  override async close(): Promise<void> {
    this.world.dispose()
    await super.close()
  }
}

export type JobHandle = WorkflowHandleWithFirstExecutionRunId & { result(): Promise<JobResult> }

export function statusOf(job: JobHandle): Promise<JobStatus> {
  return job.query<JobStatus>('status')
}

/** Makes tests that have a deployment each, so that all of them run side by side. The connection is there once they run. */
export function worldsOn(
  connection: () => TestConnection,
): (wishes: WorldWishes, test: (deployment: Deployment) => Promise<void>) => () => Promise<void> {
  return (wishes, test) => async () => {
    const deployment = await Deployment.start(connection(), wishes)
    try {
      await test(deployment)
    } finally {
      await deployment.close()
    }
  }
}
