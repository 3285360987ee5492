import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { DefaultLogger } from '@temporalio/worker'
import { createCopyingActivities } from '../../activities/copying'
import type { Client } from '@temporalio/client'
import { createDrainingActivities } from '../../activities/machine/draining'
import { createDecidingActivities } from '../../activities/plan/deciding'
import { WatchLoop } from '../../activities/watch/loop'
import { createPlanningActivities } from '../../activities/plan/planning'
import { createStoreActivities } from '../../activities/garbage/store'
import { createWatchActivities } from '../../activities/watch/activities'
import { Place, QUICK } from './place'

let place: Place
beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => {
  jest.restoreAllMocks()
  return place.dispose()
})

type Activities = Record<string, (input: unknown) => Promise<unknown>>

/** Everything that workers serve. */
function served(): Activities {
  const { store, now, backend } = place
  const owners = async (): Promise<'absent'> => 'absent'
  return {
    ...createPlanningActivities({
      store,
      now,
      backends: ['scripted'],
      timing: QUICK,
      askOffers: () => Promise.reject(new Error('not asked here')),
      publishRunner: async () => 'a'.repeat(64),
    }),
    ...createCopyingActivities({ store, now }),
    ...createDecidingActivities({ client: {} as Client, store, now }),
    ...createDrainingActivities({ client: {} as Client, store, now }),
    ...createStoreActivities({ store, now, owners }),
    ...place.verbs(),
    ...createWatchActivities(new WatchLoop(backend, store, now, now)),
  } as unknown as Activities
}

const NAMES = [
  'resolveJob',
  'plan',
  'previewPlan',
  'planWhenAvailable',
  'copyCheckpoint',
  'decide',
  'drain',
  'stopAttempt',
  'withdraw',
  'extend',
  'admitBudget',
  'promiseBudget',
  'finishJob',
  'collectStoreGarbage',
  'offers',
  'servesLaunches',
  'launch',
  'find',
  'start',
  'drainMachine',
  'interrupt',
  'settle',
  'collectGarbage',
  'watch',
]

describe('every activity', () => {
  it('is in this test', () => {
    expect(Object.keys(served()).sort()).toEqual([...NAMES].sort())
  })

  it.each(NAMES)('beats four times in its timeout, so that a lost worker is noticed: %s', async (name) => {
    const environment = new MockActivityEnvironment(
      {
        activityType: name,
        startToCloseTimeoutMs: 600_000,
        heartbeatTimeoutMs: 20_000,
      },
      { logger: new DefaultLogger('ERROR') },
    )
    const timers = jest.spyOn(globalThis, 'setInterval')
    // Whatever comes of an input that says nothing.
    const done = environment.run(async () => served()[name]!({})).catch(() => undefined)
    environment.cancel('CANCELLED')
    await done
    expect(timers).toHaveBeenCalledWith(expect.any(Function), 5_000)
  })
})
