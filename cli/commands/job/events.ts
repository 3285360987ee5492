import type { Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import { readView } from '../../../client/job/read-view'
import { formatInstant } from '../../../core/time/time'
import type { Cli } from '../../cli'
import { continuationLines } from '../../job/continuation'
import { examples } from '../../examples'
import { tellGaps } from '../../kit/gaps'
import { NOTHING } from '../../kit/words'
import type * as clientEvents from '../../../client/job/events'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Show what happened to a job, in order: every recorded decision, and what its machines reported.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--record', 'with --json: the whole record, each decision with its inputs')
    .addHelpText(
      'after',
      examples(
        ['crucible events char-lm', 'its events'],
        ['crucible events job-3f --record --json', 'every decision with its inputs'],
      ),
    )
    .action((job: string, options: { record?: boolean }) => events(cli, job, options.record === true))
}

async function events(cli: Cli, meant: string, isWhole: boolean): Promise<void> {
  if (isWhole && !cli.out.isJson) {
    throw new CrucibleError('usage', '--record prints JSON only.', {
      hint: 'Add --json.',
    })
  }
  const { eventsOf, recordOf } = require('../../../client/job/events') as typeof clientEvents
  const context = cli.context()
  const jobId = await findJob(context, meant)
  const story = await eventsOf(context, jobId)
  const view = story.some(({ kind }) => kind === 'finished') ? await readView(context, jobId) : undefined
  const continuation = view?.continuation ?? null
  cli.out.json({
    id: jobId,
    events: story,
    continuation,
    record: isWhole ? await recordOf(context, jobId) : undefined,
    incomplete: tellGaps(cli, context.gaps),
  })
  cli.out.table(
    ['WHEN', 'ATTEMPT', 'WHAT'],
    story.map(({ atMs, attempt, text }) => [
      formatInstant(atMs),
      attempt === null ? NOTHING : String(attempt),
      text,
    ]),
    { right: ['ATTEMPT'], wrapped: 'WHAT' },
  )
  const lines = view === undefined ? [] : continuationLines(cli, view)
  for (const line of lines.length === 0 ? [] : ['', ...lines]) cli.out.line(line)
  for (const { attempt, detail } of story) {
    if (detail === undefined) continue
    cli.out.line()
    cli.out.line(`Last messages from the machine of attempt ${attempt}:`)
    for (const line of detail.split('\n')) cli.out.line(`  ${line}`.trimEnd())
  }
}
