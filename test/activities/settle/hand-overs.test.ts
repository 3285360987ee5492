import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../backends/backend'
import { BackendError } from '../../../backends/errors'
import type { SettleInput } from '../../../core/activities'
import { sendNameOf } from '../../../core/queues'
import { CLOCK_SLACK_MS } from '../../../core/time/time'
import { listHandOvers } from '../../../storage/hand-overs'
import { layout } from '../../../storage/layout'
import { perform, Place, QUICK } from '../place'

const DOWN = { class: 'transient', message: 'the provider does not answer' } as const

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

/** A settlement of an attempt that knew its machine, after which nothing is waited for. */
const inputOf = (): SettleInput => ({
  ...place.launched(),
  timing: { ...QUICK, powerOffMs: 0 },
  windowMs: 0,
  end: null,
  drainReason: null,
  recordSeq: 4,
})

describe('the hand-overs of an attempt', () => {
  const left = async (): Promise<string[]> => (await listHandOvers(place.store)).map(({ key }) => key)

  it('are deleted at the latest when it is settled, those of no other', async () => {
    const input = inputOf()
    const { jobId, attempt, attemptId } = input.order
    const others = [
      layout.handOver(jobId, attempt + 1, 'next'),
      layout.handOver(`${jobId}0`, attempt, 'other'),
    ]
    for (const seq of [1, 2])
      await place.store.put(layout.handOver(jobId, attempt, sendNameOf(attemptId, seq)), '{}')
    for (const key of others) await place.store.put(key, '{}')
    await perform(place.verbs(), 'settle', input)
    expect((await left()).sort()).toEqual(others.sort())
  })

  it('are deleted although the provider does not answer, once its machine has fenced itself off', async () => {
    const input = inputOf()
    const { jobId, attempt } = input.order
    await place.store.put(layout.handOver(jobId, attempt, 'first'), '{}')
    const backend: Backend = { ...place.backend, find: () => Promise.reject(new BackendError(DOWN)) }
    const { drainMs, leaseMs, startWithinMs } = input.timing
    place.aheadMs = 2 * (startWithinMs + leaseMs + drainMs + CLOCK_SLACK_MS)
    await perform(place.verbs({ backend }), 'settle', input)
    expect(await left()).toEqual([])
  })
})
