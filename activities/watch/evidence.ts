import type { WatchInput } from '../../core/activities'
import type { Observation } from '../../core/observation'
import type { Evidence } from '../../planner/policy/liveness'

/** The same moment by both clocks of the watching process. */
export interface Moment {
  monotonicMs: number
  wallAtMs: number
}

/** Returns the facts about a machine when its watch begins. */
export function firstEvidence({ timing, handle, order }: WatchInput, now: Moment): Evidence {
  return {
    timing,
    watchedSinceMs: now.monotonicMs,
    renewedAtMs: monotonicOf(handle.launchedAtMs, now),
    isLeaseFirst: true,
    queueMs: order.runner.queueMs,
  }
}

/** Converts a written instant, which another clock may have made, to the monotonic clock. It is never in the future. */
export function monotonicOf(atMs: number, now: Moment): number {
  return now.monotonicMs - Math.max(0, now.wallAtMs - atMs)
}

/** Adds an answer of the provider; undefined if it did not answer. */
export function noteObservation(
  evidence: Evidence,
  observation: Observation | undefined,
  nowMs: number,
): void {
  if (observation === undefined) evidence.providerFailedAtMs = nowMs
  else if (observation.state === 'gone')
    evidence.gone = {
      firstAtMs: evidence.gone?.firstAtMs ?? nowMs,
      lastAtMs: nowMs,
      isStillBilled: observation.isStillBilled === true,
    }
  else delete evidence.gone
}
