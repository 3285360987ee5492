import type { AttemptView, JobView } from '../../client/job/job-view'
import { readLogs, type JobLogLine, type LogOptions } from '../../client/job/logs'
import { readView } from '../../client/job/read-view'
import { isAttemptOver } from '../../client/job/view'
import { watchJob } from '../../client/job/watch'
import { EXIT_CODES } from '../../client/errors'
import { isFinal, type JobReason } from '../../core/job/job'
import { formatUsd } from '../../core/money/money'
import { formatDuration } from '../../core/time/time'
import type { Cli } from '../cli'
import { continuationLines } from './continuation'
import type { Output } from '../kit/output'
import { asKnown, attemptReason, plural, stateInColour } from '../kit/words'

/** A log line for people. Lines that the program did not write are marked. */
export function logText({ s, m }: JobLogLine, { paint }: Pick<Output, 'paint'>): string {
  return s === 'out' || s === 'err' ? m : paint.dim(`[crucible] ${m}`)
}

/**
 * Prints a job's log as it arrives, and its state changes on stderr, until the job ends. Returns its end, or `undefined` after a
 * Ctrl-C, which never cancels a job.
 */
export async function follow(cli: Cli, jobId: string): Promise<JobView | undefined> {
  const signal = cli.interruption()
  const over = new AbortController()
  const telling = tellChanges(cli, jobId, AbortSignal.any([signal, over.signal]))
  try {
    await printLog(cli, jobId, { isFollowing: true, signal })
  } finally {
    over.abort()
    await telling
  }
  if (signal.aborted) {
    tellOnInterrupt(cli, jobId)
    return undefined
  }
  const view = await readView(cli.context(), jobId)
  tellEnd(cli, view)
  return view
}

/** Prints lines on stdout, or on stderr if stdout carries one document. */
async function printLog(cli: Cli, jobId: string, options: LogOptions): Promise<void> {
  const { out } = cli
  for await (const line of readLogs(cli.context(), jobId, options)) {
    if (out.isJson) out.note(logText(line, { paint: out.paintNote }))
    else out.log(logText(line, out))
  }
}

export function tellOnInterrupt(cli: Cli, jobId: string): void {
  cli.out.note(
    cli.asCalled(
      `\n${jobId} continues. Follow it with \`crucible logs -f ${jobId}\`, cancel it with \`crucible cancel ${jobId}\`.`,
    ),
  )
}

/** Prints the changes of a job's state on stderr, until its end or the signal. */
export async function tellChanges(cli: Cli, jobId: string, signal: AbortSignal): Promise<void> {
  const { paintNote: paint } = cli.out
  const tell = (text: string): void => cli.out.note(`${paint.dim('crucible:')} ${text}`)
  let told = ''
  let attemptsOver = 0
  try {
    for await (const view of watchJob(cli.context(), jobId, { signal })) {
      const { state, reason, message, attempts, attemptsTotal } = view
      const over = attempts.filter((attempt) => attempt.number > attemptsOver && isAttemptOver(attempt))
      for (const attempt of over) tell(endOfAttempt(attempt))
      attemptsOver = over.at(-1)?.number ?? attemptsOver
      const words = asKnown(view, `${stateInColour(state, paint)} (${reason}) ${message}`)
      if (words !== told && !isFinal(state))
        tell(attemptsTotal > 1 ? `attempt ${attemptsTotal}: ${words}` : words)
      told = words
    }
  } catch {
    // Only the log was requested; it continues without remarks.
  }
}

function endOfAttempt(attempt: AttemptView): string {
  const { number, state, stepsLost } = attempt
  const lost = stepsLost === null || stepsLost === 0 ? '' : ` (${plural(stepsLost, 'step')} lost)`
  return `attempt ${number}: ${state}${lost}. ${attemptReason(attempt)}`
}

function tellEnd(cli: Cli, view: JobView): void {
  const { out } = cli
  const { id, state, message, attemptsTotal, cost, submittedAtMs, endedAtMs } = view
  const { paintNote: paint } = out
  const took = endedAtMs === null ? '' : ` in ${formatDuration(endedAtMs - submittedAtMs)}`
  const facts = `${plural(attemptsTotal, 'attempt')}, ${cost.spentMicroUsd === null ? 'cost unknown' : formatUsd(cost.spentMicroUsd)}`
  out.note(`${paint.dim('crucible:')} ${id} ${stateInColour(state, paint)}${took} (${facts}). ${message}`)
  if (view.warning !== null) out.note(paint.yellow(view.warning.text))
  for (const line of continuationLines(cli, view)) out.note(line)
}

const EXIT_CODE_OF_REASON: Partial<Record<JobReason, number>> = {
  'no-placement': EXIT_CODES.capacity,
  quota: EXIT_CODES.capacity,
  auth: EXIT_CODES.permission,
}

/** Exit code of a command that waited for a job. */
export function exitCodeOf({ state, reason }: Pick<JobView, 'state' | 'reason'>): number {
  return state === 'succeeded' ? 0 : (EXIT_CODE_OF_REASON[reason] ?? EXIT_CODES.failed)
}
