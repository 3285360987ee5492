import type { Failure } from './failure'

/** A provider's report about a machine. It never describes the workload: the beat does. */
export interface Observation {
  /**
   * `queued`: accepted, and waiting for capacity; costs nothing. `gone` covers everything that cannot run any more: terminated, failed
   * to start, unknown to the provider.
   */
  state: 'queued' | 'pending' | 'running' | 'stopping' | 'gone'
  /**
   * When billing began, once it has and if the provider reports it; reported for a machine that is gone, too. Only for providers whose
   * launches can be queued. Without it, billing counts from the last look that found the machine queued.
   */
  billedFromAtMs?: number
  /**
   * For `gone`, if the provider bills the machine until `terminate`, such as one that failed its health checks. It may work: it is left
   * alone while its runner beats, and its end is believed only after it was terminated.
   */
  isStillBilled?: true
  /** The provider's own words. */
  detail?: string
  /**
   * For `gone`, and for `stopping` if already known: whether the provider took it back (`interrupted`), or it was ended by its own
   * power-off or by us.
   */
  cause?: 'interrupted' | 'ended' | 'failed-to-start' | 'unknown'
  /** For `failed-to-start`: the cause, if it was not missing capacity. */
  failure?: Failure
  /** For `gone`, and for `stopping` if nothing is billed any more: since when, if the provider reports it. Billing stops here. */
  endedAtMs?: number
  /** End of its availability, if its provider has announced one; it may change. */
  usableUntilMs?: number
  /** An interruption notice that the provider shows from outside the machine. */
  noticeAtMs?: number
}

/** Whether a machine neither runs nor costs anything any more, by one look. */
export function isOver(look: Observation | undefined): boolean {
  return look?.state === 'gone' && look.isStillBilled !== true
}
