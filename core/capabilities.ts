import type { NoticeSource } from './documents'
import type { CapacityType } from './offer'

/** What a backend can do, as data. */
export interface Capabilities {
  capacityTypes: readonly CapacityType[]
  /** A container image of the user's choice can be run. */
  hasCustomImage: boolean
  /** When the runner starts: by the launch itself, or by a call of `start` once the machine can take it. */
  runnerStart: 'with-launch' | 'after-launch'
  /** Where a machine reads its notice; missing where it is told by its start, or there is none. */
  notice?: NoticeSource
  /** How a repeated launch is recognised: by the order's token, or only by looking for its tag. */
  idempotency: 'token' | 'tag'
  /** Until when a machine is billed: until its own power-off, or until our `terminate`. */
  billsUntil: 'exit' | 'terminate'
  /** Whether prices are asked of the provider. */
  price: 'live' | 'static' | 'configured'
}
