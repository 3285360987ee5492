import type { Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import type { Offer } from '../../core/offer'
import { CLOCK_SLACK_MS, formatDuration } from '../../core/time/time'
import { USEFUL_RUN_MS } from './assumptions'
import { stoppingMs } from '../../core/time/timing'
import type { PlanRequest } from './request'
import { workOn } from './work'

/**
 * Adds to an offer the instant at which its machine ends, if the provider limits run times; the earliest one, if several apply. After a
 * queue of unknown length that instant is unknown, because the machine counts from its own beginning (`RunnerOrder.runMsMax`).
 */
export function withCutOff(
  offer: Offer,
  { queues = false }: Capabilities,
  { nowMs, startsInMs = 0 }: PlanRequest,
): Offer {
  if (offer.runMsMax === undefined || queues) return offer
  const usableUntilMs = Math.min(offer.usableUntilMs ?? Infinity, nowMs + startsInMs + offer.runMsMax)
  return { ...offer, usableUntilMs }
}

/** Why a job cannot run on machines that end after a fixed time. A job without checkpoints would start over each time. */
export function tooLongToRun(offer: Offer, request: PlanRequest): string | undefined {
  const { runMsMax } = offer
  if (runMsMax === undefined) return undefined
  const { spec, timing } = request
  const reserveMs = stoppingMs(timing) + CLOCK_SLACK_MS
  const needsMs = isResumable(spec) ? USEFUL_RUN_MS : workOn(offer, request).slowMs
  if (needsMs + reserveMs <= runMsMax) return undefined
  const [limit, needs, reserve] = [runMsMax, needsMs, reserveMs].map(formatDuration)
  const needed = `${needs} of work, and ${reserve} to save and stop`
  if (isResumable(spec)) return `its provider ends a machine after ${limit}, less than ${needed}`
  return `its provider ends a machine after ${limit}; the job needs ${needed}, and saves no checkpoints (set \`checkpoint: { directory: ... }\`)`
}

/** The limit as a risk of the plan. */
export function runLimitInWords(runMsMax: number, spec: JobSpec): string {
  const after = isResumable(spec)
    ? 'resumes from its checkpoint'
    : 'starts over, because the job saves no checkpoints'
  return `its provider ends a machine after ${formatDuration(runMsMax)}; unfinished work then ${after}`
}

/** Whether the job saves checkpoints from which it can continue. */
export function isResumable({ isInterruptible, checkpoint }: JobSpec): boolean {
  return isInterruptible || checkpoint.directory !== undefined
}
