import type { Command } from 'commander'
import type * as analyzing from '../analyzing'
import type * as texts from '../analysis-text'
import { EXIT_CODES } from '../../client/errors'
import type { Cli } from '../cli'
import { examples } from '../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Read a training script without running it: framework, options, checkpoints, whether it can resume, GPUs, batch size. ' +
        'Each finding says how sure it is, and where it is written. Starts nothing. Exits with 1 if it cannot tell what the program does.',
    )
    .argument('<target>', 'script (.py), notebook (.ipynb), shell script (.sh), folder, or job file (.yaml)')
    .argument('[arguments...]', 'arguments of the script, after --')
    .addHelpText(
      'after',
      examples(
        ['crucible analyze train.py', 'a script and the files that it imports'],
        ['crucible analyze train.py -- --resume last.pt', 'with the options that it will be given'],
        ['crucible analyze job.yaml --json', 'the command of a job, as JSON'],
      ),
    )
  command.action((target: string, scriptArguments: string[]) => analyze(cli, target, scriptArguments))
}

async function analyze(cli: Cli, target: string, scriptArguments: readonly string[]): Promise<void> {
  const { analyzeTarget } = require('../analyzing') as typeof analyzing
  const { showAnalysis } = require('../analysis-text') as typeof texts
  const analysis = await analyzeTarget(target, scriptArguments, cli.now())
  if (analysis.kind === 'unreadable') cli.exitCode = EXIT_CODES.failed
  cli.out.json(analysis)
  showAnalysis(cli.out, analysis)
}
