import { BackendError } from '../../backends/errors'
import type { RetrainingActivities, RetrainResult } from '../../core/retraining/run'
import { howToApprove } from '../../core/retraining/requests'
import { formatUsd } from '../../core/money/money'
import { putRunEntry } from '../../storage/schedules'
import type { RetrainingDeps } from './activities'
import { secretsOf } from './jobs'

/** Posts the status of a run. The form is that of `crucible schedule show --json`, with a text that chat programs show. */
export async function tellRun(
  deps: RetrainingDeps,
  { input, run, status }: Parameters<RetrainingActivities['tellRun']>[0],
  signal: AbortSignal,
): Promise<void> {
  const { webhook, webhookSecret } = input.spec.notify
  const url =
    webhook ??
    (webhookSecret === undefined ? undefined : (await secretsOf(deps, input.schedule))[webhookSecret])
  if (url === undefined) {
    throw new BackendError({ class: 'invalid', message: `The webhook of ${input.schedule} is not stored.` })
  }
  const last = status.warnings.at(-1)
  const text = `${input.schedule}, run ${run.id}: ${status.state}. ${status.message}${last === undefined ? '' : ` ${last}`}`
  const how = status.state === 'awaiting-approval' ? [howToApprove({ schedule: input.schedule, run })] : []
  const page = status.pageUrl === undefined ? [] : [status.pageUrl]
  const words = [text, ...how, ...page].join(' ')
  await deps.post(url, JSON.stringify({ schema: 'crucible/1', text: words, run: status }), signal)
}

/** The last entry of a run. */
export async function finishRun(
  { store, now }: RetrainingDeps,
  { input, run, recordSeq, result }: Parameters<RetrainingActivities['finishRun']>[0],
): Promise<RetrainResult> {
  const atMs = now()
  const summary = `${result.state}, ${formatUsd(result.costMicroUsd)}: ${result.message}`
  const data: RetrainResult = { ...result, endedAtMs: atMs }
  const entry = { seq: recordSeq, atMs, kind: 'finished' as const, summary, data }
  return (await putRunEntry(store, { schedule: input.schedule, run: run.id }, entry)).data
}
