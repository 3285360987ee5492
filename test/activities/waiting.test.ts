import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { received } from '../../activities/plan/sent-answer'
import { createPlanningActivities } from '../../activities/plan/planning'
import type { PlanInput } from '../../core/activities'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { offerKey } from '../../core/offer'
import { perform, Place, QUICK } from './place'

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

/** A question asked for the second time, this long after it was first asked, about the only offer. */
function askAfter(waitedMs: number): Promise<unknown> {
  const input: PlanInput = {
    jobId: 'job-a',
    deployment: 'dep-0123456789',
    recordSeq: 2,
    attempt: 2,
    bundle: null,
    resolved: {
      spec: {
        name: 'train',
        run: 'train',
        inputs: [],
        resources: {},
        isInterruptible: true,
        checkpoint: {},
        backends: [],
        optimize: 'cost',
        retries: { failures: 0, interruptions: 1 },
        env: {},
        secrets: [],
        outputs: [],
      },
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
      timing: QUICK,
      runnerSha256: 'a'.repeat(64),
      storeUrl: place.store.url,
    },
    ledger: EMPTY_LEDGER,
    avoid: place.world
      .offers({})
      .map((offer) => ({ offerKey: offerKey(offer), forMs: 60_000, why: 'capacity' as const })),
  }
  const planning = createPlanningActivities({
    store: place.store,
    backends: ['scripted'],
    now: place.now,
    timing: QUICK,
    askOffers: async (_backend, request) => received(await perform(place.verbs(), 'offers', { request })),
    publishRunner: () => Promise.resolve('a'.repeat(64)),
  })
  const scheduledTimestampMs = place.now() - waitedMs
  return perform(planning, 'planWhenAvailable', input, { attempt: 2, scheduledTimestampMs })
}

describe('a job that waits for a machine', () => {
  it('leaves an offer alone that had none a moment ago', async () => {
    await expect(askAfter(30_000)).rejects.toMatchObject({ type: 'capacity' })
  })

  it('takes the offer once it has waited as long as it was to be left alone', async () => {
    expect(await askAfter(60_000)).toMatchObject({ kind: 'place' })
  })
})
