import { createRequire } from 'node:module'
import type { Command } from 'commander'
import { CrucibleError } from '../../client/errors'
import type { BackendChoice } from '../../core/offer'
import { MINUTE_MS } from '../../core/time'
import { backendArgument, countArgument, durationArgument } from '../arguments'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { addJobFlags } from '../job-flags'
import type { JobArguments } from '../read-job'
import type * as jobReading from '../read-job'
import type * as rehearsing from '../rehearsing'

/** Loaded by who runs the command: help and completion need none of it. */
const lazily = createRequire(__filename)

const FOR_DEFAULT_MS = 5 * MINUTE_MS
/** Without `--for`, a program that saves seldom gets up to this much for one resume. */
const MOST_DEFAULT_MS = 30 * MINUTE_MS
const INTERRUPTIONS_MAX = 50

export interface RehearseOptions {
  /** How long at most; see `RehearsalOptions`. */
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
      "Run a job's real command on this machine for a short while, interrupt it at moments chosen to hurt, and say whether it survives " +
        'and what to change. Needs no server. Ends with 8 when the job does not survive.',
    )
    .argument('[file]', 'job file (.yaml) or script (.py)')
    .argument('[arguments...]', 'arguments of the script, after --')
  addJobFlags(command)
  command
    .option('--for <duration>', 'how long at most (default: 5m)', durationArgument)
    .option('--interruptions <count>', 'how many (default: 5)', countArgument(INTERRUPTIONS_MAX))
    .option('--keep <folder>', 'a new folder for the checkpoints, logs and documents of the rehearsal')
    .addHelpText(
      'after',
      examples(
        ['crucible rehearse job.yaml', 'five interruptions in at most five minutes'],
        ['crucible rehearse train.py --checkpoint-dir checkpoints', 'a script'],
        ['crucible rehearse job.yaml --for 1h', 'a program that saves every ten minutes'],
        ['crucible rehearse job.yaml --json', 'for CI: the exit code is 0 or 8'],
      ),
    )
    .action((file: string | undefined, scriptArguments: string[], flags: Options) =>
      rehearse(cli, { file, scriptArguments, flags: flags }, flags),
    )
}

async function rehearse(cli: Cli, given: JobArguments, options: Options): Promise<void> {
  for (const text of options.backend ?? []) onlyHere(backendArgument(text))
  const { readJob } = lazily('../read-job') as typeof jobReading
  const { rehearseHere } = lazily('../rehearsing') as typeof rehearsing
  const { for: forMs = FOR_DEFAULT_MS, interruptions, keep } = options
  await rehearseHere(cli, await readJob(cli, given), {
    for: forMs,
    most: options.for ?? MOST_DEFAULT_MS,
    ...(interruptions === undefined ? {} : { interruptions }),
    ...(keep === undefined ? {} : { keep }),
  })
}

function onlyHere({ backend }: BackendChoice): void {
  if (backend === 'local') return
  throw new CrucibleError('usage', `rehearse runs on this machine only, not on ${backend}.`, {
    hint: 'Leave --backend out. To interrupt a job elsewhere, submit it and use `crucible interrupt` or `crucible migrate`.',
  })
}
