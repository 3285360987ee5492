/**
 * An account that allows only so many launches per minute, with two workers that share it: real servers, whose rate limit for a task queue
 * alone would let through bursts.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { offersThroughWorkers } from '../../workers/offers'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { Deployment, LONG, statusOf, type JobHandle, type WorldWishes } from './harness'
import { ended, TEST_LIMIT_MS } from './looks'

jest.setTimeout(2 * TEST_LIMIT_MS)

let at: TestConnection
let other: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  other = await connectTo()
})
afterAll(async () => {
  await other.close()
  await at.close()
})

const paced = (launchesPerMinute: number, wishes: WorldWishes = {}): WorldWishes => ({
  capabilities: { idempotency: 'tag', billsUntil: 'terminate', pace: { launchesPerMinute } },
  ...wishes,
})

/** The most launches that any minute had, or the share of one that stands for it. */
function mostWithin(times: readonly number[], windowMs: number): number {
  return Math.max(
    ...times.map((from) => times.filter((atMs) => atMs >= from && atMs < from + windowMs).length),
  )
}

describe('an account that allows only so many launches per minute', () => {
  // With 6 per minute, the last of them waits for three minutes, which is longer than an unserved launch may wait.
  it.each(chosen([60, 6], [60]))(
    'keeps its limit over two workers, and none of twenty waiting jobs is given up (%d)',
    async (perMinute) => {
      const deployment = await Deployment.start(at, paced(perMinute, { behave: () => ({ stepsTotal: 10 }) }))
      const second = deployment.beside(other)
      try {
        await second.startBackend()
        const ids = Array.from({ length: 20 }, (_, index) => `job-${index}`)
        const jobs = await Promise.all(ids.map((jobId) => deployment.submit({}, { jobId })))
        const results = await Promise.all(jobs.map((job) => job.result()))
        expect(results.map(({ state, attempts }) => `${state} ${attempts}`)).toEqual(
          Array(20).fill('succeeded 1'),
        )
        const times = deployment.world.callsOf('launch').map(({ atMs }) => atMs)
        expect(times).toHaveLength(20)
        expect(deployment.world.machines).toHaveLength(20)
        // The server dispatches one each interval. A first call that begins late is nearer to the others, so one interval is left out.
        expect(mostWithin(times, (9 / perMinute) * MINUTE_MS)).toBeLessThanOrEqual(10)
      } finally {
        await second.close()
        await deployment.close()
      }
    },
    patient(8 * MINUTE_MS),
  )

  it('delays neither a plan nor the end of a machine while launches wait', async () => {
    const deployment = await Deployment.start(at, paced(1, { behave: () => LONG }))
    try {
      const first = await deployment.submit({}, { jobId: 'job-first' })
      await until(() => deployment.world.machines[0]?.state === 'running')
      const waiting: JobHandle[] = []
      for (let index = 0; index < 20; index++)
        waiting.push(await deployment.submit({}, { jobId: `job-${index}` }))
      await until(async () => (await statusOf(waiting.at(-1)!)).state === 'provisioning')
      const askedAtMs = Date.now()
      await offersThroughWorkers(deployment.client, Date.now)('scripted', {})
      expect(Date.now() - askedAtMs).toBeLessThan(patient(2 * SECOND_MS))
      await first.cancel()
      const cancelledAtMs = Date.now()
      await ended(first)
      expect(Date.now() - cancelledAtMs).toBeLessThan(patient(10 * SECOND_MS))
      expect(deployment.world.machines[0]!.state).toBe('gone')
      const states = await Promise.all(waiting.map(async (job) => (await statusOf(job)).attemptsTotal))
      expect(states).toEqual(Array(20).fill(1))
    } finally {
      await deployment.close()
    }
  })

  it('takes a job that is cancelled while its launch waits out of the queue, and buys nothing for it', async () => {
    const deployment = await Deployment.start(at, paced(0.2, { behave: () => LONG }))
    try {
      await deployment.submit({}, { jobId: 'job-first' })
      await until(() => deployment.world.machines.length === 1)
      const second = await deployment.submit({}, { jobId: 'job-second' })
      await until(async () => (await statusOf(second)).attemptsTotal === 1)
      await second.cancel()
      expect((await ended(second)).status).toBe('CANCELLED')
      expect(await deployment.store.head(layout.order('job-second', 1))).toBeUndefined()
      expect(deployment.world.callsOf('launch')).toHaveLength(1)
      expect((await statusOf(second)).attempts).toMatchObject([{ state: 'stopped', costMicroUsd: 0 }])
    } finally {
      await deployment.close()
    }
  })
})
