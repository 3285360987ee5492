import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { troubleOf } from '../../client/job/workflow-state'
import { attemptWorkflowId } from '../../core/queues'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { MemoryStore } from '../backends/scripted/memory-store'
import { itInAll } from '../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { ControlPlane, DEPLOYMENT_ID, LONG, QUICK, worldsOn, type Deployment } from './harness'
import { ended, eventually, running, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

/** An orchestrator on the same server and with the same key, whose store is that of another deployment. */
function strayWorkers({ namespace, world }: Deployment): { workers: ControlPlane; store: MemoryStore } {
  const store = new MemoryStore(Date.now)
  const ground = { store, backend: () => createScriptedBackend(world), backends: [world.name], timing: QUICK }
  return { workers: new ControlPlane(at, namespace, { ...ground, deployment: 'dep-stray' }), store }
}

const REFUSED = new RegExp(`belongs to deployment dep-stray, but the task to ${DEPLOYMENT_ID}`)

async function isRefused({ client }: Deployment, workflowId: string): Promise<boolean> {
  const found = await client.workflow.getHandle(workflowId).describe()
  return REFUSED.test(troubleOf(found)?.message ?? '')
}

async function keysOf(store: MemoryStore): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list('')) keys.push(key)
  return keys
}

describe('a worker with the store of another deployment', () => {
  // In npm test the stamps below, and test/activities/planning.test.ts, keep its promise.
  itInAll(
    'refuses each task that would write to the store, and the job continues once its own workers are back',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const { workers: stray, store } = strayWorkers(deployment)
      const swap = async (workflowId: string): Promise<void> => {
        await stray.startOrchestrator()
        await eventually(() => isRefused(deployment, workflowId))
        await stray.close()
        await deployment.startOrchestrator()
      }

      // resolveJob
      await deployment.stop('orchestrator')
      const job = await deployment.submit()
      await swap(job.workflowId)
      await running(job)

      // drain
      await deployment.stop('orchestrator')
      await job.cancel()
      await swap(attemptWorkflowId('job-test', 1))
      expect((await ended(job)).status).toBe('CANCELLED')
      expect(await keysOf(store)).toEqual([])
    }),
  )

  it(
    'is reported by every activity of a job and of its attempts that would do its work',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      for (const workflowId of [job.workflowId, attemptWorkflowId('job-test', 1)]) {
        const { events } = await deployment.client.workflow.getHandle(workflowId).fetchHistory()
        const inputs = events!.flatMap(({ activityTaskScheduledEventAttributes: it }) => it?.input ?? [])
        expect(inputs.length).toBeGreaterThan(1)
        for (const { payloads } of inputs) {
          const stamp = JSON.parse(Buffer.from(payloads!.at(-1)!.data!).toString()) as object
          expect(stamp).toMatchObject({ crucibleStamp: { deployment: DEPLOYMENT_ID } })
        }
      }
    }),
  )
})
