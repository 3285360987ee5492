import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { GarbageCollectionInput, GarbageCollectionResult } from '../../core/messages'
import { ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { MINUTE_MS } from '../../core/time/time'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { connectTo, quietWorkers, skipTime, type TestConnection } from '../support/temporal'
import { LONG, ON_DEMAND, SPOT, statusOf, worldsOn, type Deployment, type WorldWishes } from './harness'
import { beatOf, ended, eventually, observed, running, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const long = { behave: () => LONG }
const firstLong: WorldWishes = { behave: ({ attempt }) => (attempt === 1 ? LONG : {}) }

const attemptOf = (deployment: Deployment, number = 1) =>
  deployment.client.workflow.getHandle(`job/job-test/${number}`)

/** Machines of a job, in time: no two of them may live at once. */
function expectOneAtATime({ world }: Deployment): void {
  const lives = world.machines.map(
    ({ handle, endedAtMs }) => [handle.launchedAtMs, endedAtMs ?? Infinity] as const,
  )
  for (let index = 1; index < lives.length; index++)
    expect(lives[index]![0]).toBeGreaterThanOrEqual(lives[index - 1]![1])
}

describe('an attempt that somebody meddles with', () => {
  it.concurrent(
    'is drained and settled by its job when it is terminated by hand in the middle',
    inWorld(firstLong, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await attemptOf(deployment).terminate('by hand')
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [first, second] = (await statusOf(job)).attempts
      expect(first).toMatchObject({ state: 'stopped', reason: 'superseded', stepsLost: 0 })
      expect(second!.restoredFrom).toEqual(first!.checkpoint)
      expectOneAtATime(deployment)
    }),
  )

  it.concurrent(
    'saves and stops when it is cancelled by hand, and its job continues',
    inWorld(firstLong, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await attemptOf(deployment).cancel()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      expect((await statusOf(job)).attempts[0]).toMatchObject({ state: 'stopped', stepsLost: 0 })
      expectOneAtATime(deployment)
    }),
  )

  it.concurrent(
    'saves, stops and ends its machine when its job is terminated by hand',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await job.terminate('by hand')
      await attemptOf(deployment).result()
      expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone'])
      const drain = JSON.parse(
        (await deployment.store.get(layout.drain('job-test', 1)))!.toString(),
      ) as unknown
      expect(drain).toMatchObject({ reason: 'superseded' })
    }),
  )

  it.concurrent(
    'never runs when it was stopped before its machine came up',
    inWorld(
      { ...long, bootMs: 10_000, timing: { drainMs: 60_000, silenceMs: 60_000 } },
      async (deployment) => {
        const job = await deployment.submit()
        await eventually(() => deployment.world.machines.length === 1)
        await job.cancel()
        await expect(job.result()).rejects.toThrow()
        const body = await deployment.store.get(layout.result('job-test', 1))
        expect(JSON.parse(body!.toString())).toMatchObject({ outcome: 'stopped', progress: null })
        expect(deployment.world.machines).toMatchObject([{ state: 'gone', workedFromMs: undefined }])
      },
    ),
  )
})

describe('workers that come and go', () => {
  it.concurrent(
    'take up a running job again, which does not notice',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await deployment.stop('orchestrator')
      await deployment.stop('watches')
      await deployment.stop('verbs')
      await deployment.startBackend()
      await deployment.startOrchestrator()
      await observed(deployment, 3)
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      const { attempts } = await statusOf(job)
      expect(attempts).toMatchObject([{ state: 'stopped', reason: 'cancelled', stepsLost: 0 }])
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it.concurrent(
    'find the result of a job that ended while no worker was there',
    inWorld({ behave: () => ({ stepsTotal: 300 }) }, async (deployment) => {
      const job = await deployment.submit()
      await eventually(() => deployment.world.machines.length === 1)
      await deployment.stop('watches')
      await deployment.stop('verbs')
      await deployment.stop('orchestrator')
      await eventually(() => deployment.world.machines.every(({ state }) => state === 'gone'))
      await deployment.startBackend()
      await deployment.startOrchestrator()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
    }),
  )

  it.concurrent(
    'leave a machine alone long enough that it fences itself off, and its job resumes',
    inWorld(
      {
        timing: { leaseMs: 1_500, drainMs: 500 },
        ...firstLong,
      },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        await deployment.stop('watches')
        await eventually(() => deployment.world.machines.every(({ state }) => state === 'gone'))
        await deployment.stop('verbs')
        await deployment.startBackend()
        await job.result()
        const [first, second] = (await statusOf(job)).attempts
        expect(first).toMatchObject({ state: 'stopped', reason: 'lease', stepsLost: 0 })
        expect(second!.restoredFrom).toEqual(first!.checkpoint)
      },
    ),
  )

  it.concurrent(
    'are missed: a backend without workers is not a place for a job, another one is',
    inWorld({ unserved: ['nobody'] }, async (deployment) => {
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
    }),
  )
})

describe('a store or a provider that is down', () => {
  it.concurrent(
    'costs no machine, however long it lasts',
    inWorld({ timing: { silenceMs: 3_000 }, ...long }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const [machine] = deployment.world.machines
      deployment.store.isDown = true
      // Longer than the silence after which a machine would be given up, had the store answered.
      const fromMs = Date.now()
      await eventually(() => Date.now() - fromMs > 4_000)
      await observed(deployment, 3)
      expect(machine!.state).toBe('running')
      deployment.store.isDown = false
      const { seq } = (await beatOf(deployment))!
      await eventually(async () => (await beatOf(deployment))!.seq > seq)
      await observed(deployment, 3)
      expect(await statusOf(job)).toMatchObject({ state: 'running', attemptsTotal: 1 })
      expect(deployment.world.machines).toMatchObject([{ state: 'running' }])
    }),
  )

  it.concurrent(
    'keeps no machine of a cancelled job, whose end is on record once the store is back',
    inWorld({ timing: { drainMs: 500, powerOffMs: 500 }, ...long }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      deployment.store.isDown = true
      await job.cancel()
      await eventually(() => deployment.world.machines.every(({ state }) => state === 'gone'))
      expect(deployment.world.callsOf('terminate').length).toBeGreaterThan(0)
      deployment.store.isDown = false
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect((await statusOf(job)).attempts).toMatchObject([{ state: 'stopped', reason: 'cancelled' }])
    }),
  )

  it.concurrent(
    'keeps a job from going on until its machine has certainly ended',
    inWorld({ behave: ({ attempt }) => (attempt === 1 ? { hangsAtStep: 15 } : {}) }, async (deployment) => {
      deployment.world.faults.add('terminate', { kind: 'ignored' }, { times: 5 })
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      expect(deployment.world.callsOf('terminate').length).toBeGreaterThanOrEqual(6)
      expectOneAtATime(deployment)
    }),
  )
})

describe('waits without a machine, on a clock that skips them', () => {
  it.concurrent(
    'keep a job until its deadline has come, and leave no trace of the asking',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const deadlineAtMs = Date.now() + 5 * MINUTE_MS
      const job = await deployment.submit({ deadlineAtMs })
      await skipTime(deployment.client, job.workflowId)
      await expect(job.result()).rejects.toMatchObject({ cause: { type: 'deadline-reached' } })
      const { events } = await job.fetchHistory()
      // Minutes of asking leave nothing but the skips themselves.
      const skips = events!.filter((event) => event.workflowExecutionTimeSkippingTransitionedEventAttributes)
      expect(events!.length - skips.length).toBeLessThan(40)
    }),
  )

  it.concurrent(
    'back off for hours from what keeps failing',
    inWorld(
      { behave: () => ({ fails: { atStep: 5, exitCode: 1 }, stepsPerSecond: 500 }) },
      async (deployment) => {
        const job = await deployment.submit({ retries: { failures: 8, interruptions: 0 } })
        await skipTime(deployment.client, job.workflowId)
        await expect(job.result()).rejects.toMatchObject({ cause: { type: 'workload-failed' } })
        expect((await statusOf(job)).attempts).toHaveLength(9)
      },
    ),
  )
})

describe('garbage collection', () => {
  const DEPLOYMENT = 'dep-0123456789'
  const collect = (
    deployment: Deployment,
    input: Partial<GarbageCollectionInput> = {},
  ): Promise<GarbageCollectionResult> =>
    deployment.client.workflow.execute(WORKFLOW_TYPES.garbageCollection, {
      workflowId: `gc-${Math.random()}`,
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [{ deployment: DEPLOYMENT, backends: ['scripted'], graceMs: 100, isDryRun: false, ...input }],
    }) as Promise<GarbageCollectionResult>

  it.concurrent(
    'ends orphans, after a grace, and nothing else',
    inWorld({ wares: [SPOT, ON_DEMAND], ...long }, async (deployment) => {
      await putDocument(deployment.store, layout.deployment(), { id: DEPLOYMENT })
      const job = await deployment.submit()
      await running(job)
      const dry = await collect(deployment, { isDryRun: true })
      expect(dry.verdicts).toMatchObject([{ action: 'kept', reason: 'attempt 1 of job job-test is running' }])
      // The job and its attempt are gone without any clean-up: the machine is an orphan now.
      await deployment.stop('orchestrator')
      await attemptOf(deployment).terminate()
      await job.terminate()
      await deployment.startOrchestrator()
      const swept = await collect(deployment)
      expect(swept.verdicts).toMatchObject([{ action: 'ended', reason: 'job job-test is over' }])
      expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone'])
    }),
  )

  it.concurrent(
    'refuses to end anything when server and store are not of one deployment',
    inWorld({}, async (deployment) => {
      await putDocument(deployment.store, layout.deployment(), { id: 'dep-zzzzzzzzzz' })
      const { verdicts } = await collect(deployment)
      expect(verdicts).toMatchObject([
        { backend: 'scripted', action: 'failed', reason: expect.stringContaining('Nothing was ended') },
        { backend: 'store', action: 'failed', reason: expect.stringContaining('Nothing was ended') },
      ])
    }),
  )
})
