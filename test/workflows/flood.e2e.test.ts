/** Thousands of messages of somebody without the key: each is refused, and the workflows go on. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client } from '@temporalio/client'
import { stuckWorkflows } from '../../client/stuck'
import { microUsd } from '../../core/money/money'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import {
  attemptWorkflowId,
  ORCHESTRATOR_QUEUE,
  retrainScheduleId,
  treasuryWorkflowId,
  WORKFLOW_TYPES,
} from '../../core/queues'
import { readRuns } from '../../storage/schedules'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { statusOf, worldsOn, type Deployment } from './harness'
import { ended, eventually, running, TEST_LIMIT_MS } from './looks'
import { allowRun, inputOf, SCHEDULE } from './retraining'

jest.setTimeout(2 * TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

/** Temporal's limit on the signals of one run (`history.maximumSignalsPerExecution`). */
const SIGNALS_MAX = 10_000
const UPDATES = 500
const AT_ONCE = 50
const NAMES = [
  'drain',
  'extend',
  'retry',
  'promise',
  'settle',
  'migrate',
  'x'.repeat(200),
  '../..',
  '__stack_trace',
]
/** A workload that does not end before the flood does. */
const ENDLESS = { stepsTotal: 1_000_000 }

/** Sends messages without the deployment's key; returns how many were accepted. */
async function flood(
  { client, namespace }: Deployment,
  { workflowId, messages, kind }: { workflowId: string; messages: number; kind: 'signal' | 'update' },
): Promise<number> {
  const stranger = new Client({ connection: client.connection, namespace }).workflow.getHandle(workflowId)
  const forged = { reason: 'cancelled', windowMs: 0, limits: { seq: 9, deadlineAtMs: 1 }, microUsd: -1 }
  let accepted = 0
  let left = messages
  const send = async (): Promise<void> => {
    while (left-- > 0) {
      const name = NAMES[left % NAMES.length]!
      const updateId = left % 2 === 0 ? 'one' : `u-${left}`
      const sent =
        kind === 'signal'
          ? stranger.signal(name, forged)
          : stranger.executeUpdate(name, { args: [forged] as never, updateId })
      await sent.then(
        () => (accepted += 1),
        () => undefined,
      )
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, send))
  return accepted
}

const eventsOf = async ({ client }: Deployment, workflowId: string): Promise<number> =>
  (await client.workflow.getHandle(workflowId).describe()).historyLength

describe('a flood of messages without the key', () => {
  it(
    'leaves an attempt running, which its job can still cancel',
    inWorld({ behave: () => ENDLESS }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const workflowId = attemptWorkflowId('job-test', 1)
      const messages = SIGNALS_MAX + 10
      expect(await flood(deployment, { workflowId, messages, kind: 'signal' })).toBe(SIGNALS_MAX)
      expect((await statusOf(job)).state).toBe('running')
      expect(await stuckWorkflows(deployment.client)).toMatchObject({ stuck: [{ workflowId, tries: 0 }] })
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it(
    'adds less to the histories of a job and a treasury than it has updates, and changes no money',
    inWorld(
      { behave: () => ENDLESS, monthly: { monthMicroUsd: microUsd(1_000), owners: {} } },
      async (deployment) => {
        const job = await deployment.submit({ budgetMicroUsd: microUsd(300) })
        await running(job)
        const treasury = treasuryWorkflowId(monthOf(Date.now()))
        const stateOf = (): Promise<TreasuryState> =>
          deployment.client.workflow.getHandle(treasury).query<TreasuryState>('treasury')
        const before = await stateOf()
        for (const workflowId of [job.workflowId, treasury]) {
          const events = await eventsOf(deployment, workflowId)
          // A refused update has no event; a task in which it was refused may have some.
          expect(await flood(deployment, { workflowId, messages: UPDATES, kind: 'update' })).toBe(0)
          expect((await eventsOf(deployment, workflowId)) - events).toBeLessThan(UPDATES)
        }
        expect(await stateOf()).toEqual(before)
        expect((await statusOf(job)).state).toBe('running')
        await job.executeUpdate('cancelNow')
        await ended(job)
        expect((await stateOf()).promised).toEqual({})
      },
    ),
  )

  it(
    'leaves a run of a schedule to its end',
    inWorld({ behave: () => ({ stepsTotal: 2_000 }) }, async (deployment) => {
      const { client, store } = deployment
      const input = await allowRun(deployment, inputOf())
      const workflowId = `${retrainScheduleId(SCHEDULE)}`
      const scheduleId = retrainScheduleId(SCHEDULE)
      const action = {
        type: 'startWorkflow' as const,
        workflowType: WORKFLOW_TYPES.retrain,
        workflowId,
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [input],
      }
      const schedule = await client.schedule.create({ scheduleId, spec: {}, action })
      await schedule.trigger()
      const query = `WorkflowType = '${WORKFLOW_TYPES.retrain}' AND ExecutionStatus = 'Running'`
      let run: string | undefined
      await eventually(async () => {
        for await (const one of client.workflow.list({ query })) run = one.workflowId
        return run !== undefined
      })
      for (const kind of ['signal', 'update'] as const)
        await flood(deployment, { workflowId: run!, messages: UPDATES, kind })
      await eventually(
        async () => (await readRuns(store, { schedule: SCHEDULE, count: 1 }))[0]?.result?.state === 'trained',
      )
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )
})
