import type { AttemptRecord } from '../core/ledger'
import type { JobStatus } from '../core/messages'
import { formatUsd } from '../core/money'
import { formatDuration, formatInstant } from '../core/time'

/** Attempts on the page; the server keeps 20,000 bytes of details. */
const ATTEMPTS_ON_PAGE_MAX = 12

/** The job's page in the Temporal UI, in markdown. Nothing in it changes between two events of the workflow. */
export function jobDetails(status: JobStatus): string {
  const { attempts, checkpoint } = status
  const limits = [
    ...(status.deadlineAtMs === undefined ? [] : [`deadline ${formatInstant(status.deadlineAtMs)}`]),
    ...(status.budgetMicroUsd === undefined ? [] : [`budget ${formatUsd(status.budgetMicroUsd)}`]),
  ]
  const facts = [
    `spent on ended attempts: ${formatUsd(status.spentMicroUsd)}`,
    ...(checkpoint === undefined
      ? []
      : [`newest checkpoint: step ${checkpoint.step} (attempt ${checkpoint.attempt})`]),
    ...limits,
  ]
  return [
    `**${status.state}** (${status.reason}): ${status.message}`,
    '',
    ...facts.map((fact) => `- ${fact}`),
    ...(status.placementReasons.length === 0
      ? []
      : ['', `**Why here:** ${status.placementReasons.join('; ')}`]),
    ...(attempts.length === 0 ? [] : ['', ...tableOf(attempts)]),
    '',
    `Progress and logs: \`crucible show ${status.id}\`, \`crucible logs -f ${status.id}\``,
  ].join('\n')
}

function tableOf(attempts: AttemptRecord[]): string[] {
  const shown = attempts.slice(-ATTEMPTS_ON_PAGE_MAX)
  return [
    '| # | asked for | got | state | why | time | cost | steps lost |',
    '|---|---|---|---|---|---|---|---|',
    ...shown.map(rowOf),
  ]
}

function rowOf(attempt: AttemptRecord): string {
  const { realised, launchedAtMs, endedAtMs } = attempt
  const cells = [
    attempt.number,
    `${attempt.backend} ${attempt.capacityType}`,
    realised === undefined ? '' : `${realised.capacityType} ${realised.type}`,
    attempt.state,
    attempt.reason.replaceAll('|', '/'),
    launchedAtMs === undefined || endedAtMs === undefined ? '' : formatDuration(endedAtMs - launchedAtMs),
    endedAtMs === undefined ? '' : formatUsd(attempt.costMicroUsd),
    attempt.stepsLost ?? '',
  ]
  return `| ${cells.join(' | ')} |`
}
