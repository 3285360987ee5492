/** A provider that accepts a launch and lets it wait for capacity. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { Billing } from '../../core/documents'
import type { AttemptStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { attemptWorkflowId } from '../../core/queues'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { ON_DEMAND, SPOT, statusOf, worldsOn, type Deployment } from './harness'
import { ended, eventually, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)
const QUEUES = { queues: true } as const

const attemptStatus = ({ client }: Deployment, number = 1): Promise<AttemptStatus> =>
  client.workflow.getHandle(attemptWorkflowId('job-test', number)).query<AttemptStatus>('status')
const isQueued = async (deployment: Deployment): Promise<boolean> => {
  const { reason } = await attemptStatus(deployment).catch(() => ({ reason: '' }))
  return reason === 'queued'
}
const billing = async ({ store }: Deployment): Promise<Billing | undefined> => {
  const body = await store.get(layout.billing('job-test', 1))
  return body && (JSON.parse(body.toString()) as Billing)
}

describe('a machine in its provider’s queue', () => {
  it.concurrent(
    'is shown as queued, is not given up as silent, and is billed only after it leaves the queue',
    inWorld({ capabilities: QUEUES, timing: { silenceMs: 400 } }, async (deployment) => {
      const release = deployment.world.holdQueue()
      const job = await deployment.submit()
      await eventually(() => isQueued(deployment))
      const page = await deployment.client.workflow
        .getHandle(attemptWorkflowId('job-test', 1))
        .query<{ currentDetails: string }>('__temporal_workflow_metadata')
      expect(page.currentDetails).toMatch(/In the provider's queue since .*, which costs nothing/)
      expect(await billing(deployment)).toEqual({ machine: 'm-1', fromAtMs: null })
      // Longer than the silence after which a machine is given up.
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      release()
      const { billedFromMs, endedAtMs, handle } = await ended(job).then(() => deployment.world.machines[0]!)
      const { attempts, spentMicroUsd } = await statusOf(job)
      expect(attempts).toMatchObject([{ state: 'succeeded', billedFromAtMs: billedFromMs, endedAtMs }])
      expect(billedFromMs! - handle.launchedAtMs).toBeGreaterThan(1_400)
      const wholeSeconds = Math.ceil((endedAtMs! - billedFromMs!) / 1_000)
      expect(spentMicroUsd).toBe((wholeSeconds * microUsd(360)) / 3_600)
    }),
  )

  it.concurrent.each(['with-launch', 'after-launch'] as const)(
    'is tried elsewhere after its time limit, at no cost and without an interruption (runner %s)',
    (runnerStart) =>
      inWorld(
        {
          capabilities: { ...QUEUES, runnerStart, offersPerOrder: 'one' },
          timing: { queueMs: 600 },
          queueMs: ({ offers }) => (offers[0]!.capacityType === 'spot' ? Infinity : 0),
        },
        async (deployment) => {
          const job = await deployment.submit({ retries: { failures: 0, interruptions: 0 } })
          await ended(job)
          const { attempts, state } = await statusOf(job)
          expect(state).toBe('succeeded')
          expect(attempts).toMatchObject([
            { capacityType: 'spot', state: 'failed', costMicroUsd: 0 },
            { capacityType: 'on-demand', state: 'succeeded' },
          ])
          expect(attempts[0]!.reason).toMatch(/^capacity: The machine waited in the provider's queue for/)
          const decided = (await readRecords(deployment.store, 'job-test')).filter(
            ({ kind }) => kind === 'decided',
          )
          expect(decided[0]).toMatchObject({
            data: {
              verdict: { ledger: { interruptions: 0, misses: 1 }, decision: { reason: 'launch-refused' } },
            },
          })
          expect(deployment.world.machines[0]).toMatchObject({ state: 'gone', billedFromMs: undefined })
        },
      )(),
  )

  it.concurrent(
    'is ended at once and at no cost when its job is cancelled',
    inWorld({ capabilities: QUEUES, timing: { drainMs: 60_000, powerOffMs: 30_000 } }, async (deployment) => {
      deployment.world.holdQueue()
      const job = await deployment.submit()
      await eventually(() => isQueued(deployment))
      await job.cancel()
      await ended(job)
      const { attempts, state, spentMicroUsd } = await statusOf(job)
      expect({ state, spentMicroUsd }).toEqual({ state: 'cancelled', spentMicroUsd: 0 })
      expect(attempts).toMatchObject([{ state: 'stopped', reason: 'cancelled' }])
      expect(deployment.world.machines).toMatchObject([{ state: 'gone', billedFromMs: undefined }])
    }),
  )

  it.concurrent(
    'uses none of a budget while it waits',
    // A second of the machine costs ten cents: the wait alone would use up more than the budget.
    inWorld({ capabilities: QUEUES, wares: [SPOT], timing: { drainMs: 500 } }, async (deployment) => {
      const release = deployment.world.holdQueue()
      const job = await deployment.submit({ budgetMicroUsd: microUsd(8), backends: [] })
      await eventually(() => isQueued(deployment))
      deployment.world.clock.at(Date.now() + 3_000, release)
      await ended(job)
      expect(await statusOf(job)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
    }),
  )

  it.concurrent(
    'counts its run limit only after it leaves the queue',
    inWorld(
      {
        capabilities: QUEUES,
        wares: [{ ...ON_DEMAND, runMsMax: 100_000 }],
        timing: { queueMs: 60_000 },
      },
      async (deployment) => {
        const release = deployment.world.holdQueue()
        const job = await deployment.submit()
        await eventually(() => isQueued(deployment))
        release()
        await ended(job)
        expect(await statusOf(job)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
        const { order, billedFromMs } = deployment.world.machines[0]!
        expect(order.runner).toMatchObject({ queueMs: 60_000, runMsMax: 100_000 })
        expect(order.runner.usableUntilMs).toBeUndefined()
        const lease = await deployment.store.get(layout.lease('job-test', 1))
        expect(JSON.parse(lease!.toString())).toMatchObject({ usableUntilMs: billedFromMs! + 100_000 })
      },
    ),
  )

  // A machine that is gone for an unknown reason may have run before.
  it.concurrent.each([
    ['says so', 'failed-to-start', false],
    ['does not say why it is gone, and counts as billed', 'unknown', true],
  ] as const)('has ended as missing capacity where its provider drops it and %s', (_, cause, isBilled) =>
    inWorld(
      { capabilities: { ...QUEUES, offersPerOrder: 'one' }, queueMs: () => 100 },
      async (deployment) => {
        const release = deployment.world.holdQueue()
        const job = await deployment.submit({ retries: { failures: 0, interruptions: 0 } })
        await eventually(() => isQueued(deployment))
        deployment.world.machines[0]!.end(cause)
        release()
        await ended(job)
        const { attempts } = await statusOf(job)
        expect(attempts).toMatchObject([{ state: 'failed' }, { state: 'succeeded' }])
        expect(attempts[0]!.costMicroUsd > 0).toBe(isBilled)
        expect(attempts[0]!.reason).toMatch(/^capacity: The provider dropped the machine from its queue/)
      },
    )(),
  )

  it.concurrent(
    'keeps the beginning of its billing on record through a restart, where its provider does not tell it',
    inWorld({ capabilities: QUEUES, tellsBilling: false }, async (deployment) => {
      const release = deployment.world.holdQueue()
      const job = await deployment.submit()
      await eventually(() => isQueued(deployment))
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      release()
      await eventually(async () => (await billing(deployment))?.fromAtMs !== null)
      await deployment.restart('watches')
      await ended(job)
      const { attempts } = await statusOf(job)
      const { billedFromMs, handle } = deployment.world.machines[0]!
      expect(attempts[0]!.billedFromAtMs).toBeLessThanOrEqual(billedFromMs!)
      expect(attempts[0]!.billedFromAtMs).toBeGreaterThan(handle.launchedAtMs + 1_000)
    }),
  )
})
