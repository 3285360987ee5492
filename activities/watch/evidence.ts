import type { WatchInput } from '../../core/activities'
import type { Observation } from '../../core/observation'
import type { Evidence } from '../../planner/policy/liveness'

/** Returns the facts about a machine when its watch begins. */
export function firstEvidence({ timing, handle, order }: WatchInput, nowMs: number): Evidence {
  return {
    timing,
    watchedSinceMs: nowMs,
    renewedAtMs: handle.launchedAtMs,
    isLeaseFirst: true,
    queueMs: order.runner.queueMs,
  }
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
