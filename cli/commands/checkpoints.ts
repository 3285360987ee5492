import { createRequire } from 'node:module'
import type { Command } from 'commander'
import { CrucibleError, EXIT_CODES } from '../../client/errors'
import { findJob } from '../../client/find-job'
import { formatInstant } from '../../core/time'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { bytes, NOTHING } from '../words'
import type * as clientCheckpoints from '../../client/checkpoints'

/** Loaded by who runs the command: help and completion need none of it. */
const lazily = createRequire(__filename)

export function define(command: Command, cli: Cli): void {
  command
    .description('List the complete checkpoints of a job, newest first, or compare them with their digests.')
    .usage('[options] <job> [verify [checkpoint]]')
    .argument('<job>', 'id, beginning of an id, or name')
    .argument('[verify]', 'the word "verify": read every file and compare it')
    .argument('[checkpoint]', 'id of one checkpoint; else all of them')
    .addHelpText(
      'after',
      examples(
        ['crucible checkpoints char-lm', 'list them'],
        ['crucible checkpoints job-3f verify', 'ends with 1 when one is damaged'],
        ['crucible checkpoints job-3f verify 000000000400-2', 'one of them'],
      ),
    )
    .action((job: string, verb: string | undefined, checkpoint: string | undefined) =>
      checkpoints(cli, job, { verb, checkpoint }),
    )
}

async function checkpoints(
  cli: Cli,
  meant: string,
  { verb, checkpoint }: { verb: string | undefined; checkpoint: string | undefined },
): Promise<void> {
  if (verb !== undefined && verb !== 'verify') {
    throw new CrucibleError('usage', `"${verb}" is nothing that can be done with checkpoints.`, {
      hint: 'Write `crucible checkpoints JOB verify`, or leave it out to list them.',
    })
  }
  const id = await findJob(cli.context(), meant)
  return verb === undefined ? list(cli, id) : verify(cli, id, checkpoint)
}

async function list(cli: Cli, id: string): Promise<void> {
  const { out } = cli
  const { checkpointsOf } = lazily('../../client/checkpoints') as typeof clientCheckpoints
  const found = await checkpointsOf(cli.context(), id)
  out.json({ id, checkpoints: found })
  if (found.length === 0) return out.line(`${id} has no complete checkpoint so far.`)
  const rows = found.map(({ id: checkpoint, step, attempt, files, sizeBytes, createdAtMs }) => [
    checkpoint,
    String(step),
    String(attempt),
    files === null ? NOTHING : String(files),
    sizeBytes === null ? NOTHING : bytes(sizeBytes),
    createdAtMs === null ? 'its manifest cannot be read' : formatInstant(createdAtMs),
  ])
  out.table(['CHECKPOINT', 'STEP', 'ATTEMPT', 'FILES', 'SIZE', 'WHEN'], rows, {
    right: ['STEP', 'ATTEMPT', 'FILES', 'SIZE'],
    optional: ['FILES'],
  })
}

async function verify(cli: Cli, id: string, checkpoint: string | undefined): Promise<void> {
  const { out } = cli
  const { verifyCheckpoints } = lazily('../../client/checkpoints') as typeof clientCheckpoints
  const verdicts = await verifyCheckpoints(cli.context(), id, checkpoint)
  out.json({ id, isGood: verdicts.every(({ isGood }) => isGood), checkpoints: verdicts })
  if (verdicts.length === 0) return out.line(`${id} has no complete checkpoint so far.`)
  for (const { id: name, isGood, badFiles } of verdicts) {
    out.line(`${name}  ${isGood ? out.paint.green('good') : out.paint.red('damaged')}`)
    for (const { path, reason } of badFiles) out.line(`  ${path} ${reason}`)
  }
  if (verdicts.some(({ isGood }) => !isGood)) {
    cli.exitCode = EXIT_CODES.failed
    out.note('A job never goes on from a damaged checkpoint: it takes the one before.')
  }
}
