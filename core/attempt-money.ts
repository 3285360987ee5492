/** What control plane and runner say to each other of money, as parts of their documents. */
import type { MicroUsd } from './money'

/** Money from which the runner works out by itself when it must be off, should it never hear of us again. */
export interface AttemptBudget {
  /** What the attempt may cost in all. */
  microUsd: MicroUsd
  /** The most that an hour of its machine can come to cost. */
  priceMaxMicroUsdPerHour: MicroUsd
}

/** What a machine that still runs has cost. */
export interface Metered {
  toAtMs: number
  costMicroUsd: MicroUsd
  /** The price then in force. */
  priceMicroUsdPerHour: MicroUsd
}
