/** Whole jobs on machines of the small cloud: the workflows, this backend over the wire, the real runner, and S3. */
import { join } from 'node:path'
import { DescribeVolumesCommand, EC2Client, StopInstancesCommand } from '@aws-sdk/client-ec2'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { Client } from '@temporalio/client'
import { Worker, type WorkflowBundleOption } from '@temporalio/worker'
import { createCopyingActivities } from '../../../activities/copying'
import { createDecidingActivities } from '../../../activities/plan/deciding'
import { failureInterceptor } from '../../../activities/failures'
import { createPlanningActivities } from '../../../activities/plan/planning'
import { createDrainingActivities } from '../../../activities/machine/draining'
import { createStoreActivities } from '../../../activities/garbage/store'
import { createEc2Backend } from '../../../backends/ec2'
import type { Settlement } from '../../../core/activities'
import type { Diagnosis } from '../../../core/documents'
import type { JobSpec } from '../../../core/job/job'
import type { JobInput } from '../../../core/messages'
import type { Order } from '../../../core/job/plan'
import { jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../../core/queues'
import type { CloudOptions, WorldText } from '#small-cloud'
import { createMachine } from '#small-cloud/machines/machine'
import { layout } from '../../../storage/layout'
import { openStore } from '../../../storage/open-store'
import { readRecords } from '../../../storage/record'
import type { ObjectStore } from '../../../storage/store'
import { createVerbsWorker, createWatchWorker } from '../../../workers/backend'
import { offersThroughWorkers } from '../../../workers/offers'
import { ownersThrough } from '../../../workers/owners'
import { runnerLinker, runnerPublisher } from '../../../service/runner-program'
import { startTestCloud, type TestCloud } from '../../support/cloud'
import { testFolder } from '../../support/folders'
import { freshNamespace } from '../../support/namespace'
import { packRunner } from '../../support/runner-program'
import { connectTo, quietWorkers, type TestConnection } from '../../support/temporal'
import { until } from '../../support/until'
import { TEST_WORKER, testWorkflowBundle } from '../../support/workflow-bundle'
import { QUICK, SPEC, type JobHandle } from '../../workflows/harness'
import { ended, TEST_LIMIT_MS } from '../../workflows/looks'
import { CONFIG, DEFAULT_IMAGE } from './harness'
import { itInAll } from '../../support/selection'

jest.setTimeout(TEST_LIMIT_MS)

const DEPLOYMENT = 'dep-0123456789'
const BUCKET = 'jobs-on-ec2'
const TYPE = 'm7i.large'
const TIMING = { ...QUICK, beatMs: 500, startWithinMs: 120_000, drainMs: 2_000, observeMs: 200 }

let at: TestConnection
let program: string
let workflowBundle: WorkflowBundleOption
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  program = join(testFolder('runner-program'), 'runner.pyz')
  await packRunner(program)
  workflowBundle = await testWorkflowBundle()
})
afterAll(() => at.close())

let cloud: TestCloud
let store: ObjectStore & { close?(): Promise<void> }
let client: Client
let workers: { worker: Worker; run: Promise<void> }[]
beforeEach(() => {
  workers = []
})
afterEach(async () => {
  for (const { worker } of workers) worker.shutdown()
  await Promise.all(workers.map(({ run }) => run))
  await store.close?.()
  await cloud.stop()
})

/** A cloud with a zone for each way out, and the workers of a deployment that knows nothing but EC2. */
async function deploy(...egress: ('public' | 'none')[]): Promise<void> {
  const zones = egress.map((_, index) => `us-east-1${'abc'[index]}`)
  const subnets = zones.map((zone, index) => ({ zone, egress: egress[index]!, isDefault: true }))
  await deployInto({ regions: { 'us-east-1': { zones, subnets, groups: ['crucible-machine'] } } })
}

async function deployInto(
  world: WorldText,
  options: Pick<CloudOptions, 'createMachine'> = {},
): Promise<void> {
  // Machines use the store with their role here.
  const managed = ['AmazonSSMManagedInstanceCore', 'AmazonS3FullAccess']
  const roles = { 'crucible-machine': { managed, hasProfile: true, trusts: ['ec2.amazonaws.com'] } }
  cloud = await startTestCloud(BUCKET, { roles, ...world, throttling: 'off' }, options)
  store = openStore(`s3://${BUCKET}/store`)
  const namespace = await freshNamespace(at.client.connection as never)
  client = new Client({ connection: at.client.connection, namespace })
  const config = {
    ...CONFIG,
    regions: Object.keys(world.regions!),
    image: DEFAULT_IMAGE,
    types: [TYPE],
    registerWithinMs: 10_000,
    endpoint: cloud.endpoint,
  }
  const backend = await createEc2Backend(config, {
    clock: Date.now,
    deployment: DEPLOYMENT,
    runnerUrl: runnerLinker(store),
    storeUrl: store.url,
  })
  const secrets = { handOver: async () => undefined, mask: async (_jobId: string, text: string) => text }
  const connection = at.nativeConnection
  const deps = { connection, namespace, client, store, backend, secrets }
  const orchestrator = await Worker.create({
    connection,
    namespace,
    taskQueue: ORCHESTRATOR_QUEUE,
    workflowBundle,
    activities: {
      ...createPlanningActivities({
        store,
        backends: ['ec2'],
        askOffers: offersThroughWorkers(client, Date.now),
        now: Date.now,
        timing: TIMING,
        publishRunner: runnerPublisher(store, program),
      }),
      ...createCopyingActivities({ store, now: Date.now }),
      ...createDecidingActivities({ client, store, now: Date.now }),
      ...createDrainingActivities({ client, store, now: Date.now }),
      ...createStoreActivities({ store, now: Date.now, owners: ownersThrough(client) }),
    },
    interceptors: { activity: [() => ({ inbound: failureInterceptor })] },
    ...TEST_WORKER,
  })
  for (const worker of [orchestrator, await createVerbsWorker(deps), await createWatchWorker(deps)])
    workers.push({ worker, run: worker.run() })
}

async function submit(spec: Partial<JobSpec>): Promise<JobHandle> {
  const jobId = 'job-on-ec2'
  const input: JobInput = {
    jobId,
    spec: { ...SPEC, ...spec },
    bundle: null,
    owner: 'somebody',
    deployment: DEPLOYMENT,
    submittedAtMs: Date.now(),
  }
  return (await client.workflow.start(WORKFLOW_TYPES.job, {
    workflowId: jobWorkflowId(jobId),
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
  })) as JobHandle
}

const recorded = async <T>(kind: string): Promise<T[]> =>
  (await readRecords(store, 'job-on-ec2')).filter((entry) => entry.kind === kind).map(({ data }) => data as T)
const diagnosisOf = async (attempt: number): Promise<Diagnosis> =>
  JSON.parse((await store.get(layout.diagnosis('job-on-ec2', attempt)))!.toString()) as Diagnosis

describe('a job whose machine a person stops', () => {
  itInAll('continues on another, and the stopped one is ended with its disk', async () => {
    await deploy('public')
    const run = 'if [ $CRUCIBLE_ATTEMPT = 1 ]; then sleep 600; fi; echo done'
    const job = await submit({ run, isInterruptible: false })
    await until(
      async () => String(await store.get(layout.beat('job-on-ec2', 1))).includes('"running"'),
      60_000,
    )
    const ec2 = new EC2Client({ endpoint: cloud.endpoint, region: 'us-east-1' })
    const stopped = cloud.instances()[0]!.id
    await ec2.send(new StopInstancesCommand({ InstanceIds: [stopped], Force: true }))
    expect(await job.result()).toMatchObject({ state: 'succeeded' })
    const [first, second, ...more] = await recorded<Settlement>('settled')
    expect([first?.handle?.id, second?.end.kind, more]).toEqual([stopped, 'succeeded', []])
    await until(() => cloud.instances().every(({ state }) => state === 'terminated'))
    expect((await ec2.send(new DescribeVolumesCommand({}))).Volumes).toEqual([])
    ec2.destroy()
  })
})

describe('a job whose machine never registers', () => {
  itInAll('is done by a machine in another subnet, of the same image', async () => {
    await deploy('none', 'public')
    const job = await submit({ run: 'echo done', isInterruptible: false })
    expect(await job.result()).toMatchObject({ state: 'succeeded' })
    const settled = await recorded<Settlement>('settled')
    expect(settled.map(({ end, handle }) => [handle!.realised.place, end])).toMatchObject([
      ['us-east-1a', { kind: 'failed', failure: { class: 'unreachable' } }],
      ['us-east-1b', { kind: 'succeeded' }],
    ])
    const images = (await recorded<Order>('launched')).map(({ offers }) => offers[0]!.pins)
    expect(images[1]).toEqual(images[0])
    expect(await diagnosisOf(1)).toMatchObject({
      machine: settled[0]!.handle!.id,
      text: expect.stringMatching(
        /# The agent \(SSM\)\nis not registered: it never was[^]*# The console\n[^]*booted/,
      ),
    })
    expect(cloud.instances().filter(({ state }) => state === 'running')).toEqual([])
  })

  itInAll('stops the second time, and says what is wrong with the network', async () => {
    await deploy('none', 'none')
    const { type, message } = await ended(await submit({ run: 'echo done', isInterruptible: false }))
    expect(type).toBe('unreachable')
    expect(message).toMatch(
      /agent \(SSM\) has not registered.*has no outbound route.*Last output of the machine/,
    )
    const places = (await recorded<Settlement>('settled')).map(({ handle }) => handle!.realised.place)
    expect(places).toEqual(['us-east-1a', 'us-east-1b'])
  })
})

describe('a job whose Region has no capacity', () => {
  it('continues in another Region from its checkpoint in the store of the first, under the same path, on a host without namespaces too', async () => {
    const [home, far] = ['us-east-1', 'us-west-2']
    const zoned = (region: string) => ({ zones: [`${region}a`], groups: ['crucible-machine'] })
    const cheap = { type: TYPE, capacity: 'on-demand' as const, usdPerHour: 0.01 }
    const world = {
      regions: { [home]: zoned(home), [far]: zoned(far) },
      prices: [{ ...cheap, region: far }],
    }
    await deployInto(world, { createMachine: (spec) => createMachine({ ...spec, enclosure: 'groups' }) })
    // Each checkpoint has its own absolute path.
    const save = (step: number): string => `at=$CRUCIBLE_CHECKPOINT_DIR/step-${step}; echo $at > $at; sleep 1`
    const run = `[ -n "$CRUCIBLE_RESUME_FROM" ] && exec cat $(cat $CRUCIBLE_RESUME_FROM); ${[1, 2, 3].map(save).join('; ')}; sleep 600`
    const checkpoint = { everyMs: 60_000, sizeBytes: 1_000_000, quietMs: 200 }
    const job = await submit({ run, isInterruptible: false, checkpoint })
    // Only then is it resumed from.
    await until(
      async () =>
        String(await store.get(layout.beat('job-on-ec2', 1))).includes('"checkpointState":"complete"'),
      60_000,
    )
    cloud.addFault({ fault: 'no-capacity', where: { region: far } })
    const client = new EC2Client({ endpoint: cloud.endpoint, region: far })
    const [lost] = cloud.instances()
    await client.send(new StopInstancesCommand({ InstanceIds: [lost!.id], Force: true }))
    client.destroy()
    expect(await job.result()).toMatchObject({ state: 'succeeded' })
    const settled = (await recorded<Settlement>('settled')).filter(({ handle }) => handle !== null)
    expect(settled.map(({ handle }) => handle!.realised.place)).toEqual([`${far}a`, `${home}a`])
    expect(settled[1]!.end.kind).toBe('succeeded')
    // What was planned for the far Region counted the way to the store.
    const [first] = await recorded<Order>('launched')
    expect(first!.offers[0]).toMatchObject({ region: far, transfer: { storeRegion: home } })
    await until(() => cloud.instances().every(({ state }) => state === 'terminated'))
  })
})
