import type { Command } from 'commander'
import { findOpenJob } from '../../../client/job/find-open'
import { retryNow } from '../../../client/job/retry'
import type { Cli } from '../../cli'
import { examples } from '../../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Retry immediately instead of later: after trouble (see `show`), before the next attempt, or while a job waits for a machine.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .addHelpText('after', examples(['crucible retry char-lm', 'once the store is writable again']))
    .action((job: string) => run(cli, job))
}

async function run(cli: Cli, meant: string): Promise<void> {
  const context = cli.context()
  const id = await findOpenJob(context, meant)
  const { message } = await retryNow(context, id)
  cli.out.json({ id, message })
  cli.out.line(`${id}: ${message}`)
}
