/** Somebody without the key who takes the id of a workflow of this deployment before it begins. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client, type WorkflowHandle } from '@temporalio/client'
import { microUsd } from '../../core/money/money'
import { monthOf } from '../../core/money/treasury'
import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { SPOT, statusOf, worldsOn, type Deployment } from './harness'
import { eventually, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const MONTHLY = { monthMicroUsd: microUsd(1_000), ownerMicroUsd: microUsd(700), owners: {} }
const TREASURY = `treasury/${monthOf(Date.now())}`

function take(
  { client, namespace }: Deployment,
  workflowId: string,
  { type = 'stranger', taskQueue = 'nowhere' } = {},
): Promise<WorkflowHandle> {
  return new Client({ connection: client.connection, namespace }).workflow.start(type, { workflowId, taskQueue })
}

describe('an id that somebody without the key has taken', () => {
  it(
    'of an attempt',
    inWorld({}, async (deployment) => {
      await take(deployment, 'job/job-test/1')
      const job = await deployment.submit()
      const result = await job.result().catch((e: { cause?: Error }) => e.cause?.message)
      console.log(JSON.stringify(result), JSON.stringify(await statusOf(job)), deployment.world.machines.length)
      const h = await job.fetchHistory()
      console.log(JSON.stringify(h.events?.map((e) => e.eventType)))
    }),
  )

  it.each([
    ['open', {}, false],
    ['terminated', {}, true],
    ['of the type', { type: WORKFLOW_TYPES.treasury, taskQueue: ORCHESTRATOR_QUEUE }, false],
  ])('of a treasury %s', (what, how, isTerminated) =>
    inWorld({ monthly: MONTHLY, wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const taken = await take(deployment, TREASURY, how)
      if (isTerminated) await taken.terminate()
      const job = await deployment.submit({ budgetMicroUsd: microUsd(300) }, { jobId: 'job-a' })
      await new Promise((resolve) => setTimeout(resolve, 15_000))
      console.log(what, JSON.stringify(await statusOf(job)), (await taken.describe()).status.name)
      await job.terminate()
    })(),
  )
})
