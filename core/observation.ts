import type { Failure } from './failure'

/** A provider's report about a machine. It never describes the workload: the beat does. */
export interface Observation {
  /**
   * `queued`: accepted and waiting for capacity, at no cost. `gone`: certainly not running, because it was terminated, failed to start, or
   * is unknown to the provider.
   */
  state: 'queued' | 'pending' | 'running' | 'stopping' | 'gone'
  /**
   * When billing began, if the provider reports it, also for a machine that is gone. Only for providers with queues. Without it, billing
   * counts from the last observation of the machine as queued.
   */
  billedFromAtMs?: number
  /**
   * For `gone`: the provider bills the machine until `terminate`, for example after failed health checks. The machine may work, so it is
   * left alone while its runner beats, and counts as ended only after it was terminated.
   */
  isStillBilled?: true
  /** Detail in the provider's words. */
  detail?: string
  /**
   * Cause of `gone`, and of `stopping` if already known: the provider took the machine back (`interrupted`), or its own power-off or we
   * ended it.
   */
  cause?: 'interrupted' | 'ended' | 'failed-to-start' | 'unknown'
  /** For `failed-to-start`: the cause, unless it was missing capacity. */
  failure?: Failure
  /** End of billing as the provider reports it, for `gone`, and for `stopping` if nothing is billed. */
  endedAtMs?: number
  /** End of its availability, if its provider has announced one; it may change. */
  usableUntilMs?: number
  /** An interruption notice that the provider shows from outside the machine. */
  noticeAtMs?: number
}

/** Whether one observation shows that a machine neither runs nor costs anything. */
export function isOver(look: Observation | undefined): boolean {
  return look?.state === 'gone' && look.isStillBilled !== true
}
