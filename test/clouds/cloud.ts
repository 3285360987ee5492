import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '@temporalio/client'
import type { Backend } from '../../backends/backend'
import type { BackendDeps } from '../../backends/registry'
import { storeFrontOver } from '../../cli/dev/versitygw/front'
import type { GarbageCollectionInput, GarbageCollectionResult } from '../../core/messages'
import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import type { Timing } from '../../core/time/timing'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { ensureDeployment } from '../../storage/deployment'
import { readRecords } from '../../storage/record'
import { StoreError, type ObjectStore } from '../../storage/store'
import { handOvers } from '../../service/hand-over'
import { STEADY, type Behaviour } from '../backends/scripted/behaviour'
import { RealClock } from '../backends/scripted/clock'
import { freshNamespace } from '../support/namespace'
import { S3_ENVIRONMENT, testVersitygw } from '../support/s3'
import type { TestConnection } from '../support/temporal'
import { ControlPlane, DEPLOYMENT_ID, QUICK } from '../workflows/harness'
import { CloudMachine } from './machine'
import { broken, type Breaker, type BrokenAnswers } from './broken'
import type { Addresses, BackendParts, CloudConfig, CloudProvider } from './provider'
import { mergeWorlds } from './providers'
import { EC2 } from './providers/ec2'
import { OWNER } from './company'
import { openStorage, type Storage } from './storage'
import { adoptKeys } from '../support/cloud-keys'

/** Longer than a request takes that is on its way when its sender is lost. */
export const SEND_LIMIT_MS = 10_000

export interface CloudWishes {
  /** EC2 where it is missing. */
  provider?: CloudProvider
  world: WorldText
  /** How the workload runs on the machine that comes first, second, ... to run one. */
  behave?: (turn: number) => Partial<Behaviour>
  config?: CloudConfig
  /** The store is a bucket of the cloud, and its faults strike there too; in memory without it. */
  hasBucket?: boolean
  timing?: Partial<Timing>
  /** Answers of the provider that the backend gets broken. */
  breaks?: BrokenAnswers
}

/** A cloud with its machines and the store: what a deployment stands on, and by which it is judged. */
export interface CloudGround {
  provider: CloudProvider
  cloud: Cloud
  machines: CloudMachine[]
  storage: Storage
}

/** Opens a cloud whose machines are scripted, and a store that belongs to a deployment. */
export async function openGround(wishes: CloudWishes, deploymentId = DEPLOYMENT_ID): Promise<CloudGround> {
  const { provider = EC2 } = wishes
  const clock = new RealClock()
  const machines: CloudMachine[] = []
  let turns = 0
  const behave = (): Behaviour => ({ ...STEADY, ...wishes.behave?.(++turns) })
  const folder = await mkdtemp(join(tmpdir(), 'crucible-clouds-'))
  const executable = wishes.hasBucket === true ? await testVersitygw() : undefined
  const cloud = await startCloud({
    world: mergeWorlds({ ...provider.calm, users: { test: OWNER } }, wishes.world),
    directory: join(folder, 'machines'),
    startFront: executable ? storeFrontOver({ executable, directory: join(folder, 'store') }) : undefined,
    createMachine: (spec) => {
      const { store, ask } = storage
      const machine = new CloudMachine(spec, { clock, store, ask, behave })
      machines.push(machine)
      return machine
    },
  })
  // Where the SDK looks, whichever cloud it speaks to.
  Object.assign(process.env, S3_ENVIRONMENT)
  adoptKeys(cloud)
  const storage = await openStorage(cloud, folder)
  await patiently(() => ensureDeployment(storage.store, () => deploymentId))
  return { provider, cloud, machines, storage }
}

/** Repeats a look at a run while the drawn faults of its store make the look fail. */
export async function patiently<T>(look: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof StoreError) || tries === LOOKS_MAX) throw error
    }
  }
}

/** More than a store of a world has faults in a row. */
const LOOKS_MAX = 20

export async function closeGround({ cloud, storage }: CloudGround): Promise<void> {
  await storage.close()
  await cloud.stop()
  await rm(storage.folder, { recursive: true, force: true })
}

/** The real workers over the real backend and its SDK, by the wire to a small cloud whose machines are scripted. */
export class CloudDeployment extends ControlPlane implements CloudGround {
  readonly provider: CloudProvider
  readonly cloud: Cloud
  readonly machines: CloudMachine[]
  readonly storage: Storage
  /** How many answers were broken. */
  readonly brokenAnswers: () => number
  private readonly closeBreaker: () => void

  private constructor(
    at: TestConnection,
    namespace: string,
    { ground, wishes, breaker }: { ground: CloudGround; wishes: CloudWishes; breaker: Breaker | undefined },
  ) {
    const { provider, cloud, machines, storage } = ground
    super(at, namespace, {
      store: storage.store,
      backend: () => backendOver(ground, { config: wishes.config ?? {} }, breaker?.reached),
      backends: [provider.name],
      timing: { ...QUICK, ...wishes.timing },
      sendLimitMs: SEND_LIMIT_MS,
    })
    this.provider = provider
    this.cloud = cloud
    this.machines = machines
    this.storage = storage
    this.brokenAnswers = breaker?.count ?? (() => 0)
    this.closeBreaker = breaker?.close ?? (() => undefined)
  }

  static async start(at: TestConnection, wishes: CloudWishes): Promise<CloudDeployment> {
    const ground = await openGround(wishes)
    const namespace = await freshNamespace(at.client.connection as never)
    const { breaks } = wishes
    const breaker = breaks === undefined ? undefined : await broken(ground.cloud, ground.provider, breaks)
    const deployment = new CloudDeployment(at, namespace, { ground, wishes, breaker })
    await deployment.startOrchestrator()
    await deployment.startBackend()
    return deployment
  }

  /** One sweep, as the schedule of a deployment makes it. */
  collectGarbage(graceMs: number): Promise<GarbageCollectionResult> {
    const backends = [this.provider.name]
    return sweep(this.client, { deployment: DEPLOYMENT_ID, backends, graceMs, isDryRun: false })
  }

  /** Terminates the running attempt, as somebody might in the Temporal UI. */
  terminateAttempt(): Promise<void> {
    return this.terminate(this.provider.attemptOf(this.cloud.instances().at(-1)?.tags ?? {}))
  }

  /** The cloud does not report how machines are, for a while. */
  hideMachines(how: 'refused' | 'unanswered', durationMs: number): void {
    const { calls, down } = this.provider
    const when = { until: durationMs, where: calls.look }
    this.cloud.addFault(
      how === 'refused'
        ? { fault: 'error', ...down, ...when }
        : { fault: 'lost-answer', instead: 'silence', ...when },
    )
  }

  /** The store answers no request for a while. */
  async storeOutage(durationMs: number): Promise<void> {
    await this.storage.outage(durationMs)
  }

  override async close(): Promise<void> {
    await super.close()
    this.closeBreaker()
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

/** The product's backend, over the wire. */
export function backendOver(
  { provider, cloud, storage }: CloudGround,
  parts: Partial<BackendParts> = {},
  reached: Addresses = cloud,
): Backend {
  return provider.open(reached, {
    deployment: DEPLOYMENT_ID,
    config: {},
    handOver: handOversIn(storage.store),
    around: (_call, effect) => effect(),
    ...parts,
  })
}

/** Hand-overs whose keys depend on the names only. */
export function handOversIn(store: ObjectStore): NonNullable<BackendDeps['handOver']> {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  const secrets = { keyOf: (id: string) => digest(id).toString('hex'), handOverKeyOf: digest }
  return handOvers({ store, secrets, now: Date.now })
}

/** What was asked of the cloud, what it had, and what the job decided, in the order in which it happened. */
export async function journal(
  { provider, cloud, storage }: CloudGround,
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
    const words = `${id} of ${provider.attemptOf(tags)}, ${one.capacity} ${one.type} ${one.zone}`
    const { fromMs, untilMs } = bill
    return [
      { atMs: launchedAtMs, words: `${words} launched` },
      ...(fromMs === undefined ? [] : [{ atMs: fromMs, words: `${words} runs` }]),
      ...(untilMs === undefined
        ? []
        : [{ atMs: untilMs, words: `${words} ends: ${one.reason ?? one.state}` }]),
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
