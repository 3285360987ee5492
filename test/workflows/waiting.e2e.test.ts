import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { runQueue } from '../bench/queue'
import { connectTo, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { LONG, SPOT, type JobHandle, statusOf, worldsOn } from './harness'

let at: TestConnection
beforeAll(async () => {
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const ONE = { wares: [{ ...SPOT, stock: 1 }] }

describe('jobs with equal wishes', () => {
  it('take the slots of this machine oldest first, and lose no attempt to a race', async () => {
    const { jobs, overtaken, attempts } = await runQueue(at, 12, 1_000)
    expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => 'succeeded'))
    expect(overtaken).toBe(0)
    expect(attempts).toBe(12)
  }, 240_000)

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
})
