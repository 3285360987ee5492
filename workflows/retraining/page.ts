import type { RetrainStatus, RunJob } from '../../core/retraining/run'
import { howToApprove } from '../../core/retraining/requests'
import { nameInMarkdown } from '../../core/markdown'
import { formatInstant } from '../../core/time/time'
import { headline, money, sentence } from '../markdown'

/** Warnings shown; the last ones say most. */
const WARNINGS_MAX = 12

/** The page of a run in the Temporal UI, in Markdown. */
export function retrainDetails(status: RetrainStatus): string {
  const { schedule, state, message, trouble, run, reservations, warnings, jobs, verdict, model } = status
  const { untilAtMs } = status
  const { dates } = run ?? {}
  const facts = [
    ...(untilAtMs === undefined ? [] : [`waits until: ${formatInstant(untilAtMs)}`]),
    ...(dates === undefined
      ? []
      : [
          `window: ${formatInstant(dates.opensAtMs)}${dates.isByHand ? ' (by hand)' : ''}`,
          `data: from ${dates.window.start} up to ${dates.window.end}`,
        ]),
    ...reservations.slice(-3).map((each) => `capacity ${each.id}: ${each.state}, ${sentence(each.message)}`),
    ...(model === undefined
      ? []
      : [`model: ${model.jobId}, step ${model.step}, ${model.digest.slice(0, 12)}`]),
    ...(verdict === undefined ? [] : [`gate: ${sentence(verdict.message)}`]),
  ]
  return [
    headline({ state, reason: state, text: message }),
    ...(trouble === undefined ? [] : ['', `**Trouble, retrying:** ${sentence(trouble)}`]),
    '',
    ...facts.map((fact) => `- ${fact}`),
    ...(state === 'awaiting-approval' ? approvalLines(status) : []),
    ...(jobs.length === 0 ? [] : ['', '**Jobs**', '', ...jobs.map(jobLine)]),
    ...(warnings.length === 0
      ? []
      : [
          '',
          '**Warnings**',
          '',
          ...warnings.slice(-WARNINGS_MAX).map((warning) => `- ${sentence(warning)}`),
        ]),
    '',
    `More: \`crucible schedule show ${schedule}\`, \`crucible schedule history ${schedule}\``,
  ].join('\n')
}

/** Returns lines about an approval with the link of the event, which a person can pass on. */
function approvalLines({ schedule, run, pageUrl }: RetrainStatus): string[] {
  return [
    '',
    '**Waits for approval.** Without an answer, the old model stays.',
    '',
    howToApprove({ schedule, run }),
    ...(pageUrl === undefined ? [] : ['', `Link for the person who approves it: <${pageUrl}>`]),
  ]
}

function jobLine({ part, jobId, state, costMicroUsd }: RunJob): string {
  const cost = costMicroUsd === undefined ? '' : `, ${money(costMicroUsd)}`
  return `- ${part}: ${nameInMarkdown(jobId)}, ${state ?? 'running'}${cost}`
}
