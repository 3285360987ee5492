import type { Command } from 'commander'
import type * as analyzing from '../../analyzing'
import type * as texts from '../../analysis-text'
import { EXIT_CODES } from '../../../client/errors'
import type { Cli } from '../../cli'
import { examples } from '../../examples'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Read a training script without running it: framework, options, checkpoints, whether it can resume, GPUs, batch size. ' +
        'Each finding says how sure it is, and where it is written. Starts nothing. Exits with 1 if it cannot find out what the program does, ' +
        'or has no change to suggest.',
    )
    .argument('<target>', 'script (.py), notebook (.ipynb), shell script (.sh), folder, or job file (.yaml)')
    .argument('[arguments...]', 'arguments of the script, after --')
    .option(
      '--suggest-resume',
      'print a diff that makes the program save to CRUCIBLE_CHECKPOINT_DIR and resume from CRUCIBLE_RESUME_FROM',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible analyze train.py', 'a script and the files that it imports'],
        ['crucible analyze train.py -- --resume last.pt', 'with the options that it will be given'],
        ['crucible analyze job.yaml --json', 'the command of a job, as JSON'],
        ['crucible analyze train.py --suggest-resume | git apply', 'make the script save and resume'],
      ),
    )
  command.action((target: string, scriptArguments: string[], { suggestResume = false }: Flags) =>
    (suggestResume ? suggest : analyze)(cli, target, scriptArguments),
  )
}

interface Flags {
  suggestResume?: boolean
}

async function analyze(cli: Cli, target: string, scriptArguments: readonly string[]): Promise<void> {
  const { analyzeTarget } = require('../../analyzing') as typeof analyzing
  const { showAnalysis } = require('../../analysis-text') as typeof texts
  const analysis = await analyzeTarget({ target, scriptArguments, nowMs: cli.now() })
  if (analysis.kind === 'unreadable') cli.exitCode = EXIT_CODES.failed
  cli.out.json(analysis)
  showAnalysis(cli.out, analysis)
}

async function suggest(cli: Cli, target: string, scriptArguments: readonly string[]): Promise<void> {
  const { suggestForTarget } = require('../../analyzing') as typeof analyzing
  const { showSuggestion } = require('../../analysis-text') as typeof texts
  const { analysis, suggestion } = await suggestForTarget({ target, scriptArguments, nowMs: cli.now() })
  if (suggestion.outcome === 'refused') cli.exitCode = EXIT_CODES.failed
  cli.out.json({ ...analysis, suggestion })
  showSuggestion(cli.out, analysis, suggestion)
}
