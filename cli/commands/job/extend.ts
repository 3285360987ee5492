import type { Command } from 'commander'
import { isCoded } from '../../../core/errors'
import { CrucibleError } from '../../../client/errors'
import { findOpenJob } from '../../../client/job/find-open'
import { extend } from '../../../client/updates'
import type { ExtendUpdate } from '../../../core/messages'
import { defined } from '../../../core/defined'
import type { Deadline } from '../../../intake/units'
import type { Cli } from '../../cli'
import { instantFor } from '../../kit/arguments'
import { examples } from '../../examples'
import type * as jobFile from '../../../client/job/file'
interface Options {
  deadline?: string
  budget?: string
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Give a job a new deadline, a new budget, or both. A running machine applies it within seconds.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--deadline <when>', 'deadline: 36h from now, or a time with its zone')
    .option('--budget <dollars>', 'total cost limit, including what is already spent')
    .addHelpText(
      'after',
      examples(
        ['crucible extend char-lm --deadline 12h', 'twelve hours from now'],
        ['crucible extend job-3f --budget 40', 'up to $40 in total'],
      ),
    )
    .action((job: string, options: Options) => run(cli, job, options))
}

async function run(cli: Cli, meant: string, options: Options): Promise<void> {
  const { until, budgetMicroUsd } = limitsOf(options)
  const context = cli.context()
  const id = await findOpenJob(context, meant)
  const update = { deadlineAtMs: until && (await instantFor(cli, until)), budgetMicroUsd }
  const { message } = await extend(context, id, update)
  cli.out.json({ id, message, ...update })
  cli.out.line(`${id}: ${message}`)
}

function limitsOf({
  deadline,
  budget,
}: Options): Pick<ExtendUpdate, 'budgetMicroUsd'> & { until?: Deadline } {
  if (deadline === undefined && budget === undefined) {
    throw new CrucibleError('usage', 'Nothing to extend.', {
      hint: 'Pass --deadline, --budget, or both.',
    })
  }
  const { parseDeadline, parseMoney } = require('../../../client/job/file') as typeof jobFile
  return defined({
    until: deadline === undefined ? undefined : read('--deadline', () => parseDeadline(deadline)),
    budgetMicroUsd: budget === undefined ? undefined : read('--budget', () => parseMoney(budget)),
  })
}

function read<T>(flag: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!isCoded(error, 'unit')) throw error
    const { message, remedy } = error
    throw new CrucibleError('usage', `${flag} ${message}.`, {
      hint: `${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}.`,
    })
  }
}
