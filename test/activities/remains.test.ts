import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { settleAttempt } from '../../activities/settle/settle'
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

it('what a machine left is ended although its launch was never heard of and it had ended on its own', async () => {
  const { backend, store } = h
  const order = await h.order({ run: 'true' })
  await backend.launch(order, patiently())
  await until(async () => (await backend.find(order.attemptId, patiently())).kind === 'absent')
  expect(await backend.list(order.deployment, patiently())).toHaveLength(1)
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
      maskSecrets: async (_jobId, text) => text,
    },
    input,
    patiently().signal,
  )
  expect(await backend.list(order.deployment, patiently())).toEqual([])
})
