import { TREASURY_QUERY } from '../core/messages'
import { treasuryWorkflowId } from '../core/queues'
import { emptyTreasury, viewOf, type TreasuryState, type TreasuryView } from '../core/treasury'
import type { Context } from './context'
import { checkSameDeployment } from './deployment'
import { CrucibleError, isTemporals } from './errors'

/** How the money of a month stands (`2026-11`); of a month in which no job was given any, nothing. */
export async function budgetOf(context: Context, month: string): Promise<TreasuryView> {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month))
    throw new CrucibleError('usage', `${month} is no month.`, { hint: 'Write one such as 2026-11.' })
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
