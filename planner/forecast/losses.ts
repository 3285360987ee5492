import { HOUR_MS } from '../../core/time/time'
import { SHAKY_LOSS_MAX } from '../plan/assumptions'
import { column, normalOf, POINTS, uniformOf } from './points'

/** A job's life at each point, as far as interruptions depend on it. */
export interface Lives {
  /** The time that machines are on without interruptions. */
  calmMs: Float64Array
  /** Time until a further machine trains. */
  restartMs: Float64Array
  /** Between two checkpoints, at most the work. */
  everyMs: Float64Array
}

/** Cost of interruptions at each point. */
export interface Losses {
  ms: Float64Array
  count: Float64Array
  /** The mean number of interruptions at all points. */
  mean: number
}

/** Largest exponent: a larger one would mean that a job barely progresses. */
const LOSS_EXPONENT_MAX = 2
const NORMAL_LOSS = normalOf('loss')
const NORMAL_COUNT = normalOf('interruptions')
const UNIFORM_COUNT = uniformOf('interruptions')
/** Above it the normal distribution is close enough. */
const POISSON_MEAN_MAX = 30

const losses = (): Losses => ({ ms: column(), count: column(), mean: 0 })
const USUAL = losses()
const SHAKY = losses()

/** The losses at interruption rates per hour, until the next call. `shakyRate` instead of `rate` where the job lost a machine recently. */
export function lossesAt(
  lives: Lives,
  { rate, shakyRate }: { rate: Float64Array; shakyRate: Float64Array | undefined },
): Losses {
  fillLosses(USUAL, rate, lives)
  if (shakyRate === undefined) return USUAL
  fillLosses(SHAKY, shakyRate, lives)
  boundShaky(lives.calmMs)
  return SHAKY
}

/** A pool that recently took a machine lengthens the job at most by half, and never shortens it. */
function boundShaky(calmMs: Float64Array): void {
  for (let i = 0; i < POINTS; i += 1) {
    const usualMs = USUAL.ms[i]!
    const mostMs = usualMs + SHAKY_LOSS_MAX * (calmMs[i]! + usualMs)
    SHAKY.ms[i] = Math.min(mostMs, Math.max(usualMs, SHAKY.ms[i]!))
  }
}

/**
 * The time that interruptions cost: each a new start, and the work since the last checkpoint, half an interval in the mean. Repeated time
 * can be interrupted again, which Daly's exponential counts.
 */
function fillLosses(into: Losses, rates: Float64Array, { calmMs, restartMs, everyMs }: Lives): void {
  into.mean = 0
  for (let i = 0; i < POINTS; i += 1) {
    const rate = rates[i]!
    const eachMs = restartMs[i]! + everyMs[i]! / 2
    const exponent = Math.min(LOSS_EXPONENT_MAX, (rate * eachMs) / HOUR_MS)
    const growth = exponent === 0 ? 1 : Math.expm1(exponent) / exponent
    const mean = ((rate * calmMs[i]!) / HOUR_MS) * growth
    const count = poisson(mean, i)
    const spreadMs = Math.sqrt(count / 12) * everyMs[i]! * NORMAL_LOSS[i]!
    into.ms[i] = Math.max(count * restartMs[i]!, count * eachMs + spreadMs)
    into.count[i] = count
    into.mean += mean / POINTS
  }
}

function poisson(mean: number, i: number): number {
  if (mean > POISSON_MEAN_MAX) return Math.max(0, Math.round(mean + Math.sqrt(mean) * NORMAL_COUNT[i]!))
  const uniform = UNIFORM_COUNT[i]!
  let count = 0
  let probability = Math.exp(-mean)
  for (let sum = probability; sum < uniform; sum += probability) {
    count += 1
    probability *= mean / count
  }
  return count
}
