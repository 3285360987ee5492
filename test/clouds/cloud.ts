import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../backends/backend'
import { storeFrontOver } from '../../cli/dev/versitygw/front'
import { createBackendOver } from '../../backends/ec2'
import { PROFILE_DEFAULT, type Ec2Config } from '../../backends/ec2/config'
import { createSdkApi } from '../../backends/ec2/sdk/index'
import type { Client } from '@temporalio/client'
import type { GarbageCollectionInput, GarbageCollectionResult } from '../../core/messages'
import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import type { Timing } from '../../core/timing'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { ensureDeployment } from '../../storage/deployment'
import { readRecords } from '../../storage/record'
import { CONFIG } from '../backends/ec2/harness'
import { STEADY, type Behaviour } from '../backends/scripted/behaviour'
import { RealClock } from '../backends/scripted/clock'
import { freshNamespace } from '../support/namespace'
import { S3_ENVIRONMENT, testVersitygw } from '../support/s3'
import type { TestConnection } from '../support/temporal'
import { ControlPlane, DEPLOYMENT_ID, QUICK } from '../workflows/harness'
import { CloudMachine } from './machine'
import { openStorage, type Storage } from './storage'
import { patient } from '../support/patience'

export const ZONES = ['us-east-1a', 'us-east-1b']
export const TYPES = ['g5.xlarge', 'g5.2xlarge']
export const IMAGE =
  '/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id'

const at = (ms: number): [number, number] => [ms, ms]

/** A cloud of two zones that is quick and in good health, whose bill runs by the second. */
const CALM: WorldText = {
  regions: { 'us-east-1': { zones: ZONES, groups: [PROFILE_DEFAULT] } },
  roles: {
    [PROFILE_DEFAULT]: {
      ...{ managed: ['AmazonSSMManagedInstanceCore'], hasProfile: true, trusts: ['ec2.amazonaws.com'] },
    },
  },
  durations: {
    ...{ pending: at(50), boot: at(20), register: at(50), delivery: at(20), shuttingDown: at(50) },
    ...{ osShutdown: at(400), statusChecks: at(10), connectionLost: at(300), billedAtLeast: at(60_000) },
  },
  throttling: 'off',
}

/** Names of machines are wanted that have one GPU: the dear type is there for when the cheap one is not. */
const CLOUD_CONFIG: Ec2Config = {
  ...CONFIG,
  ...{ image: IMAGE, types: TYPES, registerWithinMs: 8_000, staleForMs: 1_500 },
}

/** A call that the cloud leaves unanswered is given up after this long; a busy machine's answer comes sooner. */
const PATIENCE = { readMs: patient(5_000), changeMs: patient(5_000) }

export interface CloudWishes {
  world: WorldText
  /** How the workload runs on the machine that comes first, second, ... to run one. */
  behave?: (turn: number) => Partial<Behaviour>
  config?: Partial<Ec2Config>
  /** The store is a bucket of the cloud, and its faults strike there too; in memory without it. */
  hasBucket?: boolean
  timing?: Partial<Timing>
}

/** A cloud with its machines and the store: what a deployment stands on, and by which it is judged. */
export interface CloudGround {
  cloud: Cloud
  machines: CloudMachine[]
  storage: Storage
}

/** Opens a cloud whose machines are scripted, and a store that belongs to a deployment. */
export async function openGround(wishes: CloudWishes, deploymentId = DEPLOYMENT_ID): Promise<CloudGround> {
  // Where the SDK looks, whichever cloud it speaks to.
  Object.assign(process.env, S3_ENVIRONMENT, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
  const clock = new RealClock()
  const machines: CloudMachine[] = []
  let turns = 0
  const behave = (): Behaviour => ({ ...STEADY, ...wishes.behave?.(++turns) })
  const folder = await mkdtemp(join(tmpdir(), 'crucible-clouds-'))
  const executable = wishes.hasBucket === true ? await testVersitygw() : undefined
  const cloud = await startCloud({
    world: { ...CALM, ...wishes.world, durations: { ...CALM.durations, ...wishes.world.durations } },
    directory: join(folder, 'machines'),
    ...(executable && { startFront: storeFrontOver({ executable, directory: join(folder, 'store') }) }),
    createMachine: (spec) => {
      const machine = new CloudMachine(spec, { clock, store: storage.store, behave })
      machines.push(machine)
      return machine
    },
  })
  const storage = await openStorage(cloud, folder)
  await ensureDeployment(storage.store, () => deploymentId)
  return { cloud, machines, storage }
}

export async function closeGround({ cloud, storage }: CloudGround): Promise<void> {
  await storage.close()
  await cloud.stop()
  await rm(storage.folder, { recursive: true, force: true })
}

/** The real workers over the real backend and its SDK, by the wire to a small cloud whose machines are scripted. */
export class CloudDeployment extends ControlPlane implements CloudGround {
  readonly cloud: Cloud
  readonly machines: CloudMachine[]
  readonly storage: Storage

  private constructor(
    at: TestConnection,
    namespace: string,
    { ground, wishes }: { ground: CloudGround; wishes: CloudWishes },
  ) {
    const { cloud, machines, storage } = ground
    super(at, namespace, {
      store: storage.store,
      backend: () => backendOver(cloud, wishes.config),
      backends: ['ec2'],
      timing: { ...QUICK, ...wishes.timing },
    })
    this.cloud = cloud
    this.machines = machines
    this.storage = storage
  }

  static async start(at: TestConnection, wishes: CloudWishes): Promise<CloudDeployment> {
    const ground = await openGround(wishes)
    const namespace = await freshNamespace(at.client.connection as never)
    const deployment = new CloudDeployment(at, namespace, { ground, wishes })
    await deployment.startOrchestrator()
    await deployment.startBackend()
    return deployment
  }

  /** One sweep, as the schedule of a deployment makes it. */
  collectGarbage(graceMs: number): Promise<GarbageCollectionResult> {
    return sweep(this.client, { deployment: DEPLOYMENT_ID, backends: ['ec2'], graceMs, isDryRun: false })
  }

  /** Terminates the running attempt, as somebody might in the Temporal UI. */
  terminateAttempt(): Promise<void> {
    return this.terminate(this.cloud.instances().at(-1)?.tags['crucible:attempt'])
  }

  /** The cloud does not report how machines are, for a while. */
  hideMachines(how: 'refused' | 'unanswered', durationMs: number): void {
    const when = { until: durationMs, where: { service: 'ec2', action: 'DescribeInstances' } } as const
    this.cloud.addFault(
      how === 'refused'
        ? { fault: 'error', code: 'Unavailable', status: 503, ...when }
        : { fault: 'lost-answer', instead: 'silence', ...when },
    )
  }

  /** The store answers no request for a while. */
  async storeOutage(durationMs: number): Promise<void> {
    await this.storage.outage(durationMs)
  }

  override async close(): Promise<void> {
    await super.close()
    await closeGround(this)
  }
}

export function sweep(client: Client, input: GarbageCollectionInput): Promise<GarbageCollectionResult> {
  return client.workflow.execute<(input: GarbageCollectionInput) => Promise<GarbageCollectionResult>>(
    WORKFLOW_TYPES.garbageCollection,
    {
      workflowId: `${WORKFLOW_TYPES.garbageCollection}/${input.deployment}`,
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
    },
  )
}

export function backendOver(
  { endpoint }: Cloud,
  wishes: Partial<Ec2Config> = {},
  deployment = DEPLOYMENT_ID,
): Backend {
  const config = { ...CLOUD_CONFIG, ...wishes, endpoint }
  return createBackendOver(createSdkApi({ region: config.region, endpoint, patience: PATIENCE }), config, {
    clock: Date.now,
    deployment,
    secretKeyOf: () => '5'.repeat(64),
    runnerUrl: () => Promise.resolve('data:,'),
  })
}

/** What was asked of the cloud, what it had, and what the job decided, in the order in which it happened. */
export async function journal(
  { cloud, storage }: CloudGround,
  sinceMs: number,
  jobId = 'job-test',
): Promise<string[]> {
  const calls = cloud.journal
    .calls()
    .filter(({ isMutating, outcome, isAnswerLost }) => isMutating || outcome !== 'ok' || isAnswerLost)
    .map(({ atMs, action, outcome, isAnswerLost }) => ({
      atMs,
      words: `${action}: ${outcome}${isAnswerLost ? ', answer lost' : ''}`,
    }))
  const machines = cloud.instances().flatMap(({ id, tags, launchedAtMs, bill, ...one }) => {
    const words = `${id} of ${tags['crucible:attempt']}, ${one.capacity} ${one.type} ${one.zone}`
    const { fromMs, untilMs } = bill
    return [
      { atMs: launchedAtMs, words: `${words} launched` },
      ...(fromMs === undefined ? [] : [{ atMs: fromMs, words: `${words} runs` }]),
      ...(untilMs === undefined ? [] : [{ atMs: untilMs, words: `${words} ends: ${one.reason}` }]),
    ]
  })
  const records = (await readRecords(storage.store, jobId)).map(({ atMs, kind, summary }) => ({
    atMs,
    words: `${kind}: ${summary}`,
  }))
  return [...calls, ...machines, ...records]
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ atMs, words }) => `${String(atMs - sinceMs).padStart(6)} ms  ${words}`)
}
