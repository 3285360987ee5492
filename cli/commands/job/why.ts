import type { Command } from 'commander'
import type * as jobFile from '../../../client/job/file'
import type { WhatIf } from '../../../core/job/what-if'
import type * as clientWhy from '../../../client/job/why'
import { countArgument, whatIfArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { tellGaps } from '../../kit/gaps'
import { examples } from '../../examples'
import { showDecisions, showWhatIf } from '../../job/why-text'

interface Options {
  decision?: number
  whatIf?: WhatIf[]
}

/** Number for `all` decisions, larger than a job can have. */
const DECISIONS_MAX = 1_000_000

export function define(command: Command, cli: Cli): void {
  const { WHAT_IF_FORMS } = require('../../../client/job/file') as typeof jobFile
  command
    .description(
      'Explain each decision about a job from its record: its inputs, the alternatives, the arithmetic, and changes that would have altered it. With --what-if, decide again from changed inputs; nothing happens to the job.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option(
      '--decision <number>',
      'only this decision (default: all; with --what-if the last plan)',
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

async function why(cli: Cli, job: string, { decision, whatIf }: Options): Promise<void> {
  const context = cli.context()
  const { decideWhatIf, explainDecisions } = require('../../../client/job/why') as typeof clientWhy
  if (whatIf !== undefined) {
    const answer = await decideWhatIf(context, job, { decision, changes: whatIf })
    cli.out.json(answer)
    return showWhatIf(cli.out, answer.whatIf)
  }
  const explained = await explainDecisions(context, job, { decision })
  cli.out.json({ ...explained, incomplete: tellGaps(cli, context.gaps) })
  showDecisions(cli.out, explained)
}
