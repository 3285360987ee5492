import { InvalidArgumentError, Option, type Command } from 'commander'
import { costsOf, rebuildCosts, type Costs } from '../../../client/costs'
import { CrucibleError } from '../../../client/errors'
import { COST_GROUPS, isCostGroup, type CostGroup, type CostRow } from '../../../core/money/job-costs'
import { MICRO_USD_PER_USD } from '../../../core/money/money'
import { monthOf } from '../../../core/money/treasury'
import { formatDuration, HOUR_MS } from '../../../core/time/time'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { csvRow } from '../../kit/csv'
import { tellGaps } from '../../kit/gaps'
import { NOTHING, plural, usd } from '../../kit/words'

interface Options {
  by: CostGroup
  month?: string
  owner?: string
  csv?: true
  rebuild?: true
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Show what the jobs that ended have cost: by job, owner, backend, capacity type, month or tag. ON DEMAND is the price of the same machine time on demand, by the offers of their plans.',
    )
    .addOption(
      new Option('--by <group>', `what to add up by: ${COST_GROUPS.join(', ')}, or tag:KEY`)
        .argParser(groupOf)
        .default('job'),
    )
    .option(
      '--month <month>',
      'a month such as 2026-10 (UTC; default: this month, with --by month all of them)',
    )
    .option('--owner <owner>', 'only jobs of this owner')
    .option('--csv', 'print CSV, with costs in dollars and times in hours')
    .option('--rebuild', 'first add jobs that ended before costs were recorded')
    .addHelpText(
      'after',
      examples(
        ['crucible costs', 'the jobs that ended this month'],
        ['crucible costs --by owner --month 2026-10', 'who spent how much in October'],
        ['crucible costs --by tag:project', 'by the tag `project` of their job files'],
        ['crucible costs --by month --csv > costs.csv', 'every month, for a spreadsheet'],
      ),
    )
    .action((options: Options) => show(cli, options))
}

function groupOf(text: string): CostGroup {
  if (isCostGroup(text)) return text
  throw new InvalidArgumentError(`Write one of ${COST_GROUPS.join(', ')}, or tag:KEY.`)
}

async function show(cli: Cli, { by, month, owner, csv, rebuild }: Options): Promise<void> {
  const { out } = cli
  if (csv === true && out.isJson)
    throw new CrucibleError('usage', '--csv and --json exclude each other.', { hint: 'Choose one.' })
  const context = cli.context()
  if (rebuild === true) {
    const { added, open } = await rebuildCosts(context)
    const unknown = open === 0 ? '' : ` ${plural(open, 'job has', 'jobs have')} no recorded end.`
    out.note(`Added the costs of ${plural(added, 'job')}.${unknown}`)
  }
  const wanted = month ?? (by === 'month' ? undefined : monthOf(cli.now()))
  const costs = await costsOf(context, { by, month: wanted, owner })
  const incomplete = tellGaps(cli, context.gaps)
  if (csv === true) return printCsv(cli, costs)
  out.json({ ...costs, incomplete })
  if (costs.rows.length === 0) {
    const when = wanted === undefined ? '' : ` in ${wanted}`
    return out.line(
      cli.asCalled(`No job ended${when}. Jobs of an older version: \`crucible costs --rebuild\`.`),
    )
  }
  const head = [by.toUpperCase(), 'JOBS', 'MACHINE TIME', 'COST', 'ON DEMAND']
  out.table(
    head,
    [
      ...costs.rows.map(cellsOf),
      [out.paint.bold(`total ${wanted ?? ''}`.trimEnd()), ...cellsOf(costs.total).slice(1)],
    ],
    { right: head.slice(1), flexible: head[0]!, optional: ['MACHINE TIME', 'ON DEMAND'] },
  )
}

function cellsOf({ key, jobs, machineMs, costMicroUsd, listMicroUsd }: CostRow): string[] {
  const time = machineMs === 0 ? NOTHING : formatDuration(machineMs)
  return [key, String(jobs), time, usd(costMicroUsd), usd(listMicroUsd)]
}

function printCsv({ out }: Cli, { by, rows }: Costs): void {
  out.line(csvRow([by, 'jobs', 'machine_hours', 'cost_usd', 'on_demand_usd']))
  for (const { key, jobs, machineMs, costMicroUsd, listMicroUsd } of rows) {
    const dollars = (amount: number | null): string =>
      amount === null ? '' : String(amount / MICRO_USD_PER_USD)
    const hours = (machineMs / HOUR_MS).toFixed(4)
    out.line(csvRow([key, String(jobs), hours, dollars(costMicroUsd), dollars(listMicroUsd)]))
  }
}
