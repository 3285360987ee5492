import type { NoticeSource } from './documents'
import type { CapacityType } from './offer'

/** Limits on calls to a provider. A missing field keeps our own pace (`Timing`). */
export interface Pace {
  /** Least time between two `observe` calls of one watching worker, and of one settlement. */
  observeMs?: number
  /** Least time between two looks that both find a machine gone, for lists that may miss a machine that exists. */
  goneConfirmMs?: number
  /** Launches per minute that the account allows, over all workers together. They wait in `launchQueue` (core/queues.ts). */
  launchesPerMinute?: number
}

/**
 * Range of boot times: half of the machines need less than `middleMs`, one in twenty less than `lowMs`, and one in twenty more than
 * `highMs`.
 */
export interface BootTime {
  lowMs: number
  middleMs: number
  highMs: number
  /** Boot time that each GiB of a machine's memory above a limit adds; missing where large machines boot as fast as small ones. */
  perGiB?: { aboveGiB: number; lowMs: number; middleMs: number; highMs: number }
  /** Dated source of the figures, for people. */
  source: string
}

/** Keys of the job file that a backend may be unable to follow, by their last names. */
export const OPTIONAL_KEYS = ['disk_throughput', 'disk_iops', 'shm', 'tags'] as const
export type OptionalKey = (typeof OPTIONAL_KEYS)[number]

/** What a backend can do, as data. */
export interface Capabilities {
  capacityTypes: readonly CapacityType[]
  /** Who runs a container image of the user: the runner through the machine's Docker, the provider, or `none`. */
  imageRunner: 'runner' | 'provider' | 'none'
  /** Whether the launch itself starts the runner, or a call of `start` once the machine accepts it. */
  runnerStart: 'with-launch' | 'after-launch'
  /** Where a machine reads its notice; missing if the start command names the place, or without notices. */
  notice?: NoticeSource
  /**
   * How a repeated launch is made harmless. With `token`, the provider recognises the order's token. With `tag`, an order with an unknown
   * effect is never repeated; its tag is searched for.
   */
  idempotency: 'token' | 'tag'
  /** How a machine claims its attempt: by the provider's id (the default), or by the name of its send if it cannot learn that id. */
  claimsBy?: 'id' | 'send'
  /** The event that ends billing: the machine's own power-off, or our `terminate` (at the latest its answer). */
  billsUntil: 'exit' | 'terminate'
  /**
   * Number of offers in one order: any number of interchangeable ones (the default), or exactly one type at one place, so that only the
   * tried offer is avoided afterwards.
   */
  offersPerOrder?: 'many' | 'one'
  /** A launch may be accepted and then wait for capacity (`queued` of `Observation`), free of charge. */
  queues?: boolean
  /**
   * Meaning of `gone`. `confirmed` (the default): nothing of the machine runs. `requested`: only its end was requested, or the provider
   * lists it no longer; nothing else starts before the result exists or the lease has certainly expired.
   */
  ends?: 'confirmed' | 'requested'
  /** Time from an accepted launch to the runner's start; if missing, the planner assumes a wide range. */
  boot?: BootTime
  /** Keys that it cannot follow: `planner/plan/unmet-keys.ts` decides what becomes of its offers. Missing if it follows all. */
  ignores?: readonly OptionalKey[]
  /** The provider's limits on calls; missing without any. */
  pace?: Pace
  /** Whether prices are read from the provider, from a table, or from the configuration. */
  price: 'live' | 'static' | 'configured'
}
