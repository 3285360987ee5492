import type { Command } from 'commander'
import { budgetOf } from '../../client/budget'
import { formatUsd, type MicroUsd } from '../../core/money'
import { monthOf, type Account } from '../../core/treasury'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { NOTHING, plural } from '../words'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'What a month may cost, what is spent of it, and what is promised to jobs that are not over: of all owners, and of each ' +
        '(CRUCIBLE_BUDGET_MONTH, CRUCIBLE_BUDGET_OWNER and CRUCIBLE_BUDGET_OWNERS of the workers).',
    )
    .option('--month <month>', 'another month than this one, such as 2026-10 (UTC)')
    .addHelpText(
      'after',
      examples(
        ['crucible budget', 'this month'],
        ['crucible budget --month 2026-10 --json', 'another, for a script'],
      ),
    )
    .action((options: { month?: string }) => show(cli, options.month ?? monthOf(cli.now())))
}

async function show(cli: Cli, month: string): Promise<void> {
  const { out } = cli
  const view = await budgetOf(cli.context(), month)
  out.json(view)
  if (view.owners.length === 0) {
    out.line(
      `No job has asked for money in ${month}: there are no budgets of months or owners (CRUCIBLE_BUDGET_MONTH, CRUCIBLE_BUDGET_OWNER), or no jobs.`,
    )
    return
  }
  out.table(
    ['OWNER', 'LIMIT', 'SPENT', 'PROMISED', 'LEFT'],
    [
      ...view.owners.map(({ owner, ...account }) => [owner, ...amounts(account)]),
      [out.paint.bold(`all of ${month}`), ...amounts(view.total)],
    ],
    { right: ['LIMIT', 'SPENT', 'PROMISED', 'LEFT'], flexible: 'OWNER' },
  )
  if (view.jobs.length > 0) {
    const jobs = view.jobs.map(({ jobId, microUsd }) => `${jobId} ${formatUsd(microUsd)}`)
    out.line()
    out.line(`Promised to ${plural(view.jobs.length, 'job')}: ${jobs.join(', ')}.`)
  }
}

function amounts({ limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd }: Account): string[] {
  const words = (amount: MicroUsd | null): string => (amount === null ? NOTHING : formatUsd(amount))
  return [limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd].map(words)
}
