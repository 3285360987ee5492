import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common'
import type { Client, Connection } from '@temporalio/client'
import { attemptWorkflowId, SEARCH_ATTRIBUTES, watchQueue, WORKFLOW_TYPES } from '../../core/queues'
import { Authentication } from '../../workers/authentication'
import { identityOf } from '../../service/worker-identity'
import { takeOver } from '../../workers/taking-over'
import { freshNamespace } from '../support/namespace'
import { connectTo, type TestConnection } from '../support/temporal'
import { patient } from '../support/patience'
import { until } from '../support/until'

/** `temporal.api.enums.v1.CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK` */
const SCHEDULE_ACTIVITY = 1
/** Far longer than the test. */
const HEARTBEAT_TIMEOUT = { seconds: 300 as never }
const POLL_MS = 20_000
const WORKFLOW_QUEUE = 'workflows'

let at: TestConnection
let client: Client
let namespace: string

beforeAll(async () => {
  at = await connectTo()
  const connection = at.client.connection as Connection
  namespace = await freshNamespace(connection)
  client = new Authentication().client(connection, namespace)
})
afterAll(() => at.close())

/** The identity of a worker on this host whose process has ended. */
function deadIdentity(): string {
  const { pid } = spawnSync('true')
  const [role, parts] = identityOf('local').split('?')
  const values = new URLSearchParams(parts)
  values.set('pid', String(pid))
  return `${role}?${values.toString()}`
}

/** Starts an attempt that watches a machine of a backend; its worker has that identity and never beats. */
async function watched(jobId: string, backend: string, identity: string): Promise<void> {
  const key = defineSearchAttributeKey(SEARCH_ATTRIBUTES.backend, 'KEYWORD')
  const workflowId = attemptWorkflowId(jobId, 1)
  await client.workflow.start(WORKFLOW_TYPES.attempt, {
    workflowId,
    taskQueue: WORKFLOW_QUEUE,
    typedSearchAttributes: new TypedSearchAttributes([{ key, value: `${backend}:spot` }]),
  })
  const task = await polling(() =>
    client.workflowService.pollWorkflowTaskQueue({
      namespace,
      taskQueue: { name: WORKFLOW_QUEUE },
      identity: 'workflows',
    }),
  )
  await client.workflowService.respondWorkflowTaskCompleted({
    namespace,
    taskToken: task.taskToken,
    commands: [
      {
        commandType: SCHEDULE_ACTIVITY,
        scheduleActivityTaskCommandAttributes: {
          activityId: '1',
          activityType: { name: 'watch' },
          taskQueue: { name: watchQueue(backend) },
          startToCloseTimeout: { seconds: 3_600 as never },
          heartbeatTimeout: HEARTBEAT_TIMEOUT,
          retryPolicy: { initialInterval: { seconds: 1 as never }, backoffCoefficient: 1 },
        },
      },
    ],
  })
  expect((await poll(backend, identity)).attempt).toBe(1)
}

/** A poll waits at the server for its task, for as long as its deadline allows. */
function polling<T>(poll: () => Promise<T>): Promise<T> {
  return (client.connection as Connection).withDeadline(Date.now() + patient(POLL_MS), poll)
}

async function poll(backend: string, identity: string): Promise<{ attempt?: number | null }> {
  return polling(() =>
    client.workflowService.pollActivityTaskQueue({
      namespace,
      taskQueue: { name: watchQueue(backend) },
      identity,
    }),
  )
}

describe('a worker that starts', () => {
  it('takes over the watches of dead processes of its host and of its backend, and no others', async () => {
    await watched('of-dead', 'local', deadIdentity())
    await watched('of-living', 'local', identityOf('local'))
    await watched('of-elsewhere', 'local', deadIdentity().replace(/@[^?]*/, '@elsewhere'))
    await watched('of-other-backend', 'other', deadIdentity())
    // The list of workflows comes some time after them.
    await until(
      async () => (await client.workflow.count(`WorkflowType = '${WORKFLOW_TYPES.attempt}'`)).count === 4,
    )
    expect(await takeOver(client, 'local')).toBe(1)
    expect(await poll('local', identityOf('local'))).toMatchObject({
      attempt: 2,
      workflowExecution: { workflowId: attemptWorkflowId('of-dead', 1) },
    })
    expect(await takeOver(client, 'local')).toBe(0)
  })
})
