import type { Command } from 'commander'
import { CrucibleError, EXIT_CODES } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import type { CheckpointView } from '../../../client/job/checkpoints'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { age, bytes, checkpointState, knownStep, NOTHING, plural } from '../../kit/words'
import type * as downloading from '../../../client/job/download-checkpoint'
import type * as clientCheckpoints from '../../../client/job/checkpoints'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'List the checkpoints of a job, newest first, with the evidence that they are complete; verify their digests; or download one.',
    )
    .usage('[options] <job> [verify [checkpoint]]')
    .argument('<job>', 'id, beginning of an id, or name')
    .argument('[verify]', 'the word "verify": read every file and compare its digest')
    .argument('[checkpoint]', 'id of one checkpoint (default: all)')
    .option('--download [step]', 'download the newest good checkpoint, or that of a step, into a new folder')
    .option(
      '--to <folder>',
      'the folder to create for --download (default: JOB-checkpoint, or JOB-step-STEP)',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible checkpoints char-lm', 'list them'],
        ['crucible checkpoints job-3f verify', 'exits with 1 if one is damaged'],
        ['crucible checkpoints job-3f verify 000000000400-2', 'one of them'],
        ['crucible checkpoints job-3f --download --to model', 'the newest good one, as the program wrote it'],
        ['crucible checkpoints job-3f --download 400', 'that of step 400'],
      ),
    )
    .action((job: string, ...[verb, checkpoint, options]: Rest) =>
      checkpoints(cli, job, { verb, checkpoint, ...options }),
    )
}

type Rest = [verb: string | undefined, checkpoint: string | undefined, options: Options]

interface Options {
  /** True without a step. */
  download?: string | true
  to?: string
}

interface Given extends Options {
  verb: string | undefined
  checkpoint: string | undefined
}

async function checkpoints(
  cli: Cli,
  meant: string,
  { verb, checkpoint, download: wanted, to }: Given,
): Promise<void> {
  if (verb !== undefined && verb !== 'verify') {
    throw new CrucibleError('usage', `"${verb}" is not an action on checkpoints.`, {
      hint: 'Write `crucible checkpoints JOB verify`, or `crucible checkpoints JOB` to list them.',
    })
  }
  if (to !== undefined && wanted === undefined) throw new CrucibleError('usage', '--to requires --download.')
  if (verb !== undefined && wanted !== undefined) {
    throw new CrucibleError('usage', 'verify and --download exclude each other.', {
      hint: 'A download always verifies the digests.',
    })
  }
  const id = await findJob(cli.context(), meant)
  if (wanted !== undefined) return download(cli, id, { wanted: wanted === true ? undefined : wanted, to })
  return verb === undefined ? list(cli, id) : verify(cli, id, checkpoint)
}

async function list(cli: Cli, id: string): Promise<void> {
  const { out } = cli
  const { checkpointsOf } = require('../../../client/job/checkpoints') as typeof clientCheckpoints
  const found = await checkpointsOf(cli.context(), id)
  out.json({ id, checkpoints: found })
  if (found.length === 0) return out.line(`${id} has no checkpoints.`)
  const nowMs = cli.now()
  const hasEpochs = found.some(({ epoch }) => epoch !== null)
  const rows = found.map((checkpoint) => row(checkpoint, { nowMs, hasEpochs }))
  const right = ['STEP', ...(hasEpochs ? ['EPOCH'] : []), 'SIZE', 'AGE']
  out.table(['CHECKPOINT', 'STATE', ...right, 'EVIDENCE'], rows, {
    right,
    flexible: 'EVIDENCE',
    optional: ['EVIDENCE', 'SIZE'],
  })
  if (found.every(({ state }) => state !== 'complete'))
    out.note(
      'No checkpoint is proven complete. In the job file, set checkpoint.complete to a file that the program writes last.',
    )
}

function row(
  checkpoint: CheckpointView,
  { nowMs, hasEpochs }: { nowMs: number; hasEpochs: boolean },
): string[] {
  const { id, state, evidence, epoch, sizeBytes, savedAtMs } = checkpoint
  return [
    id,
    state === null ? 'damaged' : checkpointState(state),
    String(knownStep(checkpoint) ?? NOTHING),
    ...(hasEpochs ? [String(epoch ?? NOTHING)] : []),
    sizeBytes === null ? NOTHING : bytes(sizeBytes),
    savedAtMs === null ? NOTHING : age(savedAtMs, nowMs),
    evidence?.text ?? 'its manifest cannot be read',
  ]
}

async function download(
  cli: Cli,
  id: string,
  { wanted, to }: { wanted: string | undefined; to: string | undefined },
): Promise<void> {
  const { out } = cli
  if (wanted !== undefined && !/^\d[\d-]*$/.test(wanted))
    throw new CrucibleError(
      'usage',
      `--download takes a step or the id of a checkpoint, and not "${wanted}".`,
      {
        hint: `To choose the folder: --download --to ${wanted}.`,
      },
    )
  const { downloadCheckpoint } = require('../../../client/job/download-checkpoint') as typeof downloading
  const toFolder = to ?? (wanted === undefined ? `${id}-checkpoint` : `${id}-step-${wanted}`)
  const got = await downloadCheckpoint(cli.context(), id, {
    toFolder,
    wanted,
  })
  const { checkpoint, folder, files, sizeBytes, resumePath, damaged } = got
  out.json({ id, ...got })
  for (const { checkpoint: other, badFiles } of damaged)
    out.note(
      `Skipped step ${other.step} (${other.id}), which is damaged: ${badFiles[0]!.path} ${badFiles[0]!.reason}.`,
    )
  const what = `step ${checkpoint.step} (${checkpoint.id}): ${plural(files, 'file')}, ${bytes(sizeBytes)}`
  out.line(`Downloaded ${what} and verified its digests.`)
  out.line(`  folder       ${folder}`)
  if (resumePath !== '.') out.line(`  resume from  ${resumePath}`)
}

async function verify(cli: Cli, id: string, checkpoint: string | undefined): Promise<void> {
  const { out } = cli
  const { verifyCheckpoints } = require('../../../client/job/checkpoints') as typeof clientCheckpoints
  const verdicts = await verifyCheckpoints(cli.context(), id, checkpoint)
  out.json({ id, isGood: verdicts.every(({ isGood }) => isGood), checkpoints: verdicts })
  if (verdicts.length === 0) return out.line(`${id} has no checkpoints.`)
  for (const { id: name, isGood, badFiles } of verdicts) {
    out.line(`${name}  ${isGood ? out.paint.green('good') : out.paint.red('damaged')}`)
    for (const { path, reason } of badFiles) out.line(`  ${path} ${reason}`)
  }
  if (verdicts.some(({ isGood }) => !isGood)) {
    cli.exitCode = EXIT_CODES.failed
    out.note('A job never resumes from a damaged checkpoint: it uses the previous one.')
  }
}
