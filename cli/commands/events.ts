import type { Command } from 'commander'
import { eventsOf, recordOf } from '../../client/events'
import { findJob } from '../../client/find-job'
import { formatInstant } from '../../core/time'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { NOTHING } from '../words'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Tell the story of a job: every decision on its record, and what its machines told, in the order of time.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--record', 'with --json: the whole record, each decision with its inputs')
    .addHelpText(
      'after',
      examples(
        ['crucible events char-lm', 'its story'],
        ['crucible events job-3f --record --json', 'every decision with what it rested on'],
      ),
    )
    .action((job: string, options: { record?: boolean }) => events(cli, job, options.record === true))
}

async function events(cli: Cli, meant: string, isWhole: boolean): Promise<void> {
  const context = cli.context()
  const jobId = await findJob(context, meant)
  const story = await eventsOf(context, jobId)
  cli.out.json({ id: jobId, events: story, ...(isWhole ? { record: await recordOf(context, jobId) } : {}) })
  cli.out.table(
    ['WHEN', 'ATTEMPT', 'WHAT'],
    story.map(({ atMs, attempt, text }) => [
      formatInstant(atMs),
      attempt === null ? NOTHING : String(attempt),
      text,
    ]),
    ['ATTEMPT'],
  )
}
