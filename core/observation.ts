import type { Failure } from './failure'

/** What a provider says of a machine. It never says how the workload is: that is the beat's. */
export interface Observation {
  /**
   * `queued`: accepted, and waiting for capacity; costs nothing. `gone` covers everything that cannot run any more: ended, failed to
   * start, unknown to the provider.
   */
  state: 'queued' | 'pending' | 'running' | 'stopping' | 'gone'
  /**
   * When billing began, once it has and if the provider reports it; reported for a machine that is gone, too. Only for providers whose
   * launches can be queued. Without it, billing counts from the last look that found the machine queued.
   */
  billedFromAtMs?: number
  /** The provider's own words. */
  detail?: string
  /** For `gone`, and for `stopping` where it is known by then: whether the provider took it back (`interrupted`), or it ended by itself or by us. */
  cause?: 'interrupted' | 'ended' | 'failed-to-start' | 'unknown'
  /** For `failed-to-start`: what that was, where it was something else than want of capacity. */
  failure?: Failure
  /** For `gone`, and for `stopping` where nothing is billed any more: when that began, where the provider tells. Billing stops here. */
  endedAtMs?: number
  /** Until when it can be used at all, where its provider has said so and may say otherwise. */
  usableUntilMs?: number
  /** An interruption notice that the provider shows from outside the machine. */
  noticeAtMs?: number
}
