import { PROMISE_UPDATE, SETTLE_UPDATE } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { treasuryWorkflowId } from '../../core/queues'
import { monthOf, type MonthlyLimits } from '../../core/money/treasury'
import { until } from '../support/until'
import { closed, JOB, played } from './playing'
import type { Scenario } from './scenario'

/** The server suggests a fresh history after so many events: one attempt of a job has more. */
const SHORT_HISTORY_EVENTS = 15

const MONTH: MonthlyLimits = { monthMicroUsd: microUsd(1_000), owners: {} }

export const LONG_SCENARIOS: readonly Scenario[] = [
  {
    name: 'job.continued-as-new',
    suggestsFreshHistoryAfterEvents: SHORT_HISTORY_EVENTS,
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { diesAtStep: 35 } : {}) },
    play: async (d) => {
      const job = await d.submit({ budgetMicroUsd: microUsd(1_000) })
      await closed(job)
      return { workflowId: JOB, runId: job.firstExecutionRunId }
    },
  },
  {
    // A pending request is not carried into a fresh history: the job moves first.
    name: 'job.migrated-with-a-long-history',
    suggestsFreshHistoryAfterEvents: SHORT_HISTORY_EVENTS,
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { stepsTotal: 10_000 } : {}) },
    play: (d) => played(d, {}, (job) => job.executeUpdate('migrate', { args: [{}] })),
  },
  {
    name: 'treasury.continued-as-new',
    suggestsFreshHistoryAfterEvents: SHORT_HISTORY_EVENTS,
    wishes: {
      monthly: MONTH,
      behave: () => ({ stepsTotal: 10_000 }),
    },
    play: async (d) => {
      const workflowId = treasuryWorkflowId(monthOf(Date.now()))
      const treasury = d.client.workflow.getHandle(workflowId)
      let firstRunId = ''
      await played(d, { budgetMicroUsd: microUsd(500) }, async (job) => {
        firstRunId = (await treasury.describe()).runId
        let done = 0
        await until(async () => {
          const other = { jobId: `job-${++done}`, owner: 'ada' }
          const promise = { ...other, microUsd: microUsd(1), limits: MONTH }
          await treasury.executeUpdate(PROMISE_UPDATE, { args: [promise] })
          await treasury.executeUpdate(SETTLE_UPDATE, { args: [{ ...other, spentMicroUsd: microUsd(0.5) }] })
          return (await treasury.describe()).runId !== firstRunId
        })
        await job.cancel()
      })
      await treasury.terminate('recorded')
      return { workflowId, runId: firstRunId }
    },
  },
]
