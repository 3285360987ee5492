/** Everything that garbage collection knows is left over while a job is well: only orphaned resources are ended. */
import { utimes, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  CreateLaunchTemplateCommand,
  DescribeLaunchTemplatesCommand,
  DescribeSpotInstanceRequestsCommand,
  DescribeVolumesCommand,
  EC2Client,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, describe, expect, it, jest } from '@jest/globals'
import type { GarbageCollectionInput, GarbageCollectionResult, GarbageVerdict } from '../../core/messages'
import {
  attemptWorkflowId,
  GARBAGE_COLLECTION_SCHEDULE_ID,
  jobWorkflowId,
  ORCHESTRATOR_QUEUE,
  WORKFLOW_TYPES,
} from '../../core/queues'
import { DAY_MS } from '../../core/time/time'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { notePlace } from '../../storage/places'
import type { S3Store } from '../../storage/s3/s3-store'
import { createGarbageCollection, deploymentOf } from '../../service/deployment'
import { until } from '../support/until'
import { QUICK, type CloudDeployment } from './deployment'
import { onDeployment } from './hooks'
import { patient } from '../support/patience'

jest.setTimeout(300_000)

const BUCKET = 'recovery'
const GRACE_MS = 2_000
const HEALTHY = 'job-healthy'
/** What was made is old after this, and its tags say who it was for. */
const TEMPLATES_KEPT = '1s'

let d: CloudDeployment
let ec2: EC2Client
let s3: S3Client
let store: S3Store
let deployment: string

onDeployment(
  {
    world: { durations: { osShutdown: 1_000 } },
    settings: { ...QUICK, CRUCIBLE_EC2_TEMPLATES_KEPT: TEMPLATES_KEPT },
  },
  (started) => {
    d = started
    const at = { endpoint: d.cloud.endpoint, region: 'us-east-1' }
    ec2 = new EC2Client(at)
    s3 = new S3Client({ ...at, endpoint: d.cloud.storeEndpoint!, forcePathStyle: true })
    store = openStore(`s3://${BUCKET}/crucible`) as S3Store
  },
)
afterAll(async () => {
  ec2.destroy()
  s3.destroy()
  await store.close()
})

const tagged = (jobId: string, of = deployment) => [
  { Key: 'crucible:deployment', Value: of },
  { Key: 'crucible:job', Value: jobId },
  { Key: 'crucible:attempt', Value: `${jobId}-1` },
]

/** A machine that no workflow knows, as a launch whose order was lost would leave it. */
async function strayMachine(input: Partial<RunInstancesCommandInput>, of = deployment): Promise<string> {
  const Tags = tagged('job-gone', of)
  const { Instances } = await ec2.send(
    new RunInstancesCommand({
      ImageId: d.cloud.instances()[0]!.image,
      InstanceType: 'm7i.large',
      MinCount: 1,
      MaxCount: 1,
      TagSpecifications: (['instance', 'volume'] as const).map((ResourceType) => ({ ResourceType, Tags })),
      ...input,
    }),
  )
  return Instances![0]!.InstanceId!
}

const stateOf = (id: string): string | undefined => d.cloud.instances().find((one) => one.id === id)?.state
const end = async (id: string): Promise<void> => {
  await ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))
  await until(() => stateOf(id) === 'terminated')
}

/** An upload that was begun two days ago: the server keeps its age as that of a folder. */
async function strayUpload(key: string): Promise<void> {
  const Key = store.place.prefix + key
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }))
  const uploads = join(d.cloud.folder, 'store', 'buckets', BUCKET, '.sgwtmp')
  const folder = (await readdir(uploads, { recursive: true })).find((path) => path.endsWith(UploadId!))!
  const then = new Date(Date.now() - 2 * DAY_MS)
  await utimes(join(uploads, folder), then, then)
}

/** What lies around in the account and in the bucket, by kind. */
async function remains(): Promise<Record<string, number>> {
  const [volumes, templates, requests, uploads] = await Promise.all([
    ec2.send(new DescribeVolumesCommand({ Filters: [{ Name: 'status', Values: ['available'] }] })),
    ec2.send(new DescribeLaunchTemplatesCommand({})),
    ec2.send(new DescribeSpotInstanceRequestsCommand({ Filters: [{ Name: 'state', Values: ['active'] }] })),
    s3.send(new ListMultipartUploadsCommand({ Bucket: BUCKET })),
  ])
  return {
    machines: d.cloud.instances().filter(({ state }) => state === 'running').length,
    volumes: volumes.Volumes!.length,
    templates: templates.LaunchTemplates!.length,
    requests: requests.SpotInstanceRequests!.length,
    uploads: uploads.Uploads?.length ?? 0,
  }
}

const kindsOf = (verdicts: GarbageVerdict[], action: GarbageVerdict['action']): string[] =>
  verdicts
    .filter((verdict) => verdict.action === action)
    .map(({ kind }) => kind)
    .sort()

const collect = async (isDryRun = false): Promise<GarbageVerdict[]> =>
  (await (await d.client.collectGarbage({ isDryRun, graceMs: GRACE_MS })).result()).verdicts

/** Past the checks of the client: how a worker handles such a request. */
const collectAnyway = async (): Promise<GarbageVerdict[]> => {
  const input: GarbageCollectionInput = { deployment, backends: ['ec2'], graceMs: 0, isDryRun: false }
  const result = (await d.temporal.workflow.execute(WORKFLOW_TYPES.garbageCollection, {
    workflowId: `gc-${Math.random()}`,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
  })) as GarbageCollectionResult
  return result.verdicts
}

/** The job that is well: its one machine, its one attempt. */
let machine: string
async function expectHealthy(): Promise<void> {
  const before = (await d.client.get(HEALTHY)).attempts[0]!.progress!.step!
  const { state, attemptsTotal } = await d.see(
    HEALTHY,
    ({ attempts }) => attempts[0]!.progress!.step! > before + 5,
  )
  expect({ state, attemptsTotal, machine: d.machineOf(HEALTHY) }).toEqual({
    state: 'running',
    attemptsTotal: 1,
    machine,
  })
}

describe('garbage collection', () => {
  it('is off until Temporal holds the deployment', async () => {
    deployment = await deploymentOf(store)
    await expect(collect()).rejects.toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/Garbage collection is off/),
    })
    await createGarbageCollection(d.temporal, { deployment, backends: ['ec2'] })
    // Only what these tests begin.
    await d.temporal.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).pause()
    expect(await d.client.lastGarbageCollection()).toBeUndefined()
  })

  it('lists all leftovers, and touches nothing in a dry run', async () => {
    for (const [LaunchTemplateName, Value] of [
      ['stray', deployment],
      ['theirs', 'dep-ofanother1'],
    ] as const)
      await ec2.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName,
          LaunchTemplateData: { InstanceType: 'm7i.large' },
          TagSpecifications: [
            { ResourceType: 'launch-template', Tags: [{ Key: 'crucible:deployment', Value }] },
          ],
        }),
      )
    await d.submit({ id: HEALTHY }, { lastAttempt: 99 })
    await d.atStep(HEALTHY, 20)
    machine = d.machineOf(HEALTHY)
    // A job and its attempt that were ended by hand, without any clean-up.
    await d.submit({ id: 'job-orphan' }, { lastAttempt: 99 })
    await d.atStep('job-orphan', 20)
    for (const id of [jobWorkflowId('job-orphan'), attemptWorkflowId('job-orphan', 1)])
      await d.temporal.workflow.getHandle(id).terminate()
    await strayMachine({})
    await strayMachine({}, 'dep-ofanother1')
    await end(
      await strayMachine({
        BlockDeviceMappings: [
          { DeviceName: '/dev/sdf', Ebs: { VolumeSize: 50, DeleteOnTermination: false } },
        ],
      }),
    )
    d.cloud.addFault({ fault: 'request-dangles', where: { tags: { 'crucible:job': 'job-gone' } } })
    await end(await strayMachine({ InstanceMarketOptions: { MarketType: 'spot' } }))
    await strayUpload(`${layout.checkpoint('job-gone', 5, 1)}files/weights`)
    await strayUpload(`${layout.checkpoint(HEALTHY, 5, 1)}files/weights`)
    await notePlace(store, { backend: 'ec2', place: 'eu-west-1' })

    // Both jobs are on spot machines.
    const all = { machines: 4, volumes: 1, templates: 3, requests: 3, uploads: 2 }
    expect(await remains()).toEqual(all)
    const verdicts = await collect(true)
    const unowned = ['machine', 'machine', 'spot-request', 'template', 'upload', 'volume']
    expect(kindsOf(verdicts, 'would-end')).toEqual(unowned)
    expect(kindsOf(verdicts, 'kept')).toEqual(['machine', 'template', 'upload'])
    expect(verdicts.filter(({ action }) => action === 'unseen')).toMatchObject([{ place: 'eu-west-1' }])
    for (const { kind, place, sinceMs, costMicroUsdPerDay } of verdicts) {
      expect(place).not.toBe('')
      if (kind === 'machine' || kind === 'volume') expect(costMicroUsdPerDay).toBeDefined()
      if (kind !== 'place') expect(Date.now() - sinceMs!).toBeGreaterThan(0)
    }
    expect(await remains()).toEqual(all)
  })

  it('ends nothing where store and server are of different deployments, of whatever kind it is', async () => {
    const before = await remains()
    for (const other of ['dep-0000000000', undefined]) {
      await store.delete(layout.deployment())
      if (other !== undefined) await putDocument(store, layout.deployment(), { id: other })
      await expect(collect()).rejects.toMatchObject({
        kind: 'usage',
        message: expect.stringMatching(/another deployment/),
      })
      expect(await collectAnyway()).toMatchObject([
        { backend: 'ec2', action: 'failed', reason: expect.stringContaining('Nothing was ended') },
        { backend: 'store', action: 'failed', reason: expect.stringContaining('Nothing was ended') },
      ])
      await store.delete(layout.deployment())
      await putDocument(store, layout.deployment(), { id: deployment })
    }
    expect(await remains()).toEqual(before)
    await expectHealthy()
  })

  it('leaves no orphan and does not touch the job, though two run at once and their workers are restarted', async () => {
    const both = [collect(), collect()]
    // Restarted while both wait out their grace.
    const query = `WorkflowType = '${WORKFLOW_TYPES.garbageCollection}' AND ExecutionStatus = 'Running'`
    await until(async () => (await d.temporal.workflow.count(query)).count === 2)
    await d.restartBackends()
    const [first, second] = await Promise.all(both)
    // What one of them has ended the other no longer finds, or ends again: to both it is gone.
    const ended = new Set(
      [...first!, ...second!].filter(({ action }) => action === 'ended').map(({ id }) => id),
    )
    expect(ended.size).toBe(6)
    for (const verdicts of [first!, second!]) expect(kindsOf(verdicts, 'failed')).toEqual([])
    // A request is closed once its machine has ended.
    await until(async () => {
      const { machines, requests } = await remains()
      return machines === 2 && requests === 1
    })
    // The healthy one and what is another's; templates of the one and of the other; an upload of an attempt that runs.
    expect(await remains()).toEqual({ machines: 2, volumes: 0, templates: 2, requests: 1, uploads: 1 })
    await expectHealthy()
    expect(kindsOf(await collect(), 'would-end')).toEqual([])
  })

  it('of the schedule is reported afterwards', async () => {
    await d.temporal.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).trigger()
    await until(async () => (await d.client.lastGarbageCollection()) !== undefined, 60_000)
    const last = await d.client.lastGarbageCollection()
    expect(kindsOf(last!.verdicts!, 'kept')).toEqual(['machine', 'template', 'upload'])
    expect(Date.now() - last!.startedAtMs).toBeLessThan(patient(120_000))
    await d.client.cancel(HEALTHY)
    await d.ended(HEALTHY)
  })
})
