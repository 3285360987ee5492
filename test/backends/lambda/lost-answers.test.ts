import { createBackendOver } from '../../../backends/lambda'
import type { LaunchRequest } from '../../../backends/lambda/api'
import { TAGS } from '../../../backends/lambda/machines'
import { describeLostAnswers } from '../../activities/lost-answers'
import { Senders } from '../../activities/sending-place'
import { lostAnswer, refusal } from './fake-api'
import { CONFIG, LambdaHarness } from './harness'

describeLostAnswers('Lambda', async () => {
  const harness = new LambdaHarness()
  const { lambda, store, deps } = harness
  lambda.stock = Infinity
  // Machines without a bootstrap: only their number counts.
  lambda.onLaunch = () => undefined
  const backend = createBackendOver(lambda.open, { ...CONFIG, staleForMs: 0 }, deps)
  const lost = new Set<string>()
  const late = new Set<string>()
  const throttled = new Map<string, number>()
  lambda.before.set('launch', (name = '') => {
    const times = throttled.get(name) ?? 0
    throttled.set(name, times - 1)
    return times > 0 ? Promise.reject(refusal(429, 'global/rate-limit-exceeded')) : undefined
  })
  lambda.after.set('launch', (name = '') => {
    // Lists show its machine some time after the answer was lost.
    if (late.delete(name)) {
      const { id } = machineOf(name)
      lambda.hidden.add(id)
      setTimeout(() => lambda.hidden.delete(id), 10)
      return Promise.reject(lostAnswer())
    }
    return lost.delete(name) ? Promise.reject(lostAnswer()) : undefined
  })
  const nameOf = ({ tags }: Pick<LaunchRequest, 'tags'>): string =>
    tags.find(({ key }) => key === TAGS.attempt)?.value ?? ''
  const machineOf = (name: string): (typeof lambda.instances)[number] =>
    lambda.instances.find((one) => nameOf(one) === name)!
  return {
    senders: new Senders(store, backend),
    order: () => harness.order(),
    lose: ({ attemptId }) => void lost.add(attemptId),
    delay: ({ attemptId }) => void late.add(attemptId),
    throttle: ({ attemptId }, times) => void throttled.set(attemptId, times),
    end: ({ attemptId }) => lambda.end(machineOf(attemptId), 'terminated'),
    machines: () => [...lambda.instances, ...lambda.ended].map(nameOf),
    dispose: () => undefined,
  }
})
