import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CancelledFailure } from '@temporalio/activity'
import { ActivityCancellationDetails } from '@temporalio/common'
import { WatchLoop } from '../../../activities/watch/loop'
import { createWatchActivities } from '../../../activities/watch/activities'
import type { WatchInput, WatchOutcome } from '../../../core/activities'
import { DAY_MS } from '../../../core/time/time'
import { until } from '../../support/until'
import { Place, QUICK, surroundings } from '../place'

const LONG = { startToCloseTimeoutMs: 3_650 * DAY_MS }

let place: Place
let loop: WatchLoop
let watch: (input: WatchInput) => Promise<WatchOutcome>

beforeEach(async () => {
  place = await Place.make()
  loop = new WatchLoop(place.backend, place.store, place.now, place.now)
  const activities = createWatchActivities(loop)
  watch = (watched) => activities.watch(watched)
})
afterEach(() => place.dispose())

const input = (observeMs = 600_000): WatchInput => ({
  ...place.launched(),
  timing: { ...QUICK, observeMs },
  isRunning: false,
})

describe('a watch', () => {
  it('ends as cancelled at once when it is asked to, in the middle of a pause', async () => {
    const env = surroundings(LONG)
    const watching = env.run(watch, input())
    await until(() => place.world.callsOf('observe').length > 0)
    env.cancel()
    await expect(watching).rejects.toBeInstanceOf(CancelledFailure)
    expect(loop.size).toBe(0)
  })

  it('is handed over at once when its worker goes, and the next one continues from the store', async () => {
    const env = surroundings(LONG)
    const watched = { ...input(5), isRunning: true }
    await place.beat(watched.order)
    const first = env.run(watch, watched)
    await until(
      async () => (await place.store.head(`jobs/${watched.order.jobId}/attempts/1/lease.json`)) !== undefined,
    )
    env.cancel('WORKER_SHUTDOWN', new ActivityCancellationDetails({ workerShutdown: true }))
    await expect(first).rejects.toMatchObject({ type: 'transient', nonRetryable: false })
    await place.result(watched.order, { outcome: 'stopped', reason: 'lease' })
    expect(await surroundings({ ...LONG, attempt: 2 }).run(watch, watched)).toEqual({
      kind: 'over',
      end: { kind: 'stopped', by: 'lease' },
    })
  })

  it('shares the looks of its worker with all the others', async () => {
    const envs = Array.from({ length: 20 }, () => surroundings(LONG))
    const watching = envs.map((env) => env.run(watch, input()))
    await until(() => place.world.callsOf('observe').some(({ attemptIds }) => attemptIds.length === 20))
    expect(place.world.callsOf('observe').length).toBeLessThan(20)
    for (const env of envs) env.cancel()
    await Promise.allSettled(watching)
  })
})
