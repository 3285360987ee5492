import type { Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import type { BackendChoice } from '../../../core/offer'
import { MINUTE_MS } from '../../../core/time/time'
import { backendArgument, countArgument, durationArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { addJobFlags } from '../../job/flags'
import type { JobArguments } from '../../job/read-job'
import type * as jobReading from '../../job/read-job'
import type * as rehearsing from '../../job/rehearsing'
import type * as rehearsingElsewhere from '../../job/rehearsing-elsewhere'

const FOR_DEFAULT_MS = 5 * MINUTE_MS
/** Longest default for one resume of a program that rarely saves, without `--for`. */
const MOST_DEFAULT_MS = 30 * MINUTE_MS
const INTERRUPTIONS_MAX = 50

export interface RehearseOptions {
  /** Upper bound on the duration; see `RehearsalOptions`. */
  for: number
  most: number
  interruptions?: number
  keep?: string
}

interface Options extends Readonly<Record<string, unknown>>, Partial<RehearseOptions> {
  backend?: string[]
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      "Run a job's real command briefly, interrupt it at the worst moments, and report whether it survives and what to " +
        'change. On this machine it needs no server; with --backend it runs as two jobs on that backend, within a budget. Exits with 8 ' +
        'if the job does not survive.',
    )
    .argument('[file]', 'job file (.yaml) or script (.py)')
    .argument('[arguments...]', 'arguments of the script, after --')
  addJobFlags(command)
  command
    .option('--for <duration>', 'time limit (default: 5m here, 30m with --backend)', durationArgument)
    .option(
      '--interruptions <count>',
      'number of interruptions (default: 5 here, 3 with --backend)',
      countArgument(INTERRUPTIONS_MAX),
    )
    .option(
      '--keep <folder>',
      'new folder for the checkpoints, logs and documents of a rehearsal on this machine',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible rehearse job.yaml', 'five interruptions in at most five minutes'],
        ['crucible rehearse train.py --checkpoint-dir checkpoints', 'a script'],
        ['crucible rehearse job.yaml --for 1h', 'for a program that saves every ten minutes'],
        ['crucible rehearse job.yaml --backend ec2:spot --budget 2', 'on spot machines of EC2'],
        ['crucible rehearse job.yaml --json', 'for CI: the exit code is 0 or 8'],
      ),
    )
    .action((file: string | undefined, scriptArguments: string[], flags: Options) =>
      rehearse(cli, { file, scriptArguments, flags: flags }, flags),
    )
}

async function rehearse(cli: Cli, given: JobArguments, options: Options): Promise<void> {
  const backend = backendOf(options)
  const { interruptions, keep } = options
  const counted = interruptions === undefined ? {} : { interruptions }
  const { readCheckedJob, readJob } = require('../../job/read-job') as typeof jobReading
  if (backend === undefined) {
    const { rehearseHere } = require('../../job/rehearsing') as typeof rehearsing
    await rehearseHere(cli, await readJob(cli, given), {
      for: options.for ?? FOR_DEFAULT_MS,
      most: options.for ?? MOST_DEFAULT_MS,
      ...counted,
      keep,
    })
    return
  }
  if (keep !== undefined) {
    throw new CrucibleError('usage', '--keep requires a rehearsal on this machine.', {
      hint: 'A rehearsal on a backend leaves two jobs: inspect them with `crucible checkpoints` and `crucible logs`.',
    })
  }
  const { rehearseElsewhere } = require('../../job/rehearsing-elsewhere') as typeof rehearsingElsewhere
  const { for: forMs = MOST_DEFAULT_MS } = options
  const { submission } = await readCheckedJob(cli, given)
  await rehearseElsewhere(cli, submission, {
    for: forMs,
    most: forMs,
    backend,
    ...counted,
  })
}

/** The backend of a deployment; `undefined` for this machine, which needs none. */
function backendOf({ backend: texts = [] }: Options): BackendChoice | undefined {
  const choices = texts.map(backendArgument)
  if (choices.length > 1) {
    throw new CrucibleError('usage', 'A rehearsal runs on one backend.', { hint: 'Pass --backend once.' })
  }
  const [choice] = choices
  return choice === undefined || choice.backend === 'local' ? undefined : choice
}
