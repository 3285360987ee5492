import type { Command } from 'commander'
import type * as advising from '../../client/checkpoint-advice'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { addAnalysisFlag, addJobFlags } from '../job-flags'
import type { JobArguments } from '../read-job'
import type * as jobReading from '../read-job'
import type * as planning from '../planning'

type Options = JobArguments['flags']

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Rank the places where a job could run now, and explain why others are excluded. Starts nothing. Exits with 3 if there is no place.',
    )
    .argument('[file]', 'job file (.yaml) or script (.py)')
    .argument('[arguments...]', 'arguments of the script, after --')
  addJobFlags(command)
  addAnalysisFlag(command)
  command
    .option('--from <job>', 'plan an earlier job')
    .option('--all', 'show every type that fits, and each excluded offer')
    .addHelpText(
      'after',
      examples(
        ['crucible plan job.yaml', 'a job file'],
        ['crucible plan train.py --gpus 1 --gpu-memory 24GB', 'a script'],
        ['crucible plan job.yaml --optimize time', 'soonest instead of cheapest'],
      ),
    )
  command.action((file: string | undefined, scriptArguments: string[], flags: Options) =>
    plan(cli, { file, scriptArguments, flags }),
  )
}

async function plan(cli: Cli, given: JobArguments): Promise<void> {
  const { readCheckedJob } = require('../read-job') as typeof jobReading
  const { findPlan, showPlan } = require('../planning') as typeof planning
  const submission = await readCheckedJob(cli, given)
  const { checkpointAdvice } = require('../../client/checkpoint-advice') as typeof advising
  const found = await findPlan(cli, submission)
  const warnings = await checkpointAdvice(submission)
  cli.out.json({
    plannedBy: found.plannedBy,
    ...found.plan,
    warnings,
    inferred: submission.spec.inferred ?? [],
  })
  showPlan(cli.out, found.plan, { nowMs: cli.now(), isAll: given.flags['all'] === true })
  for (const warning of warnings) cli.out.note(cli.out.paintNote.yellow(warning))
}
