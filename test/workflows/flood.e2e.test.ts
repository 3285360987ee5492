/** Thousands of messages of somebody without the key: each is refused, and the workflows go on. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client } from '@temporalio/client'
import { stuckWorkflows } from '../../client/stuck'
import { RETRY_SIGNAL } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import {
  attemptWorkflowId,
  ORCHESTRATOR_QUEUE,
  retrainScheduleId,
  treasuryWorkflowId,
  WORKFLOW_TYPES,
} from '../../core/queues'
import { layout } from '../../storage/layout'
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
const COPIES = 200
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

/** Sends many messages; returns how many were accepted. */
async function sendMany(messages: number, send: (number: number) => Promise<unknown>): Promise<number> {
  let accepted = 0
  let left = messages
  const sendNext = async (): Promise<void> => {
    while (left-- > 0)
      await send(left).then(
        () => (accepted += 1),
        () => undefined,
      )
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendNext))
  return accepted
}

/** Sends messages without the deployment's key; returns how many were accepted. */
async function flood(
  { client, namespace }: Deployment,
  { workflowId, messages, kind }: { workflowId: string; messages: number; kind: 'signal' | 'update' },
): Promise<number> {
  const stranger = new Client({ connection: client.connection, namespace }).workflow.getHandle(workflowId)
  const forged = { reason: 'cancelled', windowMs: 0, limits: { seq: 9, deadlineAtMs: 1 }, microUsd: -1 }
  return sendMany(messages, (number) => {
    const name = NAMES[number % NAMES.length]!
    const updateId = number % 2 === 0 ? 'one' : `u-${number}`
    return kind === 'signal'
      ? stranger.signal(name, forged)
      : stranger.executeUpdate(name, { args: [forged] as never, updateId })
  })
}

type Service = Client['workflowService']
type Signal = Parameters<Service['signalWorkflowExecution']>[0]
type Update = NonNullable<Parameters<Service['updateWorkflowExecution']>[0]['request']>

/** A message as it is in a workflow's history, which anybody who reaches the server can read. */
async function signedIn(
  { client }: Deployment,
  workflowId: string,
): Promise<{ signals: Signal[]; updates: Update[] }> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory()
  return {
    signals: events!.flatMap(({ workflowExecutionSignaledEventAttributes: signal }) =>
      signal == null ? [] : [{ signalName: signal.signalName, input: signal.input }],
    ),
    updates: events!.flatMap(({ workflowExecutionUpdateAcceptedEventAttributes: update }) =>
      update?.acceptedRequest == null ? [] : [update.acceptedRequest],
    ),
  }
}

/** Sends copies of signed messages, updates under their own ids and under others. */
async function copyInto(
  { client: { workflowService }, namespace }: Deployment,
  workflowId: string,
  { signals, updates, messages }: { signals: Signal[]; updates: Update[]; messages: number },
): Promise<void> {
  const workflowExecution = { workflowId }
  if (signals.length > 0)
    await sendMany(messages, (number) =>
      workflowService.signalWorkflowExecution({
        ...signals[number % signals.length],
        namespace,
        workflowExecution,
        requestId: `copy-${number}`,
      }),
    )
  if (updates.length > 0)
    await sendMany(messages, (number) => {
      const { meta, input } = updates[number % updates.length]!
      const updateId = number % 2 === 0 ? meta!.updateId : `copy-${number}`
      const request = { meta: { ...meta, updateId }, input }
      return workflowService.updateWorkflowExecution({
        namespace,
        workflowExecution,
        request,
        waitPolicy: { lifecycleStage: COMPLETED },
      })
    })
}

/** `temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED` */
const COMPLETED = 3

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

describe('a flood of copies of signed messages', () => {
  it(
    'changes no money and no limits, and the job can still be cancelled',
    inWorld(
      { behave: () => ENDLESS, monthly: { monthMicroUsd: microUsd(1_000), owners: {} } },
      async (deployment) => {
        const { client, store, world } = deployment
        const job = await deployment.submit({ budgetMicroUsd: microUsd(300) })
        await running(job)
        const treasury = treasuryWorkflowId(monthOf(Date.now()))
        const attempt = attemptWorkflowId('job-test', 1)
        const stateOf = (): Promise<TreasuryState> =>
          client.workflow.getHandle(treasury).query<TreasuryState>('treasury')
        await job.signal(RETRY_SIGNAL)
        await job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(400) }] })
        await eventually(async () => (await signedIn(deployment, attempt)).signals.length > 0)
        const signed = await Promise.all(
          [attempt, job.workflowId, treasury].map((id) => signedIn(deployment, id)),
        )
        const signals = signed.flatMap((each) => each.signals)
        const updates = signed.flatMap((each) => each.updates)
        expect([signals.length > 1, updates.length > 1]).toEqual([true, true])
        const before = await stateOf()
        for (const workflowId of [attempt, job.workflowId, treasury])
          await copyInto(deployment, workflowId, { signals, updates, messages: COPIES })
        await copyInto(deployment, attempt, { signals, updates: [], messages: SIGNALS_MAX })
        expect(await stateOf()).toEqual(before)
        expect(await statusOf(job)).toMatchObject({ state: 'running', budgetMicroUsd: microUsd(400) })
        expect(await store.listFolders(layout.attempts('job-test'))).toHaveLength(1)
        expect(await store.head(layout.limits('job-test', 1, 2))).toBeUndefined()
        await job.cancel()
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        expect(world.machines).toHaveLength(1)
        expect((await stateOf()).promised).toEqual({})
      },
    ),
  )
})
