import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { spendOver } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import { layout } from '../../storage/layout'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import {
  LONG,
  QUICK,
  SPOT,
  statusOf,
  worldsOn,
  type Deployment,
  type JobHandle,
  type WorldWishes,
} from './harness'
import { atStep, beatOf, ended, eventually, forReason, inState, running, TEST_LIMIT_MS } from './looks'
import { expectUntouched } from './untouched'
import { patient } from '../support/patience'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const firstLong: WorldWishes['behave'] = ({ attempt }) => (attempt === 1 ? LONG : {})

/** The runner of the first attempt has begun to stop. */
function draining(deployment: Deployment): Promise<void> {
  return eventually(async () => (await beatOf(deployment))?.phase === 'draining')
}

/** The activities that a job, or an attempt, itself waits for. */
async function pendingOf(job: Pick<JobHandle, 'describe'>): Promise<(string | null | undefined)[]> {
  const { raw } = await job.describe()
  return (raw.pendingActivities ?? []).map(({ activityType }) => activityType?.name)
}

describe('what the owner can tell a job', () => {
  const long = { behave: () => LONG }

  it.concurrent(
    'cancels it: the workload saves, the machine ends, the workflow closes as cancelled',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await atStep(deployment, 25)
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      const { attempts, state, checkpoint } = await statusOf(job)
      expect(state).toBe('cancelled')
      expect(attempts[0]).toMatchObject({ state: 'stopped', reason: 'cancelled', stepsLost: 0 })
      expect(checkpoint!.step).toBeGreaterThanOrEqual(25)
      expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
    }),
  )

  it.concurrent(
    'cancels it by a signal of the workflow itself where the worker cannot send one',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const { workflow } = deployment.client
      const getHandle = workflow.getHandle.bind(workflow)
      const signal = jest.fn(() => Promise.reject(new Error('no route to the server')))
      workflow.getHandle = ((id: string) =>
        id === 'job/job-test/1' ? { ...getHandle(id), signal } : getHandle(id)) as typeof workflow.getHandle
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect(signal).toHaveBeenCalledTimes(1)
      expect((await statusOf(job)).attempts[0]).toMatchObject({ state: 'stopped', reason: 'cancelled' })
      const { events } = await job.fetchHistory()
      const sent = events!.filter((event) => event.signalExternalWorkflowExecutionInitiatedEventAttributes)
      expect(sent).toHaveLength(1)
    }),
  )

  it.concurrent(
    'cancels it now: a workload that does not listen has seconds',
    inWorld(
      { behave: () => ({ ...LONG, isDeaf: true }), timing: { drainMs: 150_000, powerOffMs: 30_000 } },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        await job.cancel()
        await inState(job, 'stopping')
        await draining(deployment)
        const askedAtMs = Date.now()
        const receipt = await job.executeUpdate<{ message: string }, []>('cancelNow')
        expect(receipt.message).toBe('Cancelling; the workload has 2 s to save.')
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        // Far less than the window of the first request, and than the time that a runner has which does not obey.
        expect(Date.now() - askedAtMs).toBeLessThan(patient(20_000))
        // Its runner obeyed: it has left a result, which a machine that is ended as it is does not.
        expect(await deployment.store.head(layout.result('job-test', 1))).toBeDefined()
        expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
      },
    ),
  )

  it.concurrent(
    'cancels it now while the job itself stops a machine whose attempt was terminated by hand',
    inWorld(
      { behave: () => ({ ...LONG, isDeaf: true }), timing: { drainMs: 150_000, powerOffMs: 30_000 } },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        await job.cancel()
        await draining(deployment)
        await deployment.terminateAttempt()
        await eventually(async () => (await pendingOf(job)).includes('settle'))
        const askedAtMs = Date.now()
        await job.executeUpdate('cancelNow')
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        expect(Date.now() - askedAtMs).toBeLessThan(patient(20_000))
        // Its runner obeyed: it has left a result, which a machine that is ended as it is does not.
        expect(await deployment.store.head(layout.result('job-test', 1))).toBeDefined()
        expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
      },
    ),
  )

  it.concurrent(
    'cancels it now while its attempt stops a machine that was given up',
    inWorld(
      {
        behave: () => ({ ...LONG, hangsAtStep: 20 }),
        timing: { silenceMs: 600, drainMs: 150_000 },
      },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        const attempt = deployment.client.workflow.getHandle('job/job-test/1')
        await eventually(async () => (await pendingOf(attempt)).includes('settle'))
        await job.cancel()
        await inState(job, 'stopping')
        expect(await pendingOf(attempt)).toContain('settle')
        const askedAtMs = Date.now()
        await job.executeUpdate('cancelNow')
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        // Far less than the window that the settlement began with.
        expect(Date.now() - askedAtMs).toBeLessThan(patient(20_000))
        expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
      },
    ),
  )

  it.concurrent(
    'cancels it while it waits for a machine',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit()
      await forReason(job, 'waiting-for-capacity')
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect(deployment.world.machines).toEqual([])
    }),
  )

  it.concurrent(
    'moves it, with a checkpoint first, to another place',
    inWorld({ behave: firstLong }, async (deployment) => {
      const job = await deployment.submit()
      await atStep(deployment, 25)
      const receipt = await job.executeUpdate('migrate', {
        args: [{ to: { backend: 'scripted', capacityType: 'on-demand' } }],
      })
      expect(receipt).toEqual({ message: 'Moving to scripted:on-demand; the workload saves first.' })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [from, to] = (await statusOf(job)).attempts
      expect(from).toMatchObject({ state: 'stopped', reason: 'migrated', stepsLost: 0, capacityType: 'spot' })
      expect(to).toMatchObject({
        state: 'succeeded',
        capacityType: 'on-demand',
        restoredFrom: from!.checkpoint,
      })
    }),
  )

  it.concurrent(
    'continues where it can when its target has nothing to offer',
    inWorld({ behave: firstLong }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await job.executeUpdate('migrate', { args: [{ to: { backend: 'nowhere' } }] })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
    }),
  )

  it.concurrent(
    'refuses what makes no sense, without a trace',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const refused = async (update: string, argument: unknown): Promise<string> =>
        job.executeUpdate(update, { args: [argument] }).then(
          () => 'accepted',
          (error: { cause?: Error }) => error.cause?.message ?? '',
        )
      expect(await refused('extend', {})).toMatch('Set a new deadline or a new budget')
      expect(await refused('extend', { deadlineAtMs: Date.now() - 1_000 })).toMatch('has already passed')
      // No time would be left to save and stop.
      const { drainMs, powerOffMs } = QUICK
      expect(await refused('extend', { deadlineAtMs: Date.now() + drainMs + powerOffMs })).toMatch('too soon')
      expect(await refused('extend', { budgetMicroUsd: -1 })).toMatch('not more than')
      const { events } = await job.fetchHistory()
      expect(
        events!.filter(({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) => accepted),
      ).toEqual([])
    }),
  )

  it.concurrent(
    'refuses to take the machine of a job back that is no rehearsal',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const asked = job.executeUpdate('interrupt', { args: [{ attempt: 1, noticeMs: null }] })
      await expect(asked).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/crucible rehearse/) },
      })
      expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['running'])
    }),
  )

  it.concurrent(
    'takes the machine of a rehearsal back, and that counts as an interruption',
    inWorld({ behave: ({ attempt }) => (attempt <= 2 ? LONG : {}) }, async (deployment) => {
      const job = await deployment.submit(
        { retries: { failures: 0, interruptions: 2 } },
        { isRehearsal: true },
      )
      const interrupt = (attempt: number, noticeMs: number | null): Promise<unknown> =>
        job.executeUpdate('interrupt', { args: [{ attempt, noticeMs }] })
      await atStep(deployment, 25)
      await expect(interrupt(2, null)).rejects.toMatchObject({
        cause: { message: 'Attempt 2 is not running.' },
      })
      expect(await interrupt(1, 1_000)).toEqual({
        message: 'The machine of attempt 1 got notice that it ends in 1s.',
      })
      await eventually(async () => {
        const { attempts } = await statusOf(job)
        return attempts.length === 2 && attempts[1]!.state === 'running'
      })
      await interrupt(2, null)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 3 })
      const { attempts } = await statusOf(job)
      expect(attempts.map(({ state }) => state)).toEqual(['interrupted', 'interrupted', 'succeeded'])
      const beats = JSON.parse(
        (await deployment.store.get(layout.order('job-test', 1)))!.toString(),
      ) as object
      expect(beats).toMatchObject({ beatMs: Math.min(QUICK.beatMs, 1_000) })
    }),
  )

  it.concurrent(
    'reaches the running machine with a new deadline and a new budget',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit({ budgetMicroUsd: microUsd(1_000) })
      await running(job)
      const deadlineAtMs = Date.now() + 600_000
      await job.executeUpdate('extend', { args: [{ deadlineAtMs, budgetMicroUsd: microUsd(2_000) }] })
      await eventually(async () => (await beatOf(deployment))?.limitsSeq === 1)
      const limits: unknown = JSON.parse(
        (await deployment.store.get(layout.limits('job-test', 1, 1)))!.toString(),
      )
      const budget = { microUsd: microUsd(2_000), priceMaxMicroUsdPerHour: SPOT.priceMicroUsdPerHour }
      expect(limits).toEqual({ seq: 1, deadlineAtMs, budget })
      await expectUntouched(deployment, job)
    }),
  )
})

describe('limits', () => {
  it.concurrent(
    'stops in time for its deadline, with what it has saved',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit({ deadlineAtMs: Date.now() + 600_000 })
      await running(job)
      const deadlineAtMs = Date.now() + 8_000
      await job.executeUpdate('extend', { args: [{ deadlineAtMs }] })
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
      const [machine] = deployment.world.machines
      expect(machine!.endedAtMs!).toBeLessThanOrEqual(deadlineAtMs)
      expect((await statusOf(job)).attempts[0]).toMatchObject({ reason: 'deadline', stepsLost: 0 })
    }),
  )

  it.concurrent(
    'stops for a deadline brought nearer while the job itself stops a machine',
    inWorld(
      { behave: () => ({ ...LONG, isDeaf: true }), timing: { drainMs: 8_000, powerOffMs: 1_000 } },
      async (deployment) => {
        const job = await deployment.submit({ deadlineAtMs: Date.now() + 600_000 })
        await running(job)
        await deployment.terminateAttempt()
        await eventually(async () => (await pendingOf(job)).includes('settle'))
        const deadlineAtMs = Date.now() + 8_000 + 1_000 + 1_500
        await job.executeUpdate('extend', { args: [{ deadlineAtMs }] })
        expect(await pendingOf(job)).toContain('settle')
        expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
        const { attempts, attemptsTotal } = await statusOf(job)
        expect(attemptsTotal).toBe(1)
        expect(attempts[0]!.endedAtMs).toBeLessThanOrEqual(deadlineAtMs)
        expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
      },
    ),
  )

  it.concurrent(
    'never spends more than its budget, over all its attempts',
    inWorld(
      {
        wares: [SPOT],
        // The runner and its hard stop are in this process, which a busy host holds up.
        timing: { powerOffMs: patient(1_000) },
        behave: ({ attempt }) => ({ ...LONG, diesAtStep: attempt === 1 ? 65 : undefined }),
      },
      async (deployment) => {
        const job = await deployment.submit({ budgetMicroUsd: microUsd(100) })
        await running(job, 2)
        const { spentMicroUsd } = await statusOf(job)
        expect(spentMicroUsd).toBeGreaterThan(0)
        // Enough for the second machine until five seconds from now, and its power-off.
        const order = (await deployment.store.get(layout.order('job-test', 2)))!.toString()
        const { issuedAtMs } = JSON.parse(order) as { issuedAtMs: number }
        const second = spendOver(Date.now() + 5_000 + patient(1_000) - issuedAtMs, SPOT.priceMicroUsdPerHour)
        const budgetMicroUsd = spentMicroUsd + second
        await job.executeUpdate('extend', { args: [{ budgetMicroUsd }] })
        expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'budget-reached' })
        expect((await statusOf(job)).spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd)
      },
    ),
  )

  it.concurrent(
    'ends a job whose deadline comes while it waits for a machine',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit({ deadlineAtMs: Date.now() + 600_000 })
      await forReason(job, 'waiting-for-capacity')
      const deadlineAtMs = Date.now() + QUICK.drainMs + QUICK.powerOffMs + patient(1_000)
      await job.executeUpdate('extend', { args: [{ deadlineAtMs }] })
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
    }),
  )
})
