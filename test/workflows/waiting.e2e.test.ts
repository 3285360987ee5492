import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { wakeThrough } from '../../workers/waking'
import { runQueue } from '../bench/queue'
import type { JobView } from '../../client/job/job-view'
import { readLine } from '../../storage/waiting-line'
import { CloudDeployment } from '../recovery/deployment'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { LONG, SPOT, type JobHandle, statusOf, worldsOn } from './harness'
import { chosen, itInAll } from '../support/selection'

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

/** In addition to the two that wait already. */
const MORE_WAITING = chosen([8], [3])[0]!

const ONE = { wares: [{ ...SPOT, stock: 1 }] }

describe('jobs with equal requests', () => {
  it('take the slots of this machine oldest first, and lose no attempt to a race', async () => {
    const [count] = chosen([12], [6]) as [number]
    const { jobs, overtaken, attempts } = await runQueue(at, count, 1_000)
    expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => 'succeeded'))
    expect(overtaken).toBe(0)
    expect(attempts).toBe(count)
  }, 240_000)

  it(
    'start when a machine ends, however long they would pause, and their histories do not grow',
    inWorld({ ...ONE, looksOnce: true, behave: () => LONG }, async (deployment) => {
      const { world } = deployment
      const jobs: JobHandle[] = []
      for (const name of ['a', 'b', 'c']) {
        const job = await deployment.submit({}, { jobId: `job-${name}` })
        jobs.push(job)
        const wanted = jobs.length === 1 ? 'running' : 'waiting-for-capacity'
        await until(async () => {
          const { state, reason } = await statusOf(job)
          return state === wanted || reason === wanted
        }, 60_000)
      }
      const [a, b, c] = jobs as [JobHandle, JobHandle, JobHandle]
      const eventsOf = async ({ workflowId }: JobHandle): Promise<number> =>
        (await deployment.client.workflow.getHandle(workflowId).fetchHistory()).events!.length
      const events = await eventsOf(c)
      for (let count = 0; count < 5; count++) await wakeThrough(deployment.client)('job-c')
      await a.cancel()
      await until(async () => (await statusOf(b)).state === 'running', 60_000)
      expect(await eventsOf(c)).toBe(events)
      await b.cancel()
      await until(async () => (await statusOf(c)).state === 'running', 60_000)
      expect(world.machines.map(({ handle }) => handle.attemptId)).toEqual(['job-a-1', 'job-b-1', 'job-c-1'])
    }),
    180_000,
  )

  it(
    'do not stampede a cloud pool: those behind the first do not ask for offers',
    inWorld({ ...ONE, behave: () => LONG }, async (deployment) => {
      const { world } = deployment
      const first = await deployment.submit({}, { jobId: 'job-a', submittedAtMs: 1 })
      await until(async () => (await statusOf(first)).state === 'running')
      const waiting: JobHandle[] = []
      for (const name of ['b', 'c', 'd', 'e']) {
        const job = await deployment.submit({}, { jobId: `job-${name}` })
        waiting.push(job)
        await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      }
      expect((await statusOf(waiting[1]!)).message).toContain('2nd for')
      expect((await statusOf(waiting[3]!)).message).toContain('4th for')
      // The second in line goes first once the one ahead of it was terminated.
      await waiting[0]!.terminate('by hand')
      world.setStock(SPOT, 1)
      await until(async () => (await statusOf(waiting[1]!)).state === 'running', 60_000)
      expect((await statusOf(waiting[2]!)).state).toBe('pending')
      expect(world.machines.map(({ handle }) => handle.attemptId)).toEqual(['job-a-1', 'job-c-1'])
    }),
    120_000,
  )

  it(
    'cost a cloud as many calls when many wait as when two wait',
    inWorld({ ...ONE, looksOnce: true, behave: () => LONG }, async (deployment) => {
      const { world, store } = deployment
      const submitted: string[] = []
      const submit = async (): Promise<void> => {
        const jobId = `job-${String(submitted.length).padStart(2, '0')}`
        const job = await deployment.submit({}, { jobId })
        submitted.push(jobId)
        const isFirst = submitted.length === 1
        await until(async () => {
          const { state, reason } = await statusOf(job)
          return isFirst ? state === 'running' : reason === 'waiting-for-capacity'
        }, 60_000)
      }
      /** Each job that waits looks once more. */
      const callsOfOneLook = async (): Promise<number> => {
        const before = new Map(
          (await readLine(store)).waiters.map(({ jobId, seenAtMs }) => [jobId, seenAtMs]),
        )
        const calls = world.callsOf('offers').length
        for (const jobId of before.keys()) await wakeThrough(deployment.client)(jobId)
        await until(async () => {
          const { waiters } = await readLine(store)
          return waiters.every(({ jobId, seenAtMs }) => seenAtMs > before.get(jobId)!)
        }, 60_000)
        expect((await readLine(store)).waiters).toHaveLength(submitted.length - 1)
        return world.callsOf('offers').length - calls
      }
      for (let count = 0; count < 3; count++) await submit()
      expect(await callsOfOneLook()).toBeLessThanOrEqual(1)
      for (let count = 0; count < MORE_WAITING; count++) await submit()
      expect(await callsOfOneLook()).toBeLessThanOrEqual(1)
    }),
    180_000,
  )
})

describe('jobs with unequal wishes', () => {
  itInAll(
    'lose no attempt to a race for the one slot of this machine, and each gets it',
    async () => {
      const deployment = await CloudDeployment.start(at, {
        settings: { CRUCIBLE_BACKENDS: 'local', CRUCIBLE_LOCAL_SLOTS: '1' },
      })
      try {
        const wishes = [{}, { cpus: { min: 1 } }, { memoryGiB: { min: 0.1 } }]
        const ids = await Promise.all(
          [...wishes, ...wishes, ...wishes].map((resources, index) =>
            deployment.submit({ run: 'sleep 0.2', name: `racer-${index}`, resources }),
          ),
        )
        const jobs: JobView[] = []
        for (const id of ids) jobs.push(await deployment.ended(id))
        expect(jobs.map(({ state, attemptsTotal }) => [state, attemptsTotal])).toEqual(
          jobs.map(() => ['succeeded', 1]),
        )
      } finally {
        await deployment.stop()
      }
    },
    240_000,
  )
})
