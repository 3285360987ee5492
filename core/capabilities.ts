import type { NoticeSource } from './documents'
import type { CapacityType } from './offer'

/** What a backend can do, as data. */
export interface Capabilities {
  capacityTypes: readonly CapacityType[]
  /** Who runs a container image of the user's choice: the runner, through the machine's Docker; the provider; or nobody. */
  imageRunner: 'runner' | 'provider' | 'none'
  /** When the runner starts: by the launch itself, or by a call of `start` once the machine can take it. */
  runnerStart: 'with-launch' | 'after-launch'
  /** Where a machine reads its notice; missing where it is told by its start, or there is none. */
  notice?: NoticeSource
  /**
   * What makes a repeated launch harmless: the provider recognises the order's token, or we never send an order again whose effect
   * is unknown, and look for its tag.
   */
  idempotency: 'token' | 'tag'
  /** How a machine claims its attempt: with the provider's id (also when missing), or, where it cannot learn that, with its send's name. */
  claimsBy?: 'id' | 'send'
  /** Until when a machine is billed: until its own power-off, or until our `terminate`. */
  billsUntil: 'exit' | 'terminate'
  /** Whether prices are asked of the provider. */
  price: 'live' | 'static' | 'configured'
}
