/** Somebody without the key who takes the id of a workflow of this deployment before it begins. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client, type WorkflowHandle } from '@temporalio/client'
import { troubleOf } from '../../client/job/workflow-state'
import { microUsd } from '../../core/money/money'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import {
  attemptWorkflowId,
  jobWorkflowId,
  ORCHESTRATOR_QUEUE,
  retrainScheduleId,
  treasuryWorkflowId,
  WORKFLOW_TYPES,
} from '../../core/queues'
import { readRuns } from '../../storage/schedules'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { SPOT, worldsOn, statusOf, type Deployment } from './harness'
import { eventually, forReason, TEST_LIMIT_MS } from './looks'
import { allowRun, inputOf, SCHEDULE } from './retraining'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const NONE = { monthMicroUsd: microUsd(1_000), owners: {} }
const TREASURY = treasuryWorkflowId(monthOf(Date.now()))
const WISHES = { monthly: NONE, wares: [{ ...SPOT, stock: 0 }] }
const BUDGET = { budgetMicroUsd: microUsd(300) }

/** Starts a workflow without the deployment's key, on a queue of its own unless one is given. */
function take(
  { client, namespace }: Deployment,
  workflowId: string,
  { type = 'stranger', taskQueue = 'nowhere' } = {},
): Promise<WorkflowHandle> {
  const stranger = new Client({ connection: client.connection, namespace })
  return stranger.workflow.start(type, { workflowId, taskQueue })
}

async function promisedIn({ client }: Deployment): Promise<string[]> {
  const { promised } = await client.workflow.getHandle(TREASURY).query<TreasuryState>('treasury')
  return Object.keys(promised)
}

describe('an id that somebody without the key has taken', () => {
  it.concurrent(
    'costs a job one attempt without a machine if it is that of an attempt',
    inWorld({}, async (deployment) => {
      await take(deployment, attemptWorkflowId('job-test', 1))
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      expect((await statusOf(job)).attempts[0]).toMatchObject({ reason: 'superseded', costMicroUsd: 0 })
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it.concurrent(
    'keeps budgets waiting, with the command that ends it, if it is that of a treasury',
    inWorld(WISHES, async (deployment) => {
      const taken = await take(deployment, TREASURY)
      const job = await deployment.submit(BUDGET, { jobId: 'job-a' })
      let trouble: string | undefined
      await eventually(async () => {
        trouble = troubleOf(await job.describe())?.message
        return trouble !== undefined
      })
      expect(trouble).toBe(
        `No budget can be reserved: the workflow ${TREASURY} was not started with this deployment's key. End it: temporal workflow terminate --workflow-id ${TREASURY}.`,
      )
      await taken.terminate()
      await forReason(job, 'waiting-for-capacity')
      expect(await promisedIn(deployment)).toEqual(['job-a'])
    }),
  )

  it.concurrent(
    'stops no budget once its workflow has failed, if it is that of a treasury',
    inWorld(WISHES, async (deployment) => {
      const how = { type: WORKFLOW_TYPES.treasury, taskQueue: ORCHESTRATOR_QUEUE }
      await expect((await take(deployment, TREASURY, how)).result()).rejects.toThrow()
      const job = await deployment.submit(BUDGET, { jobId: 'job-a' })
      await forReason(job, 'waiting-for-capacity')
      expect(await promisedIn(deployment)).toEqual(['job-a'])
    }),
  )

  it.concurrent(
    'ends a run of a schedule, which names it, if it is that of a job of the run',
    inWorld({}, async (deployment) => {
      const { client, store } = deployment
      const today = new Date().toISOString().slice(0, 10).replaceAll('-', '')
      await take(deployment, jobWorkflowId(`${SCHEDULE}-${today}-train`))
      const run = await client.workflow.start(WORKFLOW_TYPES.retrain, {
        workflowId: `${retrainScheduleId(SCHEDULE)}-by-hand`,
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [await allowRun(deployment, inputOf())],
      })
      await run.result().catch(() => undefined)
      const [recorded] = await readRuns(store, { schedule: SCHEDULE, count: 1 })
      expect(recorded?.result).toMatchObject({
        state: 'failed',
        message: expect.stringMatching(/or somebody had taken its workflow id/),
      })
      expect(deployment.world.machines).toEqual([])
    }),
  )

  it.concurrent(
    'forgets no money if a treasury was terminated first',
    inWorld(WISHES, async (deployment) => {
      const first = await deployment.submit(BUDGET, { jobId: 'job-a' })
      await forReason(first, 'waiting-for-capacity')
      const treasury = deployment.client.workflow.getHandle(TREASURY)
      const { runId } = await treasury.describe()
      await treasury.terminate()
      const taken = await take(deployment, TREASURY)
      const second = await deployment.submit(BUDGET, { jobId: 'job-b' })
      await expect(second.result()).rejects.toMatchObject({
        cause: { message: expect.stringMatching(`was terminated by hand.*--run-id ${runId} `) },
      })
      await taken.terminate()
    }),
  )
})
