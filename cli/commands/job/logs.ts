import type { Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import type { JobLogLine, LogOptions } from '../../../client/job/logs'
import { readView } from '../../../client/job/read-view'
import { formatInstant } from '../../../core/time/time'
import { countArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import type * as diagnosing from '../../../client/job/diagnosis'
import type * as clientLogs from '../../../client/job/logs'
import type * as following from '../../job/follow'

const NUMBER_MAX = 1e9

interface Options {
  follow?: boolean
  attempt?: number
  tail?: number
  timestamps?: boolean
  raw?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Print the log of a job across all its attempts, each line once and in order. Gaps are marked.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('-f, --follow', 'follow until the job ends; Ctrl-C leaves the job running')
    .option('--attempt <number>', 'only this attempt', countArgument(NUMBER_MAX))
    .option('--tail <count>', 'start with the last COUNT lines', countArgument(NUMBER_MAX))
    .option('-t, --timestamps', 'prefix each line with its attempt and time')
    .option('--raw', 'print terminal control sequences unescaped; only for jobs that you trust')
    .addHelpText(
      'after',
      examples(
        ['crucible logs char-lm', 'the whole log'],
        ['crucible logs -f --tail 20 job-3f', 'the last lines, then new ones'],
        ['crucible logs job-3f --json | jq -r .lines[].m', 'the texts; with -f one JSON document per line'],
      ),
    )
    .action((job: string, options: Options) => logs(cli, job, options))
}

async function logs(cli: Cli, meant: string, asked: Options): Promise<void> {
  const { follow, attempt, tail, timestamps, raw } = asked
  const { readLogs } = require('../../../client/job/logs') as typeof clientLogs
  const { logText, tellChanges, tellOnInterrupt } = require('../../job/follow') as typeof following
  const { out } = cli
  const context = cli.context()
  const jobId = await findJob(context, meant)
  const isFollowing = follow === true
  const options: LogOptions = {
    isFollowing,
    attempt,
    tail,
    signal: isFollowing ? cli.interruption() : undefined,
  }
  const lines: JobLogLine[] = []
  let count = 0
  const over = new AbortController()
  const telling = isFollowing && attempt === undefined ? tellChanges(cli, jobId, over.signal) : undefined
  try {
    for await (const line of readLogs(context, jobId, options)) {
      count += 1
      if (isFollowing) out.jsonLine(line)
      else if (out.isJson) lines.push(line)
      const text = logText(line, out)
      const shown = timestamps === true ? `${line.attempt} ${formatInstant(line.t)} ${text}` : text
      if (raw === true) out.raw(shown)
      else out.log(shown)
    }
  } finally {
    over.abort()
    await telling
  }
  if (options.signal?.aborted === true) return tellOnInterrupt(cli, jobId)
  if (count === 0 && attempt !== undefined) await checkAttempt(cli, jobId, attempt)
  if (!isFollowing) out.json({ lines })
  if (count === 0) {
    const { state, message } = await readView(context, jobId)
    out.note(`No lines: ${state}. ${message}`)
    const { readMachineOutput } = require('../../../client/job/diagnosis') as typeof diagnosing
    const output = await readMachineOutput(context.store, jobId)
    if (output === undefined) return
    out.note(`Output of machine ${output.machine} of attempt ${output.attempt}, whose runner left no result:`)
    for (const line of output.lines) out.note(`  ${line}`)
  }
}

/** Throws `not-found` unless the job has such an attempt. */
async function checkAttempt(cli: Cli, jobId: string, attempt: number): Promise<void> {
  const { attemptsOf } = require('../../../client/job/logs') as typeof clientLogs
  const attempts = await attemptsOf(cli.context().store, jobId)
  if (attempts.includes(attempt)) return
  throw new CrucibleError('not-found', `${jobId} has no attempt ${attempt}.`, {
    hint: attempts.length === 0 ? 'It has not been placed yet.' : `It has ${attempts.join(', ')}.`,
  })
}
