import type { Command } from 'commander'
import { findJob } from '../../client/find-job'
import { cancel } from '../../client/updates'
import type { Cli } from '../cli'
import { examples } from '../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Let a job save and stop; its machine ends with it. Its checkpoints stay: `submit --from` goes on with a new job.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--now', 'leave it seconds instead of minutes')
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
  const id = await findJob(context, meant)
  const { message } = await cancel(context, id, { isNow })
  cli.out.json({ id, message })
  cli.out.line(`${id}: ${message}`)
}
