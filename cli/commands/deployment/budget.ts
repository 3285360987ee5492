import type { Command } from 'commander'
import { budgetOf } from '../../../client/budget'
import { formatUsd, type MicroUsd } from '../../../core/money/money'
import { monthOf, type Account } from '../../../core/money/treasury'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { tellGaps } from '../../kit/gaps'
import { NOTHING, plural } from '../../kit/words'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Show the budget of a month, what is spent, and what is reserved for open jobs: in total and for each owner ' +
        '(CRUCIBLE_BUDGET_MONTH, CRUCIBLE_BUDGET_OWNER and CRUCIBLE_BUDGET_OWNERS of the workers). ' +
        'Without a budget, the jobs that ended in the month count.',
    )
    .option('--month <month>', 'a month such as 2026-10 (UTC; default: this month)')
    .addHelpText(
      'after',
      examples(
        ['crucible budget', 'this month'],
        ['crucible budget --month 2026-10 --json', 'another month, for a script'],
      ),
    )
    .action((options: { month?: string }) => show(cli, options.month ?? monthOf(cli.now())))
}

async function show(cli: Cli, month: string): Promise<void> {
  const { out } = cli
  const context = cli.context()
  const view = await budgetOf(context, month)
  out.json({ ...view, incomplete: tellGaps(cli, context.gaps) })
  if (view.owners.length === 0) {
    out.line(`No job ended in ${month}, and none has reserved money.`)
    return
  }
  out.table(
    ['OWNER', 'LIMIT', 'SPENT', 'RESERVED', 'LEFT'],
    [
      ...view.owners.map(({ owner, ...account }) => [owner, ...amounts(account)]),
      [out.paint.bold(`total ${month}`), ...amounts(view.total)],
    ],
    { right: ['LIMIT', 'SPENT', 'RESERVED', 'LEFT'], flexible: 'OWNER', optional: ['RESERVED'] },
  )
  const jobs = view.jobs.map(({ jobId, microUsd }) => `${jobId} ${formatUsd(microUsd)}`)
  const purchases = view.reservations.map(
    ({ reservationId, send, microUsd }) => `${reservationId} (purchase ${send}) ${formatUsd(microUsd)}`,
  )
  if (jobs.length + purchases.length > 0) out.line()
  if (jobs.length > 0) out.line(`Reserved for ${plural(jobs.length, 'job')}: ${jobs.join(', ')}.`)
  if (purchases.length > 0)
    out.line(`Reserved for ${plural(purchases.length, 'purchase')} of reservations: ${purchases.join(', ')}.`)
}

function amounts({ limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd }: Account): string[] {
  const words = (amount: MicroUsd | null): string => (amount === null ? NOTHING : formatUsd(amount))
  return [limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd].map(words)
}
