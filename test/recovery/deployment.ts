/** A whole deployment on the small cloud: real workers, EC2 over the wire, machines that are processes, the store in S3. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, Connection } from '@temporalio/client'
import { Worker } from '@temporalio/worker'
import { pino } from 'pino'
import { createCopyingActivities } from '../../activities/copying'
import { createDecidingActivities } from '../../activities/plan/deciding'
import { createPlanningActivities } from '../../activities/plan/planning'
import { createDrainingActivities } from '../../activities/machine/draining'
import { createStoreActivities } from '../../activities/garbage/store'
import { WaitingLine } from '../../activities/plan/waiting-line'
import { Crucible, type ClientConfig } from '../../client'
import type { JobView } from '../../client/job/job-view'
import type { JobSpec } from '../../core/job/job'
import type { BackendName } from '../../core/offer'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import type { WorldText } from '#small-cloud'
import { openDeploymentKey } from '../../storage/deployment-key'
import { openStore } from '../../storage/open-store'
import { Authentication } from '../../workers/authentication'
import { createBackendWorkers } from '../../workers/backend'
import { nearBackends, readWorkerConfig, type WorkerConfig } from '../../service/config'
import { deploymentOf } from '../../service/deployment'
import { GrantIssuer, granterFor } from '../../service/grants'
import { makeBackend } from '../../service/make-backend'
import { offersThroughWorkers } from '../../workers/offers'
import { ownersThrough } from '../../workers/owners'
import type { Home } from '../../storage/home'
import { wakeThrough } from '../../workers/waking'
import { runnerPublisher } from '../../service/runner-program'
import { SecretIssuer } from '../../service/secrets'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { freshNamespace } from '../support/namespace'
import { startRecordingProxy, type RecordedCall, type RecordingProxy } from '../support/recording-proxy'
import { packRunner } from '../support/runner-program'
import { testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { TEST_WORKER, testWorkflowBundle } from '../support/workflow-bundle'
import { SPEC } from '../workflows/harness'

const BUCKET = 'recovery'
/** Far more than anything takes that is waited for, on a machine that does other work. */
const PATIENCE_MS = 200_000
/** A look costs a dozen requests to a store in this very process: it has a tenth of the time, also where it takes long. */
const LOOK_EVERY_MS = { min: 400, max: 2_000, shareOfTime: 0.1 }
const NO_LOGGER = pino({ enabled: false })

/** The pace of tests that wait for what machines say: seconds where a deployment has minutes. */
export const QUICK = {
  CRUCIBLE_BEAT: '0.5s',
  CRUCIBLE_OBSERVE: '0.3s',
  CRUCIBLE_GONE_CONFIRM: '0.6s',
  CRUCIBLE_CHECKPOINT_QUIET: '0.3s',
  CRUCIBLE_DRAIN: '8s',
  CRUCIBLE_POWER_OFF: '2s',
}

export interface DeploymentWishes {
  world?: WorldText
  /** Settings in addition to those that a small cloud needs. */
  settings?: Record<string, string> | ((cloud: TestCloud) => Record<string, string>)
  /** Prepares the account before anything uses it. */
  prepare?: (bucket: string) => Promise<void>
  /** Whether the calls of the services of AWS are written down. */
  isRecorded?: boolean
}

export class CloudDeployment {
  private readonly orchestrating: Promise<void>
  private serving: Promise<unknown>

  private constructor(
    readonly cloud: TestCloud,
    readonly client: Crucible,
    readonly temporal: Client,
    readonly home: Home,
    private readonly orchestrator: Worker,
    private readonly makeServers: () => Promise<Worker[]>,
    /** Of the backends. */
    private servers: readonly Worker[],
    private readonly proxy: RecordingProxy | undefined,
  ) {
    this.orchestrating = orchestrator.run()
    this.serving = this.serve()
  }

  static async start(at: TestConnection, wishes: DeploymentWishes = {}): Promise<CloudDeployment> {
    const cloud = await startTestCloud(BUCKET, { throttling: 'off', ...wishes.world })
    await wishes.prepare?.(BUCKET)
    const proxy = wishes.isRecorded ? await startRecordingProxy(cloud.endpoint) : undefined
    if (proxy !== undefined) process.env['AWS_ENDPOINT_URL'] = proxy.endpoint
    const namespace = await freshNamespace(at.client.connection as Connection)
    const program = join(cloud.folder, 'runner.pyz')
    await packRunner(program)
    const environment = {
      ...process.env,
      CRUCIBLE_HOME: join(cloud.folder, 'home'),
      CRUCIBLE_LOCAL_ROOT: join(cloud.folder, 'local'),
      CRUCIBLE_STORE: `s3://${BUCKET}/crucible`,
      CRUCIBLE_BACKENDS: 'ec2',
      CRUCIBLE_EC2_TYPES: 'c7i.large,m7i.large,g4dn.xlarge,g5.xlarge,g6.xlarge,p5.4xlarge',
      CRUCIBLE_EC2_STALE_FOR: '2s',
      TEMPORAL_ADDRESS: testServer().address,
      TEMPORAL_NAMESPACE: namespace,
      ...(typeof wishes.settings === 'function' ? wishes.settings(cloud) : wishes.settings),
    }
    const config = readWorkerConfig(environment)
    const make = await workersOf(at, { config, namespace, program })
    const client = new Crucible({ ...config, owner: 'tester', environment } satisfies ClientConfig)
    return new CloudDeployment(
      cloud,
      client,
      make.temporal,
      config.home,
      make.orchestrator,
      make.servers,
      await make.servers(),
      proxy,
    )
  }

  async stop(): Promise<void> {
    await this.client.close()
    this.orchestrator.shutdown()
    await this.stopServing()
    await this.orchestrating
    await this.proxy?.stop()
    await this.cloud.stop()
  }

  /** What the deployment has asked so far, and what it was answered; empty unless it was wished for. */
  get calls(): readonly RecordedCall[] {
    return this.proxy?.calls ?? []
  }

  /** Other workers in the place of those of the backends, which remember nothing of any provider. */
  async restartBackends(): Promise<void> {
    await this.stopServing()
    this.servers = await this.makeServers()
    this.serving = this.serve()
  }

  private serve(): Promise<unknown> {
    return Promise.all(this.servers.map((worker) => worker.run()))
  }

  private async stopServing(): Promise<void> {
    for (const worker of this.servers) worker.shutdown()
    await this.serving
  }

  /** Submits a training that runs forever until its last attempt, which soon is done. */
  async submit(
    { id, ...spec }: Partial<JobSpec> & { id?: string } = {},
    { every = 20, lastAttempt = 2, stillAt, isDeaf = false }: Partial<Training> = {},
  ): Promise<string> {
    const code = join(this.cloud.folder, 'code')
    mkdirSync(code, { recursive: true })
    copyFileSync(join(__dirname, 'train.py'), join(code, 'train.py'))
    const env = {
      EVERY: String(every),
      LAST_ATTEMPT: String(lastAttempt),
      ...(stillAt === undefined ? {} : { STILL_AT: String(stillAt) }),
      ...(isDeaf ? { IS_DEAF: '1' } : {}),
    }
    const submitted = await this.client.submit({
      id,
      spec: { ...SPEC, run: 'exec python3 train.py', env, ...spec },
      directory: code,
    })
    return submitted.id
  }

  /** Waits until a job is as wished; how it is then. */
  async see(jobId: string, isSo: (view: JobView) => boolean): Promise<JobView> {
    let view: JobView | undefined
    let lookedMs = 0
    await until(async () => {
      const { min, max, shareOfTime } = LOOK_EVERY_MS
      await sleep(Math.min(Math.max(min, lookedMs / shareOfTime), max))
      const startedAtMs = performance.now()
      view = await this.client.get(jobId)
      lookedMs = performance.now() - startedAtMs
      return isSo(view)
    }, PATIENCE_MS).catch((error: unknown) => {
      throw new Error(`it stayed so: ${JSON.stringify(view, null, 1)}`, { cause: error })
    })
    return view!
  }

  /** Waits until an attempt has done so many steps, and saved some of them. */
  atStep(jobId: string, step: number, attempt = 1): Promise<JobView> {
    return this.see(jobId, ({ attempts }) => {
      const last = attempts.at(-1)
      return last?.number === attempt && (last.progress?.step ?? 0) >= step && last.checkpoint !== null
    })
  }

  ended(jobId: string): Promise<JobView> {
    return this.see(jobId, ({ endedAtMs }) => endedAtMs !== null)
  }

  /** What the cloud has seen of a job, the first machine first. */
  machinesOf(jobId: string): ReturnType<TestCloud['instances']> {
    return this.cloud.instances().filter(({ tags }) => tags['crucible:job'] === jobId)
  }

  /** The machine that a job has now. */
  machineOf(jobId: string): string {
    const machine = this.machinesOf(jobId).find(({ state }) => state === 'running')
    if (machine === undefined) throw new Error(`${jobId} has no machine`)
    return machine.id
  }
}

export interface Training {
  /** Steps between two checkpoints. */
  every: number
  /** The attempt that is allowed to come to its end. */
  lastAttempt: number
  /** The step at which the attempts before stand still. */
  stillAt: number
  /** Whether it pays no heed to SIGTERM. */
  isDeaf: boolean
}

async function workersOf(
  { client: { connection }, nativeConnection }: TestConnection,
  { config, namespace, program }: { config: WorkerConfig; namespace: string; program: string },
): Promise<{ orchestrator: Worker; servers: () => Promise<Worker[]>; temporal: Client }> {
  const store = openStore(config.home.storeUrl)
  const deployment = await deploymentOf(store)
  const authentication = new Authentication(await openDeploymentKey(store, config.home.secretKeyFile))
  const client = authentication.client(connection, namespace)
  const secrets = await SecretIssuer.open(store, config.home.secretKeyFile)
  const names = [...config.backends.keys()]
  const near = nearBackends(config)
  const orchestrator = await Worker.create({
    connection: nativeConnection,
    namespace,
    taskQueue: ORCHESTRATOR_QUEUE,
    workflowBundle: await authentication.guard(await testWorkflowBundle()),
    activities: {
      ...createPlanningActivities({
        store,
        backends: names,
        askOffers: offersThroughWorkers(client, Date.now, near),
        now: Date.now,
        timing: config.timing,
        publishRunner: runnerPublisher(store, program),
        line: new WaitingLine({
          store,
          owners: ownersThrough(client),
          now: Date.now,
          backends: names,
          near,
          random: Math.random,
          wake: wakeThrough(client),
          onTrouble: () => {},
        }),
      }),
      ...createCopyingActivities({ store, now: Date.now }),
      ...createDecidingActivities({ client, store, now: Date.now }),
      ...createDrainingActivities({ client, store, now: Date.now }),
      ...createStoreActivities({ store, now: Date.now, owners: ownersThrough(client) }),
    },
    ...authentication.workerOptions(),
    ...TEST_WORKER,
  })
  const serversOf = async (name: BackendName): Promise<Worker[]> => {
    const granter = granterFor(config, name, store)
    const grants =
      granter &&
      new GrantIssuer({
        granter,
        keys: secrets,
        timing: config.timing,
        now: Date.now,
        monotonicMs: () => performance.now(),
        logger: NO_LOGGER,
      })
    const backend = await makeBackend(config, name, { store, deployment, secrets, grants })
    const connection = nativeConnection
    return createBackendWorkers({
      connection,
      namespace,
      client,
      store,
      backend,
      secrets,
      grants,
      authentication,
    })
  }
  const servers = async (): Promise<Worker[]> => (await Promise.all(names.map(serversOf))).flat()
  return { orchestrator, servers, temporal: client }
}
