import type { Command } from 'commander'
import type * as advising from '../../../client/job/checkpoint-advice'
import type { JobView } from '../../../client/job/job-view'
import type { JobSpec } from '../../../core/job/job'
import type { JobSource } from '../../../core/messages'
import type { Submission, Submitted } from '../../../client/job/submit'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { addAnalysisFlag, addJobFlags } from '../../job/flags'
import type { JobArguments } from '../../job/read-job'
import type * as jobReading from '../../job/read-job'
import type * as goingOn from '../../../client/job/go-on'
import type * as submitting from '../../../client/job/submit'
import type * as expecting from '../../../client/job/expect'
import type * as finding from '../../../client/job/find-job'
import type * as agreement from '../../job/agreement'
import type * as following from '../../job/follow'
import type * as planning from '../../job/planning'

interface Options extends Readonly<Record<string, unknown>> {
  id?: string
  from?: string
  fresh?: boolean
  workdir?: string
  follow?: boolean
  dryRun?: boolean
  yes?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Submit a job file or a Python script. Flags override the file. It uploads a folder: that of the job file, ' +
        'or for a script the current one.',
    )
    .argument('[file]', 'job file (.yaml) or script (.py)')
    .argument('[arguments...]', 'arguments of the script, after --')
  addJobFlags(command)
  addAnalysisFlag(command)
  command
    .option('--id <id>', 'id of the job; submitting it again with the same id has no effect')
    .option(
      '--from <job>',
      'resume from the newest good checkpoint of an earlier job, with its spec and code',
    )
    .option('--fresh', 'with --from: start over, without a checkpoint')
    .option('-f, --follow', "print the job's log and exit with its outcome; Ctrl-C leaves the job running")
    .option('--yes', 'submit without asking, also in a terminal')
    .option('--dry-run', 'show what would be submitted and where it would run')
    .addHelpText(
      'after',
      examples(
        ['crucible submit job.yaml', 'a job file'],
        ['crucible submit train.py --gpus 1 -- --lr 3e-4', 'a script with its own arguments'],
        ['crucible submit job.yaml --budget 25 --deadline 36h -f', 'with limits; follow its log'],
        ['crucible submit --from job-3f --budget 50', 'resume a stopped job with a larger budget'],
        ['crucible submit job.yaml --from job-3f', 'a new job file, starting from an earlier checkpoint'],
        ['crucible submit --from job-3f --fresh', 'start the same job over'],
      ),
    )
    .action((file: string | undefined, scriptArguments: string[], flags: Options) =>
      run(cli, { file, scriptArguments, flags }, flags),
    )
}

async function run(cli: Cli, given: JobArguments, options: Options): Promise<void> {
  const { readCheckedJob } = require('../../job/read-job') as typeof jobReading
  const { submission, warnings } = await readCheckedJob(cli, given)
  if (options.dryRun === true) return dryRun(cli, submission, warnings)
  const expectation = await expectationOf(cli, submission)
  const { showExpected, isSubmissionAgreed } = require('../../job/agreement') as typeof agreement
  if (expectation !== undefined) {
    showExpected(cli, submission.spec, { expectation, isNote: options.follow === true })
    const isAgreed = await isSubmissionAgreed(cli, expectation, options.yes === true)
    if (!isAgreed) return cli.refused('Nothing was submitted.')
  }
  const { submit } = require('../../../client/job/submit') as typeof submitting
  const answer = await submit(cli.context(), submission)
  tell(cli, answer, options.follow === true)
  const all = [...warnings, ...(expectation?.warnings ?? []), ...answer.warnings]
  const submitted: Submitted = { ...answer, warnings: [...new Set(all)] }
  const { spec } = submission
  if (options.follow !== true) return cli.out.json(documentOf(submitted, spec))
  const { exitCodeOf, follow } = require('../../job/follow') as typeof following
  const view = await follow(cli, submitted.id)
  cli.out.json(documentOf(submitted, spec, view))
  if (view !== undefined) cli.exitCode = exitCodeOf(view)
}

/** Asks where the job would run. Returns `undefined` for a job that was submitted before, because the command starts nothing new. */
async function expectationOf(
  cli: Cli,
  { spec, from, isFresh, id }: Submission,
): Promise<expecting.Expectation | undefined> {
  const context = cli.context()
  const { submissionWithId } = require('../../../client/job/find-job') as typeof finding
  if (id !== undefined && (await submissionWithId(context, id).catch(() => undefined)) !== undefined)
    return undefined
  const { expectPlace } = require('../../../client/job/expect') as typeof expecting
  return expectPlace(context, { spec, from: isFresh === true ? undefined : from })
}

function documentOf(
  { isNew, isServed, ...rest }: Submitted,
  { inferred = [] }: JobSpec,
  view?: JobView,
): object {
  return { ...rest, isNew, isServed, inferred, job: view }
}

async function dryRun(cli: Cli, submission: Submission, problems: readonly string[]): Promise<void> {
  const { spec, directory, from, isFresh = false } = submission
  const { sourceOf } = require('../../../client/job/go-on') as typeof goingOn
  const source = from === undefined || isFresh ? null : await sourceOf(cli.context(), from)
  const { findPlan, notesOf, showPlan } = require('../../job/planning') as typeof planning
  const found = await findPlan(cli, submission)
  const { plan, plannedBy } = found
  const { checkpointAdvice } = require('../../../client/job/checkpoint-advice') as typeof advising
  const warnings = [...problems, ...(await checkpointAdvice(submission))]
  cli.out.json({
    spec,
    directory: directory ?? null,
    source,
    plannedBy,
    plan,
    warnings,
    notes: notesOf(found, submission, cli.now()),
  })
  cli.out.line(`${cli.out.paint.bold(spec.name)}  ${spec.run}`)
  const code = from !== undefined && directory === undefined ? `the code of ${from}` : directory
  cli.out.line(code == null ? 'Nothing is sent along.' : `Sent along: ${code}`)
  if (source !== null) cli.out.line(`Resumes from ${sourceInWords(source)}`)
  cli.out.line()
  showPlan(cli.out, plan, { nowMs: cli.now() })
  for (const warning of warnings) cli.out.warn(warning)
}

function sourceInWords({ jobId, checkpoint: { step, id } }: JobSource): string {
  return `step ${step} of ${jobId} (${id})`
}

function tell(
  cli: Cli,
  { id, isNew, isServed, uiUrl, source, warnings }: Submitted,
  isFollowed: boolean,
): void {
  const { out } = cli
  // With --follow, the log goes to stdout and the rest to stderr.
  const say = isFollowed ? (text: string): void => out.note(text) : (text: string): void => out.line(text)
  say(
    isNew
      ? `Submitted ${out.paint.bold(id)}`
      : `${out.paint.bold(id)} was already submitted; nothing new was started.`,
  )
  if (source !== null) say(`  from      ${sourceInWords(source)}`)
  if (uiUrl !== null) say(`  Temporal  ${uiUrl}`)
  if (!isFollowed) {
    say(`  follow    ${cli.invocation} logs -f ${id}`)
    say(`  status    ${cli.invocation} show ${id}`)
    say(`  cancel    ${cli.invocation} cancel ${id}`)
  }
  for (const warning of warnings) out.warn(warning)
  if (!isServed) {
    out.note(
      out.paintNote.yellow(
        cli.asCalled(
          'No worker is running, so the job waits. Start one with `crucible dev` or `crucible worker`.',
        ),
      ),
    )
  }
}
