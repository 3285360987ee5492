import { describeLostAnswers } from '../../activities/lost-answers'
import { Senders } from '../../activities/sending-place'
import { patient } from '../../support/patience'
import { until } from '../../support/until'
import { ModalHarness } from './harness'

describeLostAnswers('Modal', async () => {
  const h = await ModalHarness.make({ isOnPaper: true })
  const late = new Set<string>()
  const putOf = (attemptId: string): string => `^PUT .*/${attemptId}-test$`
  const isThere = (attemptId: string): boolean => h.sendsOf(attemptId).length > 0
  const untilEffect = ({ attemptId }: { attemptId: string }): Promise<void> =>
    until(() => !late.has(attemptId) || isThere(attemptId))
  return {
    senders: new Senders(h.store, h.backend, untilEffect, patient(5_000)),
    order: () => h.order(),
    lose: ({ attemptId }) => h.fail({ kind: 'lost-answer' }, putOf(attemptId), 1),
    delay: ({ attemptId }) => {
      late.add(attemptId)
      h.fail({ kind: 'late', afterMs: 10 }, putOf(attemptId), 1)
    },
    throttle: ({ attemptId }, times) =>
      h.fail({ kind: 'answer', status: 429, body: 'slow down' }, putOf(attemptId), times),
    end: ({ token }) => h.cloud.interrupt(token),
    machines: () => h.cloud.instances().map(({ tags }) => tags['key']!.replace(/-test$/, '')),
    dispose: () => h.dispose(),
  }
})
