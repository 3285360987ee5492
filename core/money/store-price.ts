import type { MicroUsd } from './money'

/** Prices of a deployment's store for keeping data and for requests. */
export interface StorePrice {
  /** Name for people: `S3 Standard in us-east-1`. */
  name: string
  /** Price per 2^30 bytes and month of 730 hours. */
  microUsdPerGbMonth: MicroUsd
  /** Price per 1,000 requests that write or list. */
  microUsdPerThousandWrites: MicroUsd
  /** Price per 1,000 requests that read. */
  microUsdPerThousandReads: MicroUsd
  /** Time at which the prices were read. */
  observedAtMs: number
}
