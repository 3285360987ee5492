import { TREASURY_QUERY } from '../core/messages'
import { treasuryWorkflowId } from '../core/queues'
import { emptyTreasury, viewOf, type TreasuryState, type TreasuryView } from '../core/money/treasury'
import { plural } from '../core/plural'
import { readJobCosts } from '../storage/job-costs'
import type { Context } from './context'
import { checkSameDeployment } from './deployment'
import { CrucibleError, isTemporals } from './errors'

/**
 * Budget and spending of a month (`2026-11`); empty for a month without jobs. Jobs whose month has no budget reserve nothing; their
 * spending comes from their costs.
 */
export async function budgetOf(context: Context, month: string): Promise<TreasuryView> {
  checkMonth(month)
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  const [treasury, { costs, unreadable }] = await Promise.all([
    client.workflow
      .getHandle(treasuryWorkflowId(month))
      .query<TreasuryState>(TREASURY_QUERY)
      .catch((error: unknown) => {
        if (isTemporals(error, 'WorkflowNotFoundError')) return undefined
        throw error
      }),
    readJobCosts(context.store, month),
  ])
  context.gaps.push(...costGaps(unreadable))
  const state = treasury ?? emptyTreasury(month)
  const spent = { ...state.spent }
  for (const { owner, costMicroUsd, budgetMonth } of costs)
    if (treasury === undefined || budgetMonth === undefined) spent[owner] = (spent[owner] ?? 0) + costMicroUsd
  return withLeft(viewOf({ ...state, spent }), viewOf(state))
}

/** Says how many jobs' costs are missing in a sum, and one of their documents. */
export function costGaps(unreadable: readonly string[]): string[] {
  const [first] = unreadable
  if (first === undefined) return []
  return [`Without the costs of ${plural(unreadable.length, 'job')}, whose document is damaged: ${first}.`]
}

/** Money that was never reserved does not count against a limit. */
function withLeft(view: TreasuryView, reserved: TreasuryView): TreasuryView {
  const owners = view.owners.map((account) => {
    const counted = reserved.owners.find(({ owner }) => owner === account.owner)
    return { ...account, leftMicroUsd: counted === undefined ? account.limitMicroUsd : counted.leftMicroUsd }
  })
  return { ...view, owners, total: { ...view.total, leftMicroUsd: reserved.total.leftMicroUsd } }
}

/** Throws `usage` for a text that is not a month. */
export function checkMonth(month: string): void {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month))
    throw new CrucibleError('usage', `${month} is not a month.`, { hint: 'Write one such as 2026-11.' })
}
