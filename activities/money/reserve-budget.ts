import { Context } from '@temporalio/activity'
import { BackendError } from '../../backends/errors'
import type { JobSpec } from '../../core/job/job'
import type { JobInput } from '../../core/messages'
import { formatUsd } from '../../core/money/money'
import type { PlanReport } from '../../core/job/plan'
import { monthOf } from '../../core/money/treasury'
import type { Treasury } from './treasury'

/** Factor on the planned cost for the suggested budget: a job stopped shortly before its end has wasted its money. */
const ADVISED_BUDGET_FACTOR = 1.5

/** Reserves the job's budget, if months or owners have budgets: returns the month. */
export async function reserveBudget(
  treasury: Pick<Treasury, 'promise'> | undefined,
  { jobId, owner }: JobInput,
  { spec, preview, signal }: { spec: JobSpec; preview: () => Promise<PlanReport>; signal: AbortSignal },
): Promise<string | undefined> {
  if (treasury === undefined) return undefined
  const { budgetMicroUsd } = spec
  if (budgetMicroUsd === undefined) throw lacksBudget(await preview().catch(() => undefined))
  // The month is the same for every try.
  const month = monthOf(Context.current().info.scheduledTimestampMs)
  await treasury.promise({ jobId, owner, month, microUsd: budgetMicroUsd }, signal)
  return month
}

function lacksBudget(plan: PlanReport | undefined): BackendError {
  const [best] = plan?.placements ?? []
  const advised = best === undefined ? '$20' : formatUsd(best.costMicroUsd * ADVISED_BUDGET_FACTOR)
  const expected = best === undefined ? '' : `; the plan expects it to cost ${formatUsd(best.costMicroUsd)}`
  return new BackendError({
    class: 'invalid',
    message: 'This deployment limits spending per month or owner, so every job needs a budget.',
    hint: `Set one, such as budget: ${advised}${expected}.`,
  })
}
