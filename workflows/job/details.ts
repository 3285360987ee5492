import { continuationOf } from '../../core/job/continuation'
import type { Checkpoint } from '../../core/job/checkpoint'
import { expectedInWords } from '../../core/job/forecast'
import { isFinal } from '../../core/job/job'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { nameInMarkdown } from '../../core/markdown'
import { formatDuration, formatInstant } from '../../core/time/time'
import { headline, isSaidBy, money, sentence, warningLines } from '../markdown'

/** Attempts shown; the server keeps 20,000 bytes of details. */
const ATTEMPTS_ON_PAGE_MAX = 12

/** The job's page in the Temporal UI, in Markdown. Its content only changes with an event of the workflow. */
export function jobDetails(status: JobStatus): string {
  const { state, reason, message, attempts, checkpoint } = status
  const facts = [
    `spent on ended attempts: ${money(status.spentMicroUsd)}`,
    ...(checkpoint === undefined
      ? []
      : [`newest checkpoint: ${stepOf(checkpoint)} (attempt ${checkpoint.attempt})`]),
    ...expectedOf(attempts.at(-1)),
    ...(status.deadlineAtMs === undefined ? [] : [`deadline: ${formatInstant(status.deadlineAtMs)}`]),
    ...(status.budgetMicroUsd === undefined ? [] : [`budget: ${money(status.budgetMicroUsd)}`]),
  ]
  return [
    headline({ state, reason, text: message }),
    ...(status.trouble === undefined ? [] : ['', `**Trouble, retrying:** ${sentence(status.trouble)}`]),
    '',
    ...facts.map((fact) => `- ${fact}`),
    ...(isFinal(state) || status.placementReasons.length === 0
      ? []
      : ['', `**Chosen because:** ${sentence(status.placementReasons.join('; '))}`]),
    ...warningOf(attempts.at(-1)),
    ...(attempts.length === 0 ? [] : ['', '**Attempts**', '', ...listOf(attempts)]),
    ...continuationLine(status),
    '',
    `Progress and logs: \`crucible show ${status.id}\`, \`crucible logs -f ${status.id}\``,
  ].join('\n')
}

function continuationLine(status: JobStatus): string[] {
  const continuation = continuationOf(status)
  if (continuation === null) return []
  const { command, step } = continuation
  return ['', `${step === null ? 'Start over' : `Resume from step ${step}`}: \`${command}\``]
}

/** Returns the plan's expectation for the attempt in progress. */
function expectedOf(last: AttemptRecord | undefined): string[] {
  if (last?.expected === undefined || last.endedAtMs !== undefined || last.state !== 'provisioning') return []
  return [`expected of attempt ${last.number}: ${sentence(expectedInWords(last.expected))}`]
}

/** A running number is not a step. */
function stepOf({ id, step, isStepKnown }: Checkpoint): string {
  return isStepKnown === false ? id : `step ${step}`
}

/** The last warning of the newest attempt's runner. */
function warningOf(last: AttemptRecord | undefined): string[] {
  return last?.warning === undefined ? [] : warningLines(last.warning.text, ` (attempt ${last.number})`)
}

function listOf(attempts: AttemptRecord[]): string[] {
  return attempts.slice(-ATTEMPTS_ON_PAGE_MAX).map((attempt) => `${attempt.number}. ${lineOf(attempt)}`)
}

function lineOf(attempt: AttemptRecord): string {
  const { state, backend, capacityType, realised, launchedAtMs, endedAtMs, stepsLost } = attempt
  const facts = [
    realised === undefined
      ? `${backend} ${capacityType}`
      : nameInMarkdown(`${backend} ${realised.capacityType} ${realised.type}`),
    ...(realised === undefined || realised.capacityType === capacityType
      ? []
      : [`requested ${capacityType}`]),
    ...(launchedAtMs === undefined || endedAtMs === undefined
      ? []
      : [formatDuration(endedAtMs - launchedAtMs), money(attempt.costMicroUsd)]),
    ...(stepsLost ? [`${stepsLost} steps lost`] : []),
  ]
  // The job does not know an attempt's progress before its end; the attempt's own page shows it.
  if (state === 'provisioning')
    return `**in progress** on ${facts.join(', ')}${attempt.reason === 'launching' ? '' : `: ${sentence(attempt.reason)}`}`
  // A reason that starts with the state's name says it once.
  const why = attempt.reason.replace(`${state}: `, '')
  return `**${state}** on ${facts.join(', ')}${isSaidBy(state, why) ? '' : `: ${sentence(why)}`}`
}
