import type { Progress } from '../../core/documents'
import type { AttemptView, ProgressView } from './job-view'

export function progressView(progress: Progress | undefined): ProgressView | null {
  if (progress === undefined) return null
  const { step, stepsTotal, loss, epoch, epochsTotal, batch, batchesTotal } = progress
  return {
    step,
    stepsTotal,
    loss,
    epoch: epoch ?? null,
    epochsTotal: epochsTotal ?? null,
    batch: batch ?? null,
    batchesTotal: batchesTotal ?? null,
    percent: percentOf(progress),
  }
}

/** Returns the percentage that the runner reports, which includes epochs; otherwise computes it from the steps. */
function percentOf({ step, stepsTotal, percent }: Progress): number | null {
  if (percent !== undefined) return percent
  if (step === null || stepsTotal === null || stepsTotal <= 0) return null
  return Math.round(Math.min(1, step / stepsTotal) * 1_000) / 10
}

/** Until a new attempt reports progress, the previous one's values apply. */
export function newestProgress(attempts: AttemptView[]): ProgressView | null {
  return attempts.findLast(({ progress }) => progress !== null)?.progress ?? null
}
