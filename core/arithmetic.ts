import type { ForecastPart } from './job/forecast'
import type { MicroUsd } from './money/money'

/** A line of the arithmetic: a part of the forecast, moves to other machines, moving data, or the ranges of all parts. */
export type ArithmeticPart = ForecastPart | 'moves' | 'transfer' | 'ranges'

/** Time and cost that one part adds to a placement. The lines sum to both totals exactly. @experimental */
export interface ArithmeticLine {
  part: ArithmeticPart
  /** Name of the part for people: `the boot`. */
  words: string
  /** Increase of the median duration by this part, after the parts before it. */
  addedMs: number
  addedMicroUsd: MicroUsd
  /** The 5 % and 95 % points of a part that is a time; null for others. */
  lowMs: number | null
  highMs: number | null
  /** Source of the figure, for people. */
  source: string
}

/** One offer of a plan, explained. @experimental */
export interface OfferExplained {
  offerKey: string
  /** Rank among the plan's offers of its type, from 1; null if the offer is excluded. */
  rank: number | null
  rowsTotal: number
  /** Median cost; null if the offer is excluded. */
  costMicroUsd: MicroUsd | null
  durationMs: number | null
  reasons: string[]
  risks: string[]
  /** Lines that sum to both totals. */
  arithmetic: ArithmeticLine[]
  /** Reason for exclusion; null for an offer that fits. */
  excludedBecause: string | null
}
