/** A job whose workflow somebody resets, so that it takes other steps than those on its record. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import { attemptWorkflowId, treasuryWorkflowId } from '../../core/queues'
import { readRecords } from '../../storage/record'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, worldsOn, type Deployment, type JobHandle } from './harness'
import { eventually, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const MONTHLY = { monthMicroUsd: microUsd(1_000), owners: {} }
const TREASURY = treasuryWorkflowId(monthOf(Date.now()))

/** Resets a job to its first step, and cancels it before that: no run before has been cancelled there. */
async function resetAndCancel(deployment: Deployment, job: JobHandle): Promise<JobHandle> {
  const { client, namespace } = deployment
  const { events } = await job.fetchHistory()
  const completed = events!.find((event) => event.workflowTaskCompletedEventAttributes)!
  await deployment.stop('orchestrator')
  await client.workflowService.resetWorkflowExecution({
    namespace,
    reason: 'a test',
    requestId: 'reset-1',
    workflowExecution: { workflowId: job.workflowId, runId: job.firstExecutionRunId },
    workflowTaskFinishEventId: completed.eventId!,
  })
  const fresh = client.workflow.getHandle(job.workflowId)
  await fresh.cancel()
  await deployment.start('orchestrator')
  return fresh as JobHandle
}

describe('a job that takes other steps after a reset', () => {
  it.concurrent(
    'ends with what to do, after its machine, and releases the money of the month',
    inWorld({ behave: () => LONG, monthly: MONTHLY }, async (deployment) => {
      const { client, store, world } = deployment
      const job = await deployment.submit({ budgetMicroUsd: microUsd(300) })
      await eventually(async () => world.machines.length > 0)
      const fresh = await resetAndCancel(deployment, job)
      await expect(fresh.result()).rejects.toMatchObject({
        cause: {
          message: expect.stringMatching(/its workflow was reset.* crucible submit --from job-test\./),
        },
      })
      const attempt = await client.workflow.getHandle(attemptWorkflowId('job-test', 1)).describe()
      expect(attempt.status.name).toBe('COMPLETED')
      expect(world.machines.map(({ state }) => state)).toEqual(['gone'])
      const records = await readRecords(store, 'job-test')
      const settled = records.find(({ kind }) => kind === 'settled')
      expect(records.at(-1)).toMatchObject({
        kind: 'finished',
        data: {
          result: { state: 'failed', costMicroUsd: (settled!.data as { costMicroUsd: number }).costMicroUsd },
        },
      })
      const { promised, over } = await client.workflow.getHandle(TREASURY).query<TreasuryState>('treasury')
      expect([promised, over]).toEqual([{}, ['job-test']])
    }),
  )
})
