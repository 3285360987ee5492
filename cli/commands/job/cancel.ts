import type { Command } from 'commander'
import { findOpenJob } from '../../../client/job/find-open'
import { cancel } from '../../../client/updates'
import type { Cli } from '../../cli'
import { examples } from '../../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Ask a job to save and stop, then end its machine. Its checkpoints are kept: `submit --from` resumes them in a new job.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--now', 'allow seconds instead of minutes for saving')
    .addHelpText(
      'after',
      examples(
        ['crucible cancel char-lm', 'save, then stop'],
        ['crucible cancel --now job-3f', 'stop within seconds'],
      ),
    )
    .action((job: string, options: { now?: boolean }) => run(cli, job, options.now === true))
}

async function run(cli: Cli, meant: string, isNow: boolean): Promise<void> {
  const context = cli.context()
  const id = await findOpenJob(context, meant)
  const { message } = await cancel(context, id, { isNow })
  cli.out.json({ id, message })
  cli.out.line(`${id}: ${message}`)
}
