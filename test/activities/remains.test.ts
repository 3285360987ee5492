import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { settleAttempt } from '../../activities/settle/settle'
import { shareLooks } from '../../activities/settle/shared-looks'
import type { Order } from '../../core/job/plan'
import { Ages } from '../../core/time/ages'
import { patiently } from '../backends/harness'
import { LocalHarness } from '../backends/local/harness'
import { STAND_IN } from '../backends/local/runners'
import { until } from '../support/until'
import { QUICK } from './place'

let h: LocalHarness

beforeEach(async () => {
  h = await LocalHarness.make(STAND_IN)
})
afterEach(() => h.dispose())

/** An attempt whose machine has ended on its own, and has left its folder. */
async function ended(wanted: { jobId?: string; attempt?: number } = {}): Promise<Order> {
  const { backend } = h
  const order = await h.order({ run: 'true', ...wanted })
  await backend.launch(order, patiently())
  await until(async () => (await backend.find(order.attemptId, patiently())).kind === 'absent')
  return order
}

const listed = async ({ deployment }: Order): Promise<string[]> =>
  (await h.backend.list(deployment, patiently())).map(({ owner }) => owner.attemptId)

it('what a machine left is ended although its launch was never heard of and it had ended on its own', async () => {
  const { backend, store } = h
  const order = await ended()
  const others = [await ended({ jobId: order.jobId, attempt: 2 }), await ended()]
  const ofOthers = others.map(({ attemptId }) => attemptId).sort()
  expect((await listed(order)).sort()).toEqual([order.attemptId, ...ofOthers].sort())
  const input = {
    order,
    timing: QUICK,
    windowMs: 0,
    handle: null,
    end: null,
    drainReason: null,
    recordSeq: 9,
  }
  await settleAttempt(
    {
      backend,
      store,
      now: Date.now,
      monotonicMs: () => performance.now(),
      looks: shareLooks(backend, () => performance.now()),
      ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
      maskSecrets: async (_jobId, text) => text,
    },
    input,
    patiently().signal,
  )
  // Another attempt of the job, and another job, keep theirs.
  expect((await listed(order)).sort()).toEqual(ofOthers)
})
