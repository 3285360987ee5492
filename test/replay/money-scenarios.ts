import { microUsd } from '../../core/money/money'
import { treasuryWorkflowId } from '../../core/queues'
import { monthOf } from '../../core/money/treasury'
import type { Deployment, WorldWishes } from '../workflows/harness'
import { played } from './playing'
import type { Scenario } from './scenario'

const MONTHLY: WorldWishes = { monthly: { monthMicroUsd: microUsd(1_000), owners: {} } }
const LONG: WorldWishes = { ...MONTHLY, behave: () => ({ stepsTotal: 10_000 }) }

/** The treasury never ends on its own. */
const treasuryOf =
  (play: Scenario['play']): Scenario['play'] =>
  async (d) => {
    await play(d)
    const treasury = treasuryWorkflowId(monthOf(Date.now()))
    await d.client.workflow.getHandle(treasury).terminate('recorded')
    return treasury
  }

const beyondMonth = (d: Deployment): Promise<string> => played(d, { budgetMicroUsd: microUsd(1_001) })

/** Asks for a larger budget while the job runs, then cancels it. */
const extendedTo =
  (usd: number) =>
  (d: Deployment): Promise<string> =>
    played(d, { budgetMicroUsd: microUsd(500) }, async (job) => {
      await job
        .executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(usd) }] })
        .catch((error: unknown) => error)
      await job.cancel()
    })

export const MONEY_SCENARIOS: readonly Scenario[] = [
  {
    name: 'treasury.promised-and-settled',
    wishes: MONTHLY,
    play: treasuryOf((d) => played(d, { budgetMicroUsd: microUsd(500) })),
  },
  { name: 'job.refused-by-month', wishes: MONTHLY, play: beyondMonth },
  { name: 'treasury.refused', wishes: MONTHLY, play: treasuryOf(beyondMonth) },
  { name: 'job.extension-refused-by-month', wishes: LONG, play: extendedTo(1_100) },
]
