import { describeLostAnswers } from '../../activities/lost-answers'
import { Senders } from '../../activities/sending-place'
import { until } from '../../support/until'
import { lostAnswer, refusal } from './fake-gateway'
import { FakeHarness } from './fake-harness'

describeLostAnswers('Modal', async () => {
  const harness = new FakeHarness()
  const { modal, store, backend } = harness
  const lost = new Set<string>()
  const throttled = new Map<string, number>()
  modal.after.set('submit', (key = '') => (lost.delete(key) ? Promise.reject(lostAnswer()) : undefined))
  modal.before.set('submit', (key = '') => {
    const times = throttled.get(key) ?? 0
    throttled.set(key, times - 1)
    return times > 0 ? Promise.reject(refusal(429, 'rate-limited')) : undefined
  })
  return {
    senders: new Senders(store, backend, ({ attemptId }) => until(() => !modal.late.has(attemptId))),
    order: () => harness.order(),
    lose: ({ attemptId }) => void lost.add(attemptId),
    delay: ({ attemptId }) => void modal.late.set(attemptId, 10),
    throttle: ({ attemptId }, times) => void throttled.set(attemptId, times),
    end: ({ attemptId }) => modal.end(attemptId, 'ended', 0),
    machines: () => modal.sandboxes.map(({ key }) => key),
    dispose: () => undefined,
  }
})
