import { Context } from '@temporalio/activity'
import { BackendError } from '../backends/errors'
import type { JobSpec } from '../core/job'
import type { JobInput } from '../core/messages'
import { formatUsd } from '../core/money'
import type { Plan } from '../core/plan'
import { monthOf } from '../core/treasury'
import type { Treasury } from './treasury'

/** Of what a plan expects, so much is advised: a job that is stopped a little before its end has cost as much for nothing. */
const ADVISED_BUDGET_FACTOR = 1.5

/** Has the job's budget promised, where months and owners have some: out of which month. */
export async function promisedFrom(
  treasury: Pick<Treasury, 'promise'> | undefined,
  { jobId, owner }: JobInput,
  { spec, preview }: { spec: JobSpec; preview: () => Promise<Plan> },
): Promise<string | undefined> {
  if (treasury === undefined) return undefined
  const { budgetMicroUsd } = spec
  if (budgetMicroUsd === undefined) throw lacksBudget(await preview().catch(() => undefined))
  // The same for every try.
  const month = monthOf(Context.current().info.scheduledTimestampMs)
  await treasury.promise({ jobId, owner, month, microUsd: budgetMicroUsd })
  return month
}

function lacksBudget(plan: Plan | undefined): BackendError {
  const [best] = plan?.placements ?? []
  const advised = best === undefined ? '$20' : formatUsd(best.costMicroUsd * ADVISED_BUDGET_FACTOR)
  const expected = best === undefined ? '' : `; the plan expects it to cost ${formatUsd(best.costMicroUsd)}`
  return new BackendError({
    class: 'invalid',
    message: 'This deployment has budgets for months or owners, so every job needs one of its own.',
    hint: `Write how much it may cost, such as budget: ${advised}${expected}.`,
  })
}
