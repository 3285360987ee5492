import type { NoticeSource } from './documents'
import type { CapacityType } from './offer'

/** How often a provider may be called. A missing field leaves our own pace (`Timing`) as it is. */
export interface Pace {
  /** Least time between two `observe` calls of one watching worker, and of one settlement. */
  observeMs?: number
  /** Least time between two looks that both find a machine gone, for lists that may miss a machine that exists. */
  goneConfirmMs?: number
  /** Launches per minute that the account allows, over all workers together. They wait in `launchQueue` (core/queues.ts). */
  launchesPerMinute?: number
}

/** How long machines take to boot: half of them less than `middleMs`, one of twenty less than `lowMs`, and one more than `highMs`. */
export interface BootTime {
  lowMs: number
  middleMs: number
  highMs: number
  /** Where the figures come from, with a date; for people. */
  source: string
}

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
  /** What ends billing: the machine's own power-off, or our `terminate`, at the latest with its answer. */
  billsUntil: 'exit' | 'terminate'
  /**
   * How many offers one order may name: any number of interchangeable ones, or exactly one type at one place, so that only what was
   * tried is avoided afterwards. `many` if missing.
   */
  offersPerOrder?: 'many' | 'one'
  /** A launch may be accepted and then wait for capacity (`queued` of `Observation`), free of charge. */
  queues?: boolean
  /**
   * What `gone` proves: `confirmed`, that nothing of the machine runs; `requested`, only that its end was requested or that the provider
   * lists it no more. After a `requested` end, nothing else starts before the result exists or the lease has certainly expired.
   * `confirmed` if missing.
   */
  ends?: 'confirmed' | 'requested'
  /** From an accepted launch to the runner's start; the planner assumes a wide range if missing. */
  boot?: BootTime
  /** The provider's own limits on calls; missing without any. */
  pace?: Pace
  /** Whether the provider is asked for prices. */
  price: 'live' | 'static' | 'configured'
}
