import type { Command } from 'commander'
import type * as drafting from '../../job/draft'
import type { Cli } from '../../cli'
import { examples } from '../../examples'

export interface InitOptions {
  output?: string
  force?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Write a job file for a training program: its command, and the settings that the program shows, each with its reason. ' +
        'The program is read without running it. An existing file is kept.',
    )
    .argument('[target]', 'script (.py) or folder (default: this folder)')
    .argument('[arguments...]', 'arguments of the script, after --')
    .option('-o, --output <file>', 'file to write (default: job.yaml in the folder of the program)')
    .option('--force', 'replace the file')
    .addHelpText(
      'after',
      examples(
        ['crucible init', 'for the training program of this folder'],
        ['crucible init train.py -- --epochs 30', 'for a script with its arguments'],
        ['crucible plan job.yaml', 'then see where it would run'],
      ),
    )
    .action((target: string | undefined, scriptArguments: string[], options: InitOptions) => {
      const { draftJobFile } = require('../../job/draft') as typeof drafting
      return draftJobFile(cli, { target: target ?? '.', scriptArguments, options })
    })
}
