import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client, type WorkflowHandle } from '@temporalio/client'
import type { ClientConfig } from '../../client/config'
import { Context } from '../../client/context'
import { listWithGaps } from '../../client/job/list'
import { submit, type Submitted } from '../../client/job/submit'
import { reserve } from '../../client/reservation/reserve'
import { stampingInterceptors } from '../../core/stamping'
import {
  attemptWorkflowId,
  backendQueue,
  ORCHESTRATOR_QUEUE,
  retrainScheduleId,
  SEARCH_ATTRIBUTES,
  WORKFLOW_TYPES,
} from '../../core/queues'
import type { CapacityRequest } from '../../core/reservation/reservation'
import { PayloadSeal } from '../../storage/payload-seal'
import { putRevision, readRuns } from '../../storage/schedules'
import type { ObjectStore } from '../../storage/store'
import { testFolder } from '../support/folders'
import { makeMarkedFolder } from '../support/marked-store'
import { freshNamespace } from '../support/namespace'
import { connectTo, quietWorkers, testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { LONG, SPEC, statusOf, worldsOn, type Deployment } from './harness'
import { eventually, running, TEST_LIMIT_MS } from './looks'
import { allowRun, inputOf, SCHEDULE } from './retraining'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

/** Somebody who reaches the server: without a key, or with the key of another deployment. */
function strangerTo({ namespace }: Deployment, key?: Buffer): Client {
  const seal = new PayloadSeal({ key: async (to) => (to === 'send' ? key : undefined), onRefused: 'throw' })
  return new Client({
    connection: at.client.connection,
    namespace,
    ...(key === undefined
      ? {}
      : {
          interceptors: stampingInterceptors(Date.now, randomUUID),
          dataConverter: { payloadCodecs: [seal] },
        }),
  })
}

const WISH: CapacityRequest = { backend: 'ec2', kind: 'prepaid', types: ['p5'], count: 1, durationMs: 1 }

const FOREIGN_KEY = Buffer.alloc(32, 'a key of others')

async function failureOf(handle: Pick<WorkflowHandle, 'result'>): Promise<string> {
  const error = (await handle.result().catch((reason: unknown) => reason)) as Error & { cause?: Error }
  return `${error.message}: ${error.cause?.message}`
}

/** The payloads of a history, as anybody who reaches the server can read and copy them. */
interface Scheduled {
  activityType: { name: string }
  activityId: string
  input: { payloads: object[] }
}

interface RawEvent {
  activityTaskScheduledEventAttributes?: Scheduled
  workflowExecutionStartedEventAttributes?: { input: { payloads: object[] } }
}

describe('a stranger who reaches the Temporal server', () => {
  it.each([
    ['without a key', undefined, /Refused the input: it is not signed\./],
    ['with the key of another deployment', FOREIGN_KEY, /not signed with this deployment's key/],
  ])('starts no job %s', (_with, key, words) =>
    inWorld({}, async (deployment) => {
      const handle = await strangerTo(deployment, key).workflow.start(WORKFLOW_TYPES.job, {
        workflowId: 'job/job-stranger',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ jobId: 'job-stranger', spec: SPEC, bundle: null, owner: 'stranger', submittedAtMs: 1 }],
      })
      expect(await failureOf(handle)).toMatch(words)
      expect(deployment.world.machines).toEqual([])
    })(),
  )

  it(
    'is not answered for another deployment: its job waits for a worker that has its key',
    inWorld({}, async (deployment) => {
      const handle = await strangerTo(deployment, FOREIGN_KEY).workflow.start(WORKFLOW_TYPES.job, {
        workflowId: 'job/job-elsewhere',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ jobId: 'job-elsewhere', spec: SPEC, bundle: null, deployment: 'dep-elsewhere' }],
      })
      const triesOf = async (): Promise<number> =>
        (await handle.describe()).raw.pendingWorkflowTask?.attempt ?? 0
      await until(async () => (await triesOf()) > 1)
      expect((await handle.describe()).status.name).toBe('RUNNING')
      await handle.terminate()
    }),
  )

  it(
    'launches and ends no machine by an activity of its own',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const history = (await deployment.client.workflow
        .getHandle(attemptWorkflowId('job-test', 1))
        .fetchHistory()) as unknown as { events: RawEvent[] }
      const launch = history.events
        .map((event) => event.activityTaskScheduledEventAttributes)
        .find((scheduled) => scheduled?.activityType.name === 'launch')!
      for (const activity of ['launch', 'settle', 'find']) {
        await expect(
          strangerTo(deployment).activity.execute(activity, {
            id: `stranger-${activity}`,
            taskQueue: backendQueue('scripted'),
            args: [{ order: { attemptId: 'job-test-1' } }],
            startToCloseTimeout: '10 seconds',
            retry: { maximumAttempts: 1 },
          }),
        ).rejects.toMatchObject({ cause: { message: expect.stringMatching(/worker refused .*not signed/) } })
      }
      // Copied from the history, with its signature, under the activity's own id.
      const copier = copierOf(deployment, launch.input.payloads)
      await expect(
        copier.activity.execute('launch', {
          id: launch.activityId,
          taskQueue: backendQueue('scripted'),
          args: [1],
          startToCloseTimeout: '10 seconds',
          retry: { maximumAttempts: 1 },
        }),
      ).rejects.toMatchObject({ cause: { message: expect.stringMatching(/worker refused launch/) } })
      expect(deployment.world.machines).toHaveLength(1)
      expect(await statusOf(job)).toMatchObject({ state: 'running' })
    }),
  )

  it(
    'answers no activity in place of its worker',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const { client, namespace } = deployment
      const workflowId = attemptWorkflowId('job-test', 1)
      const attempt = client.workflow.getHandle(workflowId)
      const watches = async (): Promise<Scheduled[]> => {
        const { events } = (await attempt.fetchHistory()) as unknown as { events: RawEvent[] }
        return events
          .map((event) => event.activityTaskScheduledEventAttributes)
          .filter((one): one is Scheduled => one?.activityType.name === 'watch')
      }
      const forged = {
        metadata: { encoding: Buffer.from('json/plain') },
        data: Buffer.from(JSON.stringify({ kind: 'over' })),
      }
      const before = await watches()
      await client.workflowService.respondActivityTaskCompletedById({
        namespace,
        workflowId,
        activityId: before.at(-1)!.activityId,
        result: { payloads: [forged] },
      })
      await eventually(async () => (await watches()).length > before.length)
      await running(job)
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it(
    'stops, moves and changes no job by updates and signals, and the job continues',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const stranger = strangerTo(deployment).workflow
      for (const [update, args] of [
        ['cancelNow', []],
        ['migrate', [{}]],
        ['extend', [{ deadlineAtMs: Date.now() + 1_000 }]],
      ] as const) {
        await expect(
          stranger.getHandle(job.workflowId).executeUpdate(update, { args: args as never }),
        ).rejects.toMatchObject({
          cause: { message: expect.stringContaining(`Refused the update ${update}`) },
        })
      }
      const attempt = stranger.getHandle(attemptWorkflowId('job-test', 1))
      await attempt.signal('drain', { reason: 'cancelled', windowMs: 0 })
      await attempt.signal('extend', { limits: { seq: 9, deadlineAtMs: 1 } })
      // A copy of what the owner really sent is no new command either.
      await deployment.client.workflow.getHandle(job.workflowId).executeUpdate('extend', {
        args: [{ deadlineAtMs: Date.now() + 3_600_000 }],
        updateId: 'once',
      })
      expect(await statusOf(job)).toMatchObject({ state: 'running' })
      expect(deployment.world.machines).toHaveLength(1)
      await deployment.client.workflow.getHandle(job.workflowId).executeUpdate('cancelNow')
      await expect(job.result()).rejects.toMatchObject({ name: 'WorkflowFailedError' })
    }),
  )

  it(
    'does not run a job a second time by a copy of its signed input',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      const { events } = (await job.fetchHistory()) as unknown as { events: RawEvent[] }
      const { payloads } = events[0]!.workflowExecutionStartedEventAttributes!.input
      const copier = copierOf(deployment, payloads)
      const elsewhere = await copier.workflow.start(WORKFLOW_TYPES.job, {
        workflowId: 'job/job-other',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [1],
      })
      expect(await failureOf(elsewhere)).toMatch(/not signed with this deployment's key/)
      const asChild = await copier.workflow.start(WORKFLOW_TYPES.attempt, {
        workflowId: 'job/job-test',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [1],
      })
      expect(await failureOf(asChild)).toMatch(/it was signed for job/)
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it(
    'starts no run of a schedule by a copy of its signed input, also after the schedule was deleted',
    inWorld({}, async (deployment) => {
      const { client, namespace, store } = deployment
      const input = await allowRun(deployment, inputOf())
      const scheduleId = retrainScheduleId(SCHEDULE)
      const action = {
        type: 'startWorkflow' as const,
        workflowType: WORKFLOW_TYPES.retrain,
        workflowId: scheduleId,
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [input],
      }
      const schedule = await client.schedule.create({ scheduleId, spec: {}, action })
      await schedule.trigger()
      await eventually(
        async () => (await readRuns(store, { schedule: SCHEDULE, count: 1 }))[0]?.result?.state === 'trained',
      )
      // The schedule itself is a copy that anybody may read, and may trigger.
      const held = await client.workflowService.describeSchedule({ namespace, scheduleId })
      const { payloads } = held.schedule!.action!.startWorkflow!.input!
      const stranger = copierOf(deployment, payloads!)
      const begin = (date: string, args: object = {}): Promise<WorkflowHandle> =>
        stranger.workflow.start(WORKFLOW_TYPES.retrain, {
          workflowId: `${scheduleId}-${date}`,
          taskQueue: ORCHESTRATOR_QUEUE,
          args: [1],
          ...args,
        })
      const startTime = [new Date(Date.UTC(new Date().getUTCFullYear(), 0, 1))]
      for (const run of [
        await begin('2030-01-01T00:00:00Z'),
        await begin('2026-01-01T00:00:00Z', { searchAttributes: { TemporalScheduledStartTime: startTime } }),
      ])
        expect(await failureOf(run)).toMatch(/No unused request or date|was made, was not due/)
      await schedule.trigger()
      await eventually(async () => (await failedRuns(client)) === 3)
      const deleted = { revision: 2, atMs: Date.now(), by: 'ada', kind: 'deleted' } as const
      await putRevision(store, { ...deleted, input: { ...input, revision: 2 } })
      expect(await failureOf(await begin('2030-01-02T00:00:00Z'))).toMatch(/was deleted by ada/)
      expect(deployment.world.machines).toHaveLength(1)
      expect(await readRuns(store, { schedule: SCHEDULE, count: 9 })).toHaveLength(1)
    }),
  )

  it(
    'runs no job again that is over, under its own id and within the hour',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      const { events } = (await job.fetchHistory()) as unknown as { events: RawEvent[] }
      const { payloads } = events[0]!.workflowExecutionStartedEventAttributes!.input
      const again = await copierOf(deployment, payloads).workflow.start(WORKFLOW_TYPES.job, {
        workflowId: job.workflowId,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [1],
      })
      expect(await failureOf(again)).toMatch(/The job job-test is over/)
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it('is not among the jobs of a list', () =>
    asClient(async (context) => {
      const state = { [SEARCH_ATTRIBUTES.state]: ['running'], [SEARCH_ATTRIBUTES.name]: ['wages'] }
      const { namespace } = context.config.temporal
      const stranger = new Client({ connection: at.client.connection, namespace })
      for (const id of ['job/job-a', 'job/job-b'])
        await stranger.workflow.start(WORKFLOW_TYPES.job, {
          workflowId: id,
          taskQueue: ORCHESTRATOR_QUEUE,
          searchAttributes: state,
          memo: { name: 'not signed' },
        })
      await eventually(async () => (await listWithGaps(context)).others === 2)
      expect(await listWithGaps(context)).toEqual({ jobs: [], others: 2, incomplete: null })
    }))

  it.each([
    ['without a key', undefined],
    ['with the key of another deployment', FOREIGN_KEY],
  ])('takes no id of a job or a reservation %s', (_with, key) =>
    asClient(async (context) => {
      const { namespace } = context.config.temporal
      const taken = { taskQueue: 'nowhere', args: [{ jobId: 'job-a' }] }
      const stranger = strangerTo({ namespace } as Deployment, key).workflow
      await stranger.start(WORKFLOW_TYPES.job, { ...taken, workflowId: 'job/job-a' })
      await stranger.start(WORKFLOW_TYPES.job, { ...taken, workflowId: 'reservation/res-a', args: [] })
      const refused = (workflowId: string): unknown => ({
        kind: 'failed',
        message: expect.stringMatching(
          `^The id is taken: the workflow ${workflowId} was not started with this`,
        ),
        hint: expect.stringMatching(`temporal workflow delete -w ${workflowId}`),
      })
      const again = (): Promise<unknown> => submit(context, { spec: SPEC, directory: null, id: 'job-a' })
      await expect(again()).rejects.toMatchObject(refused('job/job-a') as object)
      await expect(reserve(context, { id: 'res-a', wish: WISH, rule: {} })).rejects.toMatchObject(
        refused('reservation/res-a') as object,
      )
      expect(await listWithGaps(context)).toMatchObject({ jobs: [] })
      const { store } = context
      expect(
        await Promise.all(['jobs/', 'submissions/', 'reservations/'].map((at) => keysOf(store, at))),
      ).toEqual([[], [], []])
      const execution = { workflowId: 'job/job-a' }
      await at.client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution: execution })
      await eventually(
        async () => ((await again().catch(() => undefined)) as Submitted | undefined)?.isNew === true,
      )
      expect(await again()).toMatchObject({ isNew: false })
    }),
  )
})

/** Lets a client of a deployment without workers act, in a namespace and with a key of its own. */
async function asClient(act: (context: Context) => Promise<void>): Promise<void> {
  const namespace = await freshNamespace(at.client.connection as never)
  const folder = testFolder('strangers')
  makeMarkedFolder(join(folder, 'store'))
  const config: ClientConfig = {
    home: {
      directory: folder,
      storeUrl: pathToFileURL(join(folder, 'store')).href,
      secretKeyFile: join(folder, 'secret.key'),
    },
    temporal: { connection: { address: testServer().address }, namespace },
    owner: 'ada',
    environment: {},
  }
  await writeFile(config.home.secretKeyFile, Buffer.alloc(32, 'k').toString('hex'), { mode: 0o600 })
  const context = new Context(config, Date.now)
  try {
    await act(context)
  } finally {
    await context.close()
  }
}

async function keysOf(store: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return keys
}

/** Sends these payloads in place of its arguments, as somebody who has copied them. */
function copierOf({ namespace }: Deployment, payloads: object[]): Client {
  const copying = {
    encode: async () => payloads as never[],
    decode: async <P>(decoded: P[]) => decoded,
  }
  return new Client({
    connection: at.client.connection,
    namespace,
    dataConverter: { payloadCodecs: [copying] },
  })
}

async function failedRuns(client: Client): Promise<number> {
  const query = `WorkflowType = '${WORKFLOW_TYPES.retrain}' AND ExecutionStatus = 'Failed'`
  return (await client.workflow.count(query)).count
}
