import type { Command } from 'commander'
import type * as advising from '../../../client/job/checkpoint-advice'
import { CrucibleError } from '../../../client/errors'
import { rowKey } from '../../../core/offer'
import type { PlanReport } from '../../../core/job/plan'
import type { OfferExplained } from '../../../core/arithmetic'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { addAnalysisFlag, addJobFlags } from '../../job/flags'
import type { JobArguments } from '../../job/read-job'
import type * as jobReading from '../../job/read-job'
import type * as planning from '../../job/planning'
import type * as whyText from '../../job/why-text'

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
    .option('--explain <offer>', 'show the arithmetic of one offer instead: ec2/spot/p5.48xlarge, or a type')
    .addHelpText(
      'after',
      examples(
        ['crucible plan job.yaml', 'a job file'],
        ['crucible plan train.py --gpus 1 --gpu-memory 24GB', 'a script'],
        ['crucible plan job.yaml --optimize time', 'soonest instead of cheapest'],
        ['crucible plan job.yaml --explain g5.xlarge', 'explain the cost of this type'],
      ),
    )
  command.action((file: string | undefined, scriptArguments: string[], flags: Options) =>
    plan(cli, { file, scriptArguments, flags }),
  )
}

async function plan(cli: Cli, given: JobArguments): Promise<void> {
  const { readCheckedJob } = require('../../job/read-job') as typeof jobReading
  const { findPlan, notesOf, showPlan } = require('../../job/planning') as typeof planning
  const { showOffer } = require('../../job/why-text') as typeof whyText
  const { submission, warnings: problems } = await readCheckedJob(cli, given)
  const { checkpointAdvice } = require('../../../client/job/checkpoint-advice') as typeof advising
  const explain = given.flags['explain'] as string | undefined
  const found = await findPlan(cli, submission, explain)
  const explained = explain === undefined ? undefined : explainedOf(explain, found.plan)
  const warnings = [...problems, ...(await checkpointAdvice(submission))]
  cli.out.json({
    plannedBy: found.plannedBy,
    ...found.plan,
    warnings,
    notes: notesOf(found, submission, cli.now()),
    inferred: submission.spec.inferred ?? [],
  })
  if (explained === undefined)
    showPlan(cli.out, found.plan, { nowMs: cli.now(), isAll: given.flags['all'] === true })
  else showOffer(cli.out, explained)
  for (const warning of warnings) cli.out.warn(warning)
}

const NAMED_MAX = 5

/** The explanation of an offer; throws if no offer has that name. */
function explainedOf(of: string, { explained, placements }: PlanReport): OfferExplained {
  if (explained) return explained
  const rows = [...new Set(placements.map(({ offer }) => rowKey(offer)))].slice(0, NAMED_MAX)
  throw new CrucibleError('usage', `No offer matches ${JSON.stringify(of)}.`, {
    hint: rows.length === 0 ? 'The plan has no place.' : `Name one of the plan, such as ${rows.join(', ')}.`,
  })
}
