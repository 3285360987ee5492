import type { Command } from 'commander'
import { findOpenJob } from '../../../client/job/find-open'
import { migrate } from '../../../client/updates'
import type { BackendChoice } from '../../../core/offer'
import { backendArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description('Move a running job: it saves, stops, and resumes from its checkpoint on another machine.')
    .argument('<job>', 'id, beginning of an id, or name')
    .option(
      '--to <backend>',
      'target backend, such as local or local:on-demand (default: the best other place)',
      backendArgument,
    )
    .addHelpText(
      'after',
      examples(
        ['crucible migrate char-lm', 'to the best other place'],
        ['crucible migrate job-3f --to local:on-demand', 'off a spot machine'],
      ),
    )
    .action((job: string, options: { to?: BackendChoice }) => run(cli, job, options.to))
}

async function run(cli: Cli, meant: string, to: BackendChoice | undefined): Promise<void> {
  const context = cli.context()
  const id = await findOpenJob(context, meant)
  const { message } = await migrate(context, id, to === undefined ? {} : { to })
  cli.out.json({ id, message })
  cli.out.line(`${id}: ${message}`)
}
