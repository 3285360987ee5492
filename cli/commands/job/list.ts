import { InvalidArgumentError, type Command } from 'commander'
import { LIST_LIMIT, listWithGaps, type ListFilter } from '../../../client/job/list'
import type { JobSummary } from '../../../client/job/job-view'
import { JOB_STATES, type JobState } from '../../../core/job/job'
import { lineInWords } from '../../../core/job/waiting'
import { countArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import type { TableOptions } from '../../kit/output'
import { age, NOTHING, placementInWords, plural, progressInWords, stateInColour, usd } from '../../kit/words'

/** The server returns at most this many at a time. */
const LIMIT_MAX = 1_000

interface Options {
  state?: JobState[]
  owner?: string
  mine?: boolean
  name?: string
  backend?: string
  limit: number
}

export function define(command: Command, cli: Cli): void {
  command
    .option(
      '--state <states>',
      `only jobs in these states, separated by commas: ${JOB_STATES.join(', ')}`,
      parseStates,
    )
    .option('--owner <owner>', 'only jobs of this owner')
    .option('--mine', 'only your own jobs')
    .option('--name <name>', 'only jobs of this name')
    .option('--backend <backend>', 'only jobs placed there last, such as local or local:spot')
    .option('--limit <count>', 'at most this many', countArgument(LIMIT_MAX), LIST_LIMIT)
    .addHelpText(
      'after',
      examples(
        ['crucible list', 'the newest jobs'],
        ['crucible list --mine --state running,recovering', 'your running jobs'],
        ['crucible list --json | jq -r ".jobs[].id"', 'their ids'],
      ),
    )
    .action((options: Options) => list(cli, options))
}

async function list(cli: Cli, { state, owner, mine, name, backend, limit }: Options): Promise<void> {
  const config = cli.clientConfig()
  const context = cli.context(config)
  const filter: ListFilter = {
    limit,
    states: state,
    ...(mine === true ? { owner: config.owner } : owner === undefined ? {} : { owner }),
    name,
    backend,
  }
  const { jobs, others, incomplete } = await listWithGaps(context, filter)
  cli.out.json({ jobs, others, incomplete })
  if (incomplete !== null) cli.saysUnknown(incomplete)
  if (jobs.length === 0) {
    noteOthers(cli, others)
    if (incomplete !== null) return
    const isFiltered = state !== undefined || (filter.owner ?? name ?? backend) !== undefined
    return cli.out.line(
      isFiltered ? 'No job matches.' : cli.asCalled('No jobs yet. Start with `crucible submit train.py`.'),
    )
  }
  const nowMs = cli.now()
  const rows = jobs.map((job) => [
    job.id,
    job.name,
    `${stateInColour(job.state, cli.out.paint)}${job.warning === null ? '' : cli.out.paint.yellow(' !')}`,
    whyThere(job, nowMs),
    placementInWords(job),
    progressInWords(job.progress),
    usd(job.cost.spentMicroUsd),
    // An assumed duration says too little for a table.
    usd(job.cost.remainingBasis === 'assumed' ? null : job.cost.estimatedRemainingMicroUsd),
    age(job.submittedAtMs, nowMs),
  ])
  cli.out.table(HEAD, rows, FIT)
  noteOthers(cli, others)
  const troubled = jobs.flatMap(({ id, trouble }) => (trouble === null ? [] : [`${id}: ${trouble.message}`]))
  for (const words of troubled.slice(0, TROUBLES_TOLD_MAX)) cli.out.note(words)
  const warned = jobs.filter(({ warning }) => warning !== null)
  if (warned.length > 0)
    cli.out.note(
      cli.asCalled(
        `! ${plural(warned.length, 'job has', 'jobs have')} a warning: \`crucible show ${warned[0]!.id}\`.`,
      ),
    )
  const shown = limit === 1 ? 'job' : `${limit} jobs`
  if (jobs.length === limit) cli.out.note(`Only the first ${shown}; see more with --limit.`)
}

/** Workflows in Temporal that are no jobs of this deployment: anybody who reaches the server can start them. */
function noteOthers(cli: Cli, others: number): void {
  if (others > 0) cli.out.note(`${plural(others, 'workflow')} of others, which the store does not know.`)
}

/** Exported with its options to test how the table fits a screen. */
export const HEAD = ['JOB', 'NAME', 'STATE', 'REASON', 'BACKEND', 'PROGRESS', 'COST', 'EST. LEFT', 'AGE']
export const FIT: TableOptions = {
  right: ['COST', 'EST. LEFT', 'AGE'],
  flexible: ['NAME', 'REASON'],
  optional: ['NAME', 'BACKEND', 'EST. LEFT', 'COST', 'PROGRESS', 'AGE'],
}

/** Characters of an error that fit into a row. */
const TROUBLE_SHOWN_MAX = 40
/** Number of errors that are printed whole below the table. */
const TROUBLES_TOLD_MAX = 3

function whyThere(job: JobSummary, nowMs: number): string {
  const { trouble, retrying, waiting, queuedSinceMs, reason, phase } = job
  if (trouble !== null) return `trouble: ${shortened(trouble.message)}`
  if (retrying !== null) return `trying again: ${shortened(retrying.text)}`
  if (queuedSinceMs !== null) return `queued for ${age(queuedSinceMs, nowMs)}`
  if (waiting !== null) return lineInWords(waiting)
  return reason === 'starting' ? (phase ?? reason) : (reason ?? NOTHING)
}

function shortened(text: string): string {
  return text.length <= TROUBLE_SHOWN_MAX ? text : `${text.slice(0, TROUBLE_SHOWN_MAX - 1)}…`
}

function parseStates(text: string): JobState[] {
  return text.split(',').map((part) => {
    const state = JOB_STATES.find((known) => known === part.trim())
    if (state === undefined) throw new InvalidArgumentError(`Write one or more of ${JOB_STATES.join(', ')}.`)
    return state
  })
}
