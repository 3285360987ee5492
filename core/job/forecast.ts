import { formatUsd, type MicroUsd } from '../money/money'
import { formatDuration } from '../time/time'

/** Parts of a forecast, each with its own range (`planner/forecast/parts.ts`). */
export const FORECAST_PARTS = [
  /** `wait`: until a launch is accepted or leaves the provider's queue. */
  'wait',
  'boot',
  'image',
  'setup',
  /** Code and inputs. */
  'fetch',
  'restore',
  /** The stated or assumed training time. */
  'duration',
  /** `speed`: of the accelerator, as a multiple of the one that the training time refers to. */
  'speed',
  /** The program's time for writing its checkpoints. */
  'saving',
  /** Interruptions, each with a new start and repeated work. */
  'interruptions',
  /** `stop`: from the end of the training until the machine is off. */
  'stop',
  /** The provider's rounding of time. */
  'billing',
  /** Changes of the price. */
  'price',
  /** `store`: charges for keeping data and for requests. */
  'store',
] as const
/** @experimental */
export type ForecastPart = (typeof FORECAST_PARTS)[number]

/** `83 %`; the figures do not reach certainty: `> 99 %`, `< 1 %`. */
export function chanceInWords(chance: number): string {
  if (chance >= 0.995) return '> 99 %'
  return chance < 0.005 ? '< 1 %' : `${Math.round(chance * 100)} %`
}

/**
 * Forecast of the cost and end of the rest of a job on an offer, as a range around the placement's `costMicroUsd` and `durationMs`.
 * @experimental
 */
export interface Forecast {
  /** Range of the cost: nine of ten jobs are expected in it, one in twenty below and one in twenty above. */
  cost: { lowMicroUsd: MicroUsd; highMicroUsd: MicroUsd }
  /** Range of the time from the order until the job is done, with the same meaning as `cost`. */
  finish: { lowMs: number; highMs: number }
  /** Median time from the order until the training begins. `trainingMs` is the median training time without interruptions. */
  startMs: number
  trainingMs: number
  /** The part of `startMs` until a launch is accepted. */
  waitMs: number
  /** Mean number of interruptions until the job is done. */
  interruptions: number
  /** Chances from 0 to 1; missing without such a limit, and for a deadline also if the amount of work is unknown. */
  chances: { deadline?: number; budget?: number }
  /** The up to three parts that make each range wide, the widest first. */
  drivers: { cost: ForecastPart[]; finish: ForecastPart[] }
}

/** Largest factor between the ends of a range of high confidence. A stated duration alone has 1.6. */
const HIGH_CONFIDENCE_FACTOR = 1.7
const MEDIUM_CONFIDENCE_FACTOR = 3

/**
 * Rates how well the cost of a placement is known (or its time if it is free), by the width of the range. Old prices and unknown speeds
 * widen it.
 */
export function confidenceOf({ cost, finish }: Pick<Forecast, 'cost' | 'finish'>): 'high' | 'medium' | 'low' {
  const { lowMicroUsd, highMicroUsd } = cost
  const [low, high] = highMicroUsd === 0 ? [finish.lowMs, finish.highMs] : [lowMicroUsd, highMicroUsd]
  if (high <= low * HIGH_CONFIDENCE_FACTOR) return 'high'
  return high <= low * MEDIUM_CONFIDENCE_FACTOR ? 'medium' : 'low'
}

/** Expected cost and time of an attempt when it was planned, recorded with its order. */
export interface Expected {
  /** Cost as in its placement. */
  costMicroUsd: MicroUsd
  durationMs: number
  forecast: Forecast
  /** The job gave no duration. */
  isDurationAssumed?: true
}

/** `$6.56 ($5.26 to $8.10) in 8h 7m (6h 40m to 10h)` */
export function expectedInWords({ costMicroUsd, durationMs, forecast }: Expected): string {
  const { cost, finish } = forecast
  const money = `${formatUsd(costMicroUsd)} (${formatUsd(cost.lowMicroUsd)} to ${formatUsd(cost.highMicroUsd)})`
  const time = `${formatDuration(durationMs)} (${formatDuration(finish.lowMs)} to ${formatDuration(finish.highMs)})`
  return `${money} in ${time}`
}

/** Forecast of a placement whose time and cost do not matter. */
export const NO_FORECAST: Forecast = {
  cost: { lowMicroUsd: 0, highMicroUsd: 0 },
  finish: { lowMs: 0, highMs: 0 },
  startMs: 0,
  trainingMs: 0,
  waitMs: 0,
  interruptions: 0,
  chances: {},
  drivers: { cost: [], finish: [] },
}
