import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client'
import { Worker, type ActivityInterceptorsFactory } from '@temporalio/worker'
import { createCopyingActivities } from '../../activities/copying'
import { createDecidingActivities } from '../../activities/plan/deciding'
import { createPlanningActivities } from '../../activities/plan/planning'
import { createRetrainingActivities } from '../../activities/retraining/activities'
import { createReservationDocuments } from '../../activities/reserving/documents'
import { createDrainingActivities } from '../../activities/machine/draining'
import { createStoreActivities } from '../../activities/garbage/store'
import { Treasury } from '../../activities/money/treasury'
import { WaitingLine } from '../../activities/plan/waiting-line'
import type { OwnerLookup } from '../../activities/garbage/garbage'
import type { Backend } from '../../backends/backend'
import type { OrchestratorActivities } from '../../core/activities'
import type { JobSpec } from '../../core/job/job'
import type { AttemptStatus, JobInput, JobResult, JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import type { MonthlyLimits } from '../../core/money/treasury'
import { HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING, type Timing } from '../../core/time/timing'
import { Authentication } from '../../workers/authentication'
import {
  createLaunchWorker,
  createVerbsWorker,
  createWatchWorker,
  type BackendWorkerDeps,
} from '../../workers/backend'
import { offersThroughWorkers } from '../../workers/offers'
import { ownersThrough } from '../../workers/owners'
import { wakeThrough } from '../../workers/waking'
import { RealClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import type { ObjectStore } from '../../storage/store'
import { SPEC } from '../support/spec'
import { unlikeReplays } from '../kit/replays'
import { keepHistories } from '../replay/lived'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld, type WorldOptions } from '../backends/scripted/world'
import { freshNamespace } from '../support/namespace'
import type { TestConnection } from '../support/temporal'
import { TEST_WORKER, testWorkflowBundle } from '../support/workflow-bundle'

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
  /** What may be spent in a month. */
  monthly?: MonthlyLimits
  /** Decides whether a budget fits, instead of the product's policy. */
  admitBudget?: OrchestratorActivities['admitBudget']
  /** Waiting jobs look when they are woken, and not again; no answer of a provider serves two looks. */
  looksOnce?: boolean
  /** The send of a worker that died may be in progress for this long. */
  sendLimitMs?: number
  /** The same for a purchase. */
  purchaseLimitMs?: number
  /** How far the clock of the backend's workers is ahead. */
  skewMs?: number
  /** Takes the news that go to webhooks. */
  posted?: { url: string; body: string }[]
  /** They are taken only after this. */
  hears?: Promise<unknown>
  /** Backends of the deployment without workers, in addition to the scripted one. */
  unserved?: string[]
  /** Answers in place of some activities, which run if their answer calls `perform`. */
  answers?: Answers
}

type Answers = Readonly<Record<string, (input: never, perform: () => Promise<unknown>) => unknown>>

class ScriptedAnswers extends Authentication {
  constructor(
    private readonly answers: Answers,
    ...others: ConstructorParameters<typeof Authentication>
  ) {
    super(...others)
  }

  override workerOptions(deployment?: string): ReturnType<Authentication['workerOptions']> {
    const { answers } = this
    const { interceptors, ...others } = super.workerOptions(deployment)
    const scripted: ActivityInterceptorsFactory = ({ info }) => ({
      inbound: {
        async execute(input, next) {
          const answer = answers[info.activityType]
          return answer === undefined ? next(input) : answer(input.args[0] as never, () => next(input))
        },
      },
    })
    return { ...others, interceptors: { activity: [...interceptors!.activity!, scripted] } }
  }
}

const WORKERS = ['orchestrator', 'verbs', 'watches', 'launches'] as const
export type WorkerName = (typeof WORKERS)[number]

/** The deployment's key. */
export const TEST_KEY = Buffer.alloc(32, 'a key of tests')

export const DEPLOYMENT_ID = 'dep-0123456789'

/** What the workers of a deployment work with. */
export interface Ground {
  store: ObjectStore
  backend: () => Backend
  /** Names of all backends that the deployment has. */
  backends: string[]
  timing: Timing
  /** What may be spent in a month. */
  monthly?: MonthlyLimits | undefined
  admitBudget?: OrchestratorActivities['admitBudget'] | undefined
  /** Whose tasks the workers take; any task where it is missing. */
  deployment?: string
  looksOnce?: boolean | undefined
  sendLimitMs?: number | undefined
  /** News that went to webhooks. */
  posted?: { url: string; body: string }[] | undefined
  hears?: Promise<unknown> | undefined
  purchaseLimitMs?: number | undefined
  skewMs?: number | undefined
  /** The clock of all workers; the machine's if missing. */
  now?: (() => number) | undefined
  answers?: Answers | undefined
  /** The workflows, if they are not just those of the product. */
  bundle?: (() => Promise<{ codePath: string }>) | undefined
}

/** The jobs of a namespace, by their owner. */
export class Jobs {
  readonly client: Client
  /** As a deployment has it: workers do only what was signed with its key. */
  readonly authentication: Authentication

  constructor(
    protected at: TestConnection,
    readonly namespace: string,
    {
      key = TEST_KEY,
      now,
      answers = {},
    }: { key?: Buffer; now?: (() => number) | undefined; answers?: Answers | undefined } = {},
  ) {
    this.authentication = new ScriptedAnswers(answers, key, now)
    this.client = this.authentication.client(at.client.connection, namespace)
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

  /** Starts a job; its id is the same in every test whose namespace is its own. */
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

/** Workers of a namespace, which come and go. */
export abstract class Workforce extends Jobs {
  private readonly workers = new Map<WorkerName, { worker: Worker; run: Promise<void> }>()

  /** Undefined where a deployment has no such worker. */
  protected abstract make(name: WorkerName): Promise<Worker | undefined>

  async start(...names: WorkerName[]): Promise<void> {
    const starting = names.map(async (name) => {
      const worker = await this.make(name)
      if (worker !== undefined) this.workers.set(name, { worker, run: worker.run() })
    })
    await Promise.all(starting)
  }

  /** Stops a worker and starts a new one, as an upgrade does. */
  async restart(name: WorkerName): Promise<void> {
    if (!this.workers.has(name)) return
    await this.stop(name)
    await this.start(name)
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
    await Promise.all(WORKERS.map((name) => this.stop(name)))
  }
}

/** The real workers of a deployment, in a namespace of its own. */
export class ControlPlane extends Workforce {
  constructor(
    at: TestConnection,
    namespace: string,
    protected readonly ground: Ground,
  ) {
    super(at, namespace, ground)
  }

  startOrchestrator(): Promise<void> {
    return this.start('orchestrator')
  }

  startBackend(): Promise<void> {
    return this.start('verbs', 'watches', 'launches')
  }

  protected async make(name: WorkerName): Promise<Worker | undefined> {
    switch (name) {
      case 'orchestrator':
        return this.makeOrchestrator()
      case 'verbs':
        return createVerbsWorker(this.backendDeps())
      case 'watches':
        return createWatchWorker(this.backendDeps())
      case 'launches':
        return createLaunchWorker(this.backendDeps())
    }
  }

  private async makeOrchestrator(): Promise<Worker> {
    const { client, namespace } = this
    const { store, backends, timing, monthly: limits, admitBudget, bundle = testWorkflowBundle } = this.ground
    const owners = ownersThrough(client)
    const treasury = limits && new Treasury({ client, store, owners, limits })
    const { now = Date.now } = this.ground
    const planning = createPlanningActivities({
      store,
      backends,
      now,
      timing,
      treasury,
      askOffers: offersThroughWorkers(client, now, this.ground.looksOnce === true ? backends : []),
      line: this.line(owners),
      publishRunner: () => Promise.resolve('0'.repeat(64)),
    })
    return Worker.create({
      connection: this.at.nativeConnection,
      namespace,
      taskQueue: ORCHESTRATOR_QUEUE,
      workflowBundle: await this.authentication.guard(await bundle(), DEPLOYMENT_ID),
      activities: {
        ...planning,
        ...createRetrainingActivities({
          client,
          store,
          now,
          preview: (spec) => planning.previewPlan({ spec }),
          measure: () => undefined,
          post: this.post,
        }),
        ...createCopyingActivities({ store, now }),
        ...createDecidingActivities({ client, store, now, treasury }),
        ...(admitBudget && { admitBudget }),
        ...createReservationDocuments({
          store,
          now,
          treasury,
          key: TEST_KEY,
          post: this.post,
          preview: (spec) => planning.previewPlan({ spec }),
        }),
        ...createDrainingActivities({ client, store, now }),
        ...createStoreActivities({ store, now, owners, treasury }),
      },
      ...this.authentication.workerOptions(this.ground.deployment),
      ...TEST_WORKER,
    })
  }

  private readonly post = async (url: string, body: string): Promise<void> => {
    await this.ground.hears
    this.ground.posted?.push({ url, body })
  }

  private line(owners: OwnerLookup): WaitingLine {
    const { store, backends, looksOnce, now = Date.now } = this.ground
    const line = new WaitingLine({
      store,
      owners,
      now,
      backends,
      near: [],
      random: Math.random,
      wake: wakeThrough(this.client),
      onTrouble: () => {},
    })
    if (looksOnce === true) line.retryInMs = () => HOUR_MS
    return line
  }

  private backendDeps(): BackendWorkerDeps {
    const { authentication, client, namespace } = this
    const { store, backend, deployment, sendLimitMs, purchaseLimitMs, skewMs = 0 } = this.ground
    const { now = Date.now } = this.ground
    return {
      deployment,
      sendLimitMs,
      purchaseLimitMs,
      now: () => now() + skewMs,
      // A driven clock drives durations too.
      monotonicMs: this.ground.now,
      connection: this.at.nativeConnection,
      namespace,
      client,
      store,
      authentication,
      backend: backend(),
      secrets: { handOver: async () => undefined, mask: async (_jobId, text) => text },
    }
  }
}

function worldOf(store: ObjectStore, wishes: WorldWishes): ScriptedWorld {
  return new ScriptedWorld({ clock: new RealClock(), store, wares: [SPOT, ON_DEMAND], ...wishes })
}

/** A whole deployment for one test: its own namespace, a store in memory, a scripted provider, and the real workers. */
export class Deployment extends ControlPlane {
  private readonly others: { world: ScriptedWorld; workers: ControlPlane }[] = []

  private constructor(
    at: TestConnection,
    namespace: string,
    readonly world: ScriptedWorld,
    readonly store: MemoryStore,
    readonly wishes: WorldWishes,
  ) {
    super(at, namespace, {
      store,
      backend: () => createScriptedBackend(world),
      backends: [world.name, ...(wishes.unserved ?? [])],
      timing: { ...QUICK, ...wishes.timing },
      monthly: wishes.monthly,
      admitBudget: wishes.admitBudget,
      looksOnce: wishes.looksOnce,
      sendLimitMs: wishes.sendLimitMs,
      posted: wishes.posted,
      hears: wishes.hears,
      purchaseLimitMs: wishes.purchaseLimitMs,
      skewMs: wishes.skewMs,
      answers: wishes.answers,
    })
  }

  static async start(at: TestConnection, wishes: WorldWishes = {}): Promise<Deployment> {
    const namespace = await freshNamespace(at.client.connection as never)
    const store = new MemoryStore(Date.now)
    const world = worldOf(store, wishes)
    const deployment = new Deployment(at, namespace, world, store, wishes)
    await deployment.startOrchestrator()
    await deployment.startBackend()
    return deployment
  }

  /** Serves a backend that `unserved` names, from a world of its own that has what the first one has. */
  async serve(name: string): Promise<void> {
    const world = worldOf(this.store, { ...this.wishes, name })
    const backend = (): Backend => createScriptedBackend(world)
    const workers = new ControlPlane(this.at, this.namespace, { ...this.ground, backend })
    this.others.push({ world, workers })
    await workers.startBackend()
  }

  /** More workers for the same backend, with a connection of their own. */
  beside(at: TestConnection): ControlPlane {
    return new ControlPlane(at, this.namespace, this.ground)
  }

  /** Terminates the running attempt, as somebody might in the Temporal UI. */
  terminateAttempt(): Promise<void> {
    return this.terminate(this.world.machines.at(-1)?.handle.attemptId)
  }

  /** The store answers no request for a while. */
  async storeOutage(durationMs: number): Promise<void> {
    this.store.isDown = true
    await sleep(durationMs)
    this.store.isDown = false
  }

  /** Ends all; every decision that a job put on record can be made again from it. */
  override async close(): Promise<void> {
    await keepHistories(this.client)
    this.world.dispose()
    for (const { world, workers } of this.others) {
      world.dispose()
      await workers.close()
    }
    await super.close()
    this.store.isDown = false
    const wrong = await unlikeReplays(this.store)
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  }
}

export { SPEC }

export type JobHandle = WorkflowHandleWithFirstExecutionRunId & { result(): Promise<JobResult> }

/** Where the job is, with how far its attempt has come by the attempt's own word: as views join it. */
export async function statusOf(job: JobHandle): Promise<JobStatus> {
  const status = await job.query<JobStatus>('status')
  const last = status.attempts.at(-1)
  if (status.state !== 'running' || last === undefined || last.endedAtMs !== undefined) return status
  const attempt = await job.client
    .getHandle(last.workflowId)
    .query<AttemptStatus>('status')
    .catch(() => undefined)
  if (attempt === undefined && status.reason !== 'under-way') return status
  // An attempt that does not answer yet has only been started.
  const { state, reason, handle } = attempt ?? { state: 'provisioning', reason: 'launching', handle: null }
  const isStarting = state === 'provisioning'
  const attempts = [
    ...status.attempts.slice(0, -1),
    isStarting ? last : { ...last, state, reason, ...(handle && { realised: handle.realised }) },
  ]
  if (!isStarting) return { ...status, attempts, reason: 'training', message: 'Training.' }
  return {
    ...status,
    attempts,
    state: 'provisioning',
    ...(status.reason === 'under-way' && { reason: 'launching' }),
  }
}

/** Makes tests that have a deployment each, so that all of them run concurrently. The connection is there once they run. */
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
