import type { Beat, Progress } from '../core/documents'
import type { AttemptView, ProgressView } from './job-view'

export function progressView(progress: Progress | undefined): ProgressView | null {
  if (progress === undefined) return null
  const { step, stepsTotal, loss, epoch, epochsTotal, batch, batchesTotal } = progress
  return {
    ...{ step, stepsTotal, loss },
    epoch: epoch ?? null,
    epochsTotal: epochsTotal ?? null,
    batch: batch ?? null,
    batchesTotal: batchesTotal ?? null,
    percent: percentOf(progress),
  }
}

/** As the runner says, which knows epochs too; else by the steps alone. */
function percentOf({ step, stepsTotal, percent }: Progress): number | null {
  if (percent !== undefined) return percent
  if (step === null || stepsTotal === null || stepsTotal <= 0) return null
  return Math.round(Math.min(1, step / stepsTotal) * 1_000) / 10
}

/** What a new attempt has not told yet, the one before still tells. */
export function newestProgress(attempts: AttemptView[]): ProgressView | null {
  return attempts.findLast(({ progress }) => progress !== null)?.progress ?? null
}

/** What is left of the training at the pace of this attempt; null where its pace is not known. */
export function leftByProgress(beat: Beat | undefined): number | null {
  if (beat?.progress == null) return null
  const { progress, restoredFrom, uptimeMs } = beat
  const { step, stepsTotal } = progress
  if (step !== null && stepsTotal !== null && restoredFrom?.isStepKnown !== false) {
    const done = step - (restoredFrom?.step ?? 0)
    return done <= 0 ? null : Math.round(Math.max(0, stepsTotal - step) * (uptimeMs / done))
  }
  // How much of it this attempt has done is known only where it began from nothing.
  const percent = restoredFrom === null ? percentOf(progress) : null
  return percent === null || percent <= 0 ? null : Math.round((100 - percent) * (uptimeMs / percent))
}
