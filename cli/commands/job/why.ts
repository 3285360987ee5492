import type { Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import type * as jobFile from '../../../client/job/file'
import { noSuchJob } from '../../../client/job/read-view'
import type { WhatIf } from '../../../core/job/what-if'
import type * as decisions from '../../../workers/decisions'
import { countArgument, whatIfArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { showDecisions, showWhatIf } from '../../job/why-text'

interface Options {
  decision?: number
  whatIf?: WhatIf[]
}

/** More decisions than a job can make. */
const DECISIONS_MAX = 1_000_000

export function define(command: Command, cli: Cli): void {
  const { WHAT_IF_FORMS } = require('../../../client/job/file') as typeof jobFile
  command
    .description(
      'Explain each decision about a job from its record: what it was made from, the alternatives, the arithmetic, and what would have changed it. With --what-if, decide again from changed inputs; nothing happens to the job.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option(
      '--decision <number>',
      'only this decision; with --what-if the last plan if missing',
      countArgument(DECISIONS_MAX),
    )
    .option(
      '--what-if <key=value>',
      'change an input of the plan; repeatable',
      (text: string, before: WhatIf[] = []) => [...before, whatIfArgument(text)],
    )
    .addHelpText(
      'after',
      [
        '',
        'Keys of --what-if:',
        ...Object.values(WHAT_IF_FORMS).map((form) => `  ${form}`),
        examples(
          ['crucible why char-lm', 'every decision so far'],
          [
            'crucible why char-lm --what-if price.spot=+50%',
            'where it would run if spot cost half as much again',
          ],
          ['crucible why char-lm --decision 1 --what-if deadline=+6h', 'its first plan, with more time'],
        ),
      ].join('\n'),
    )
    .action((job: string, options: Options) => why(cli, job, options))
}

async function why(cli: Cli, meant: string, { decision, whatIf }: Options): Promise<void> {
  const context = cli.context()
  const jobId = await findJob(context, meant)
  const { decideAgain, explainJob } = require('../../../workers/decisions') as typeof decisions
  if (whatIf !== undefined) {
    const answer = await decideAgain(context.store, jobId, { decision, changes: whatIf })
    if (answer === undefined) throw noSuchJob(context, meant)
    if ('problem' in answer) throw refused(answer)
    cli.out.json({ id: jobId, whatIf: answer })
    return showWhatIf(cli.out, answer)
  }
  const explained = await explainJob(context.store, jobId, { decision })
  if (explained === undefined) throw noSuchJob(context, meant)
  if ('problem' in explained) throw refused(explained)
  cli.out.json(explained)
  showDecisions(cli.out, explained)
}

function refused({ problem, remedy }: decisions.Unexplained): CrucibleError {
  return new CrucibleError('usage', sentence(problem), { hint: sentence(remedy) })
}

function sentence(text: string): string {
  const whole = `${text.charAt(0).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(whole) ? whole : `${whole}.`
}
