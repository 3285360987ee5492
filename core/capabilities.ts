import type { NoticeSource } from './documents'
import type { CapacityType } from './offer'

/** What a backend can do, as data. */
export interface Capabilities {
  capacityTypes: readonly CapacityType[]
  /** Who runs a container image of the user's choice: the runner through the machine's Docker, the provider, or `none`. */
  imageRunner: 'runner' | 'provider' | 'none'
  /** When the runner starts: by the launch itself, or by a call of `start` once the machine can take it. */
  runnerStart: 'with-launch' | 'after-launch'
  /** Where a machine reads its notice; missing if its start command says so, or if there is no notice. */
  notice?: NoticeSource
  /**
   * What makes a repeated launch harmless: the provider recognises the order's token, or we never repeat an order whose effect is unknown,
   * and look for its tag.
   */
  idempotency: 'token' | 'tag'
  /** How a machine claims its attempt: by the provider's id (also if missing), or by the name of its send if it cannot learn that id. */
  claimsBy?: 'id' | 'send'
  /** What ends billing: the machine's own power-off, or our `terminate`. */
  billsUntil: 'exit' | 'terminate'
  /** Whether the provider is asked for prices. */
  price: 'live' | 'static' | 'configured'
}
