import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { ON_DEMAND, SPOT, statusOf } from '../workflows/harness'
import type { Scenario } from './scenario'

const DEPLOYMENT = 'dep-0123456789'

export const GARBAGE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'garbageCollection.kept-then-ended',
    wishes: { wares: [SPOT, ON_DEMAND], behave: () => ({ stepsTotal: 10_000 }) },
    play: async (d) => {
      await putDocument(d.store, layout.deployment(), { id: DEPLOYMENT })
      const job = await d.submit()
      await until(async () => (await statusOf(job)).state === 'running')
      await d.stop('orchestrator')
      await d.client.workflow.getHandle('job/job-test/1').terminate()
      await job.terminate()
      await d.startOrchestrator()
      await d.client.workflow.execute(WORKFLOW_TYPES.garbageCollection, {
        workflowId: 'gc',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ deployment: DEPLOYMENT, backends: ['scripted'], graceMs: 100, isDryRun: false }],
      })
      return 'gc'
    },
  },
  {
    name: 'garbageCollection.two-backends',
    wishes: { unserved: ['other'], behave: () => ({ stepsTotal: 10_000 }) },
    play: async (d) => {
      await putDocument(d.store, layout.deployment(), { id: DEPLOYMENT })
      await d.serve('other')
      // Both backends call their first machine the same; the other one has two.
      const jobs = await Promise.all(
        ['scripted', 'other', 'other'].map((backend, index) =>
          d.submit({ backends: [{ backend }] }, { jobId: `job-${index}` }),
        ),
      )
      await until(async () => {
        const states = await Promise.all(jobs.map(async (job) => (await statusOf(job)).state))
        return states.every((state) => state === 'running')
      })
      await d.stop('orchestrator')
      for (const job of jobs) {
        await d.client.workflow.getHandle(`${job.workflowId}/1`).terminate()
        await job.terminate()
      }
      await d.startOrchestrator()
      await d.client.workflow.execute(WORKFLOW_TYPES.garbageCollection, {
        workflowId: 'gc',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ deployment: DEPLOYMENT, backends: ['scripted', 'other'], graceMs: 100, isDryRun: false }],
      })
      return 'gc'
    },
  },
  {
    name: 'garbageCollection.unfinished-upload',
    play: async (d) => {
      await putDocument(d.store, layout.deployment(), { id: DEPLOYMENT })
      const uploads = [{ id: 'left', key: layout.beat('job-gone', 1), sizeBytes: 1, beganAtMs: 0 }]
      Object.assign(d.store, {
        unfinished: async () => [...uploads],
        abandon: async () => void uploads.pop(),
      })
      await d.client.workflow.execute(WORKFLOW_TYPES.garbageCollection, {
        workflowId: 'gc',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ deployment: DEPLOYMENT, backends: ['scripted'], graceMs: 100, isDryRun: false }],
      })
      return 'gc'
    },
  },
]
