import { RETRY_SIGNAL } from '../../core/messages'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { SPOT, statusOf, type Deployment } from '../workflows/harness'
import { ATTEMPT, closed, ofAttempt, paused, played, SECOND_ATTEMPT } from './playing'
import type { Scenario } from './scenario'

/** No worker takes the launch of the second attempt until that waited for two minutes. */
async function unserved(d: Deployment, { isOrderSent = false } = {}): Promise<string> {
  const job = await paused(d)
  await d.stop('verbs')
  if (isOrderSent) await d.store.put(layout.order('job-test', 2), '{}')
  const attempt = d.client.workflow.getHandle(SECOND_ATTEMPT)
  await attempt.signal(RETRY_SIGNAL)
  const drain = layout.drain('job-test', 2)
  await until(async () => (await d.store.head(drain)) !== undefined, 180_000)
  await d.start('verbs')
  return closed(job)
}

const ofSecondAttempt =
  (play: Scenario['play']): Scenario['play'] =>
  async (d) => {
    await play(d)
    return SECOND_ATTEMPT
  }

export const CAPACITY_SCENARIOS: readonly Scenario[] = [
  {
    name: 'attempt.launched-in-turn',
    wishes: { capabilities: { pace: { launchesPerMinute: 600 } } },
    play: ofAttempt((d) => played(d)),
  },
  {
    name: 'attempt.called-off-before-its-turn',
    wishes: {
      capabilities: { pace: { launchesPerMinute: 0.2 } },
      behave: () => ({ stepsTotal: 10_000 }),
    },
    play: async (d) => {
      await d.submit({}, { jobId: 'job-first' })
      await until(() => d.world.machines.length === 1)
      const job = await d.submit()
      await until(async () => (await statusOf(job)).attemptsTotal === 1)
      await job.cancel()
      await closed(job)
      return ATTEMPT
    },
  },
  { name: 'attempt.unserved', play: ofSecondAttempt((d) => unserved(d)) },
  {
    name: 'attempt.unserved-though-sent',
    play: ofSecondAttempt((d) => unserved(d, { isOrderSent: true })),
  },
  {
    name: 'job.deadline-while-waiting',
    wishes: { wares: [{ ...SPOT, stock: 0 }] },
    play: async (d) => {
      const job = await d.submit({ deadlineAtMs: Date.now() + 8_000 })
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      return closed(job)
    },
  },
]
