import { createRequire } from 'node:module'
import type { Command } from 'commander'
import type { JobView } from '../../client/job-view'
import type { Submission, Submitted } from '../../client/submit'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { addJobFlags } from '../job-flags'
import type { JobArguments } from '../read-job'
import type * as jobReading from '../read-job'
import type * as submitting from '../../client/submit'
import type * as following from '../follow'
import type * as planning from '../planning'

/** Loaded by who runs the command: help and completion need none of it. */
const lazily = createRequire(__filename)

interface Options extends Readonly<Record<string, unknown>> {
  id?: string
  from?: string
  workdir?: string
  follow?: boolean
  dryRun?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Submit a job file or a Python script. Flags override what the file says. A folder is sent along: that of the job file, ' +
        'or for a script the current one.',
    )
    .argument('[file]', 'job file (.yaml) or script (.py)')
    .argument('[arguments...]', 'arguments of the script, after --')
  addJobFlags(command)
  command
    .option('--id <id>', 'id of the job; the same submission with the same id is made only once')
    .option('--from <job>', 'repeat an earlier job: its spec and its code')
    .option('-f, --follow', "print the job's log and end with its outcome; Ctrl-C leaves the job running")
    .option('--dry-run', 'show what would be submitted and where it would run')
    .addHelpText(
      'after',
      examples(
        ['crucible submit job.yaml', 'a job file'],
        ['crucible submit train.py --gpus 1 -- --lr 3e-4', 'a script with its own arguments'],
        ['crucible submit job.yaml --budget 25 --deadline 36h -f', 'with limits, and follow it'],
        ['crucible submit --from job-3f --budget 50', 'an earlier job again, with more money'],
      ),
    )
    .action((file: string | undefined, scriptArguments: string[], flags: Options) =>
      run(cli, { file, scriptArguments, flags }, flags),
    )
}

async function run(cli: Cli, given: JobArguments, options: Options): Promise<void> {
  const { readCheckedJob } = lazily('../read-job') as typeof jobReading
  const submission = await readCheckedJob(cli, given)
  if (options.dryRun === true) return dryRun(cli, submission)
  const { submit } = lazily('../../client/submit') as typeof submitting
  const submitted = await submit(cli.context(), submission)
  tell(cli, submitted, options.follow === true)
  if (options.follow !== true) return cli.out.json(documentOf(submitted, undefined))
  const { exitCodeOf, follow } = lazily('../follow') as typeof following
  const view = await follow(cli, submitted.id)
  cli.out.json(documentOf(submitted, view))
  if (view !== undefined) cli.exitCode = exitCodeOf(view)
}

function documentOf({ isNew, isServed, ...rest }: Submitted, view: JobView | undefined): object {
  return { ...rest, isNew, isServed, ...(view === undefined ? {} : { job: view }) }
}

async function dryRun(cli: Cli, submission: Submission): Promise<void> {
  const { spec, directory } = submission
  const { findPlan, showPlan } = lazily('../planning') as typeof planning
  const { plan, plannedBy } = await findPlan(cli, submission)
  cli.out.json({ spec, directory: directory ?? null, plannedBy, plan })
  cli.out.line(`${cli.out.paint.bold(spec.name)}  ${spec.run}`)
  cli.out.line(directory == null ? 'Nothing is sent along.' : `Sent along: ${directory}`)
  cli.out.line()
  showPlan(cli.out, plan, cli.now())
}

function tell(cli: Cli, { id, isNew, isServed, uiUrl, warnings }: Submitted, isFollowed: boolean): void {
  const { out } = cli
  // The log is the answer then; what leads to it is a remark.
  const say = isFollowed ? (text: string): void => out.note(text) : (text: string): void => out.line(text)
  say(
    isNew
      ? `Submitted ${out.paint.bold(id)}`
      : `${out.paint.bold(id)} was submitted before; nothing was started again.`,
  )
  if (uiUrl !== null) say(`  Temporal  ${uiUrl}`)
  if (!isFollowed) {
    say(`  follow    ${cli.invocation} logs -f ${id}`)
    say(`  look      ${cli.invocation} show ${id}`)
    say(`  cancel    ${cli.invocation} cancel ${id}`)
  }
  for (const warning of warnings) out.note(out.paintNote.yellow(warning))
  if (!isServed) {
    out.note(
      out.paintNote.yellow(
        cli.asCalled(
          'No worker runs: the job waits until one does. Start one with `crucible dev` or `crucible worker`.',
        ),
      ),
    )
  }
}
