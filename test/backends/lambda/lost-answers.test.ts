import { describeLostAnswers } from '../../activities/lost-answers'
import { Senders } from '../../activities/sending-place'
import { patient } from '../../support/patience'
import { LambdaHarness } from './harness'

describeLostAnswers('Lambda', async () => {
  const h = await LambdaHarness.make({
    // Lists show each machine some time after its launch.
    world: { durations: { notFound: 10 }, lambda: { stock: [], quota: 2_000 } },
    config: { staleForMs: 50 },
    isOnPaper: true,
  })
  const launchOf = (attemptId: string) =>
    ({ service: 'lambda', action: 'launch', parameters: `*${attemptId}*` }) as const
  const lose = ({ attemptId }: { attemptId: string }): void =>
    void h.cloud.addFault({ fault: 'lost-answer', times: 1, where: launchOf(attemptId) })
  return {
    senders: new Senders(h.store, h.backend, undefined, patient(5_000)),
    order: () => h.order(),
    lose,
    delay: lose,
    throttle: ({ attemptId }, times) => {
      const code = 'global/rate-limit-exceeded'
      h.cloud.addFault({ fault: 'error', code, status: 429, times, where: launchOf(attemptId) })
    },
    end: ({ attemptId }) => h.cloud.interrupt(h.instancesOf(attemptId)[0]!.id),
    machines: () => h.cloud.instances().map(({ tags }) => tags['crucible:attempt']!),
    dispose: () => h.dispose(),
  }
})
