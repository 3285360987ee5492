import type { ForecastPart } from './job/forecast'
import type { MicroUsd } from './money/money'

/** A part of a forecast, and what it consists of besides those: moves to other machines, moving data, and the ranges of all parts. */
export type ArithmeticPart = ForecastPart | 'moves' | 'transfer' | 'ranges'

/** What one part adds to the expected time and cost of a placement. The lines sum to both figures exactly. @experimental */
export interface ArithmeticLine {
  part: ArithmeticPart
  /** For people: `the boot`. */
  words: string
  /** How much the median grows with this part, after those before it. */
  addedMs: number
  addedMicroUsd: MicroUsd
  /** Its own 5 % and 95 % points, of a part that is a time; null for others. */
  lowMs: number | null
  highMs: number | null
  /** Where it comes from, for people. */
  source: string
}

/** One offer of a plan, explained. @experimental */
export interface OfferExplained {
  offerKey: string
  /** Of its type among those of the plan, from 1; null if it is excluded. */
  rank: number | null
  rowsTotal: number
  /** Medians; null if it is excluded. */
  costMicroUsd: MicroUsd | null
  durationMs: number | null
  reasons: string[]
  risks: string[]
  /** They sum to both figures. */
  arithmetic: ArithmeticLine[]
  /** Null for an offer that fits. */
  excludedBecause: string | null
}
