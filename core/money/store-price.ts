import type { MicroUsd } from './money'

/** What the provider of a deployment's store charges for keeping data and for requests. */
export interface StorePrice {
  /** For people: `S3 Standard in us-east-1`. */
  name: string
  /** Per 2^30 bytes and month of 730 hours. */
  microUsdPerGbMonth: MicroUsd
  /** Per 1,000 requests that write or list. */
  microUsdPerThousandWrites: MicroUsd
  /** Per 1,000 requests that read. */
  microUsdPerThousandReads: MicroUsd
  /** When the prices were read. */
  observedAtMs: number
}
