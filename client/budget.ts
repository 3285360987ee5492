import { TREASURY_QUERY } from '../core/messages'
import { treasuryWorkflowId } from '../core/queues'
import { emptyTreasury, viewOf, type TreasuryState, type TreasuryView } from '../core/money/treasury'
import type { Context } from './context'
import { checkSameDeployment } from './deployment'
import { CrucibleError, isTemporals } from './errors'

/** Budget and spending of a month (`2026-11`); empty for a month without jobs. */
export async function budgetOf(context: Context, month: string): Promise<TreasuryView> {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month))
    throw new CrucibleError('usage', `${month} is not a month.`, { hint: 'Write one such as 2026-11.' })
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  try {
    const handle = client.workflow.getHandle(treasuryWorkflowId(month))
    return viewOf(await handle.query<TreasuryState>(TREASURY_QUERY))
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return viewOf(emptyTreasury(month))
    throw error
  }
}
