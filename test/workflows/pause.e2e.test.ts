import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import type { JobSpec } from '../../core/job/job'
import { attemptWorkflowId } from '../../core/queues'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { QUICK, statusOf, worldsOn, type Deployment, type JobHandle } from './harness'
import { ended, eventually, TEST_LIMIT_MS } from './looks'
import { SECOND_MS } from '../../core/time/time'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const attemptOf = ({ client }: Deployment, number: number): WorkflowHandle =>
  client.workflow.getHandle(attemptWorkflowId('job-test', number))

/** The attempt's workflow is started; its job plans it a moment before. */
const isThere = (deployment: Deployment, number: number): Promise<boolean> =>
  attemptOf(deployment, number)
    .describe()
    .then(
      () => true,
      () => false,
    )

describe('a job that waits before it tries again', () => {
  const PAUSE_MS = 600_000

  /** A provider that asks to slow down once, for longer than any test lasts. */
  const paused = async (deployment: Deployment, spec: Partial<JobSpec> = {}): Promise<JobHandle> => {
    const failure = { class: 'throttled', message: 'Slow down.', retryAfterMs: PAUSE_MS } as const
    deployment.world.faults.add('launch', { kind: 'refuses', failure })
    const job = await deployment.submit(spec)
    await eventually(async () => (await statusOf(job)).attemptsTotal === 2)
    await eventually(() => isThere(deployment, 2))
    return job
  }

  it.concurrent(
    'says that it does, why, and for how long, and orders nothing meanwhile',
    inWorld({}, async (deployment) => {
      const fromMs = Date.now()
      const job = await paused(deployment)
      const { state, reason, message, attempts } = await statusOf(job)
      expect({ state, reason }).toEqual({ state: 'provisioning', reason: 'launch-refused' })
      const [, instant = ''] = /^Slow down\. Attempt 2 waits until (\S+)\.$/.exec(message) ?? []
      expect(Date.parse(instant)).toBeGreaterThanOrEqual(fromMs + PAUSE_MS - 1_000)
      expect(Date.parse(instant)).toBeLessThanOrEqual(Date.now() + PAUSE_MS)
      expect(attempts[1]).toMatchObject({ state: 'provisioning', reason: `waits until ${instant}` })
      const page = await attemptOf(deployment, 2).query<{ currentDetails: string }>(
        '__temporal_workflow_metadata',
      )
      expect(page.currentDetails).toMatch(/^\*\*provisioning\*\* \(waits until \S+\): Slow down\.\n/)
      expect(deployment.world.callsOf('launch')).toHaveLength(1)
      expect(await deployment.store.get(layout.order('job-test', 2))).toBeUndefined()
    }),
  )

  it.concurrent(
    'is cancelled at once, with nothing to end, and all of it on record',
    inWorld({}, async (deployment) => {
      const job = await paused(deployment)
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect((await statusOf(job)).attempts[1]).toMatchObject({
        state: 'stopped',
        reason: 'cancelled',
        costMicroUsd: 0,
      })
      expect(deployment.world.machines).toEqual([])
      expect(deployment.world.callsOf('terminate')).toEqual([])
      const records = await readRecords(deployment.store, 'job-test')
      expect(records.filter(({ attempt }) => attempt === 2).map(({ kind }) => kind)).toEqual([
        'planned',
        'settled',
        'decided',
      ])
    }),
  )

  it.concurrent(
    'moves at once where its owner wants it',
    inWorld({}, async (deployment) => {
      const job = await paused(deployment)
      await job.executeUpdate('migrate', {
        args: [{ to: { backend: 'scripted', capacityType: 'on-demand' } }],
      })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 3 })
      const { attempts } = await statusOf(job)
      expect(attempts.map(({ state, capacityType }) => [state, capacityType])).toEqual([
        ['failed', 'spot'],
        ['stopped', 'spot'],
        ['succeeded', 'on-demand'],
      ])
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it.concurrent(
    'ends when its deadline comes, an extended one too',
    inWorld({}, async (deployment) => {
      const job = await paused(deployment, { deadlineAtMs: Date.now() + PAUSE_MS })
      const deadlineAtMs = Date.now() + QUICK.drainMs + QUICK.powerOffMs + 1_000
      await job.executeUpdate('extend', { args: [{ deadlineAtMs }] })
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
      expect((await statusOf(job)).attempts[1]).toMatchObject({ state: 'stopped', reason: 'deadline' })
      expect(deployment.world.machines).toEqual([])
    }),
  )

  it.concurrent(
    'continues when its attempt is ended by hand, and when that is cancelled',
    inWorld({}, async (deployment) => {
      const job = await paused(deployment)
      deployment.world.faults.add('launch', {
        kind: 'refuses',
        failure: { class: 'throttled', message: 'Slow down.', retryAfterMs: PAUSE_MS },
      })
      await attemptOf(deployment, 2).terminate('by hand')
      await eventually(() => isThere(deployment, 4))
      await attemptOf(deployment, 4).cancel()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 5 })
      const { attempts } = await statusOf(job)
      expect(attempts.map(({ state }) => state)).toEqual([
        'failed',
        'stopped',
        'failed',
        'stopped',
        'succeeded',
      ])
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it.concurrent(
    'counts what a runner may take from its order on, not from the pause before it',
    inWorld(
      { behave: ({ attempt }) => (attempt === 1 ? { fails: { atStep: 5, exitCode: 1 } } : {}) },
      async (d) => {
        const job = await d.submit({ retries: { failures: 1, interruptions: 0 } })
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
        const [failed] = (await statusOf(job)).attempts
        const issued = JSON.parse((await d.store.get(layout.order('job-test', 2)))!.toString()) as {
          issuedAtMs: number
        }
        expect(issued.issuedAtMs - failed!.endedAtMs!).toBeGreaterThanOrEqual(2 * SECOND_MS)
      },
    ),
  )
})
