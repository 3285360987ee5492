import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client, type WorkflowHandle } from '@temporalio/client'
import { stampingInterceptors } from '../../core/stamping'
import { attemptWorkflowId, backendQueue, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { PayloadSeal } from '../../storage/payload-seal'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, SPEC, statusOf, worldsOn, type Deployment } from './harness'
import { running, TEST_LIMIT_MS } from './looks'

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

const FOREIGN_KEY = Buffer.alloc(32, 'a key of others')

async function failureOf(handle: Pick<WorkflowHandle, 'result'>): Promise<string> {
  const error = (await handle.result().catch((reason: unknown) => reason)) as Error & { cause?: Error }
  return `${error.message}: ${error.cause?.message}`
}

/** The payloads of a history, as anybody who reaches the server can read and copy them. */
interface RawEvent {
  activityTaskScheduledEventAttributes?: {
    activityType: { name: string }
    activityId: string
    input: { payloads: object[] }
  }
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
      const copying = {
        encode: async () => launch.input.payloads as never[],
        decode: async <P>(payloads: P[]) => payloads,
      }
      const copier = new Client({
        connection: at.client.connection,
        namespace: deployment.namespace,
        dataConverter: { payloadCodecs: [copying] },
      })
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
      const copying = {
        encode: async () => payloads as never[],
        decode: async <P>(decoded: P[]) => decoded,
      }
      const copier = new Client({
        connection: at.client.connection,
        namespace: deployment.namespace,
        dataConverter: { payloadCodecs: [copying] },
      })
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
})
