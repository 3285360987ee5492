import { formatUsd, type MicroUsd } from '../money/money'
import { formatDuration } from '../time/time'

/** What a forecast consists of. Each part has its own range (`planner/forecast/parts.ts`). */
export const FORECAST_PARTS = [
  /** Until a launch is accepted, or leaves the provider's queue. */
  'wait',
  'boot',
  'image',
  'setup',
  /** Code and inputs. */
  'fetch',
  'restore',
  /** The stated or assumed training time. */
  'duration',
  /** The speed of the accelerator, as a multiple of the one that the training time refers to. */
  'speed',
  /** The program's time for writing its checkpoints. */
  'saving',
  /** Interruptions, each with a new start and repeated work. */
  'interruptions',
  /** From the end of the training until the machine is off. */
  'stop',
  /** The provider's rounding of time. */
  'billing',
  /** Changes of the price. */
  'price',
  /** What the store charges for keeping data and for requests. */
  'store',
] as const
/** @experimental */
export type ForecastPart = (typeof FORECAST_PARTS)[number]

/** `83 %`; the figures do not reach certainty: `> 99 %`, `< 1 %`. */
export function chanceInWords(chance: number): string {
  if (chance >= 0.995) return '> 99 %'
  return chance < 0.005 ? '< 1 %' : `${Math.round(chance * 100)} %`
}

/** What the rest of a job costs on an offer and when it is done, as a range around the placement's `costMicroUsd` and `durationMs`. @experimental */
export interface Forecast {
  /** Nine of ten jobs are expected in it: one of twenty below it, one above. */
  cost: { lowMicroUsd: MicroUsd; highMicroUsd: MicroUsd }
  /** The same for the time from the order until the job is done. */
  finish: { lowMs: number; highMs: number }
  /** From the order until the training begins, and the training without interruptions; medians. */
  startMs: number
  trainingMs: number
  /** The part of `startMs` until a launch is accepted. */
  waitMs: number
  /** Mean number of interruptions until the job is done. */
  interruptions: number
  /** From 0 to 1; missing without such a limit, and for a deadline also if the amount of work is unknown. */
  chances: { deadline?: number; budget?: number }
  /** The up to three parts that make each range wide, the widest first. */
  drivers: { cost: ForecastPart[]; finish: ForecastPart[] }
}

/** How far the ends of a range may be apart, as a factor. A stated duration alone has 1.6. */
const HIGH_CONFIDENCE_FACTOR = 1.7
const MEDIUM_CONFIDENCE_FACTOR = 3

/** How well the cost of a placement is known, or its time where it is free, by the width of the range; old prices and unknown speeds widen it. */
export function confidenceOf({ cost, finish }: Pick<Forecast, 'cost' | 'finish'>): 'high' | 'medium' | 'low' {
  const { lowMicroUsd, highMicroUsd } = cost
  const [low, high] = highMicroUsd === 0 ? [finish.lowMs, finish.highMs] : [lowMicroUsd, highMicroUsd]
  if (high <= low * HIGH_CONFIDENCE_FACTOR) return 'high'
  return high <= low * MEDIUM_CONFIDENCE_FACTOR ? 'medium' : 'low'
}

/** What an attempt was expected to cost and take when it was planned; recorded with its order. */
export interface Expected {
  /** As in its placement. */
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

/** Of a placement whose time and cost do not matter. */
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
