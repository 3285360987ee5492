import { billedMs, spendOver } from '../../core/meter'
import type { MicroUsd } from '../../core/money'
import type { Offer } from '../../core/offer'
import { HOUR_MS } from '../../core/time'
import { SHAKY_LOSS_MAX, USEFUL_RUN_MS } from '../assumptions'
import type { Storing } from '../storing'
import type { Parts } from './parts'
import { normalOf, POINTS, uniformOf, type Dimension } from './points'
import { valuesAt, type Range } from './range'

/** What may happen to a job on an offer, at each of the points; all of them are equally probable. */
export interface Sample {
  /** From the order until the job is done. */
  doneMs: Float64Array
  cost: Float64Array
  /** The same without the charges of the store: what a budget covers. */
  budgeted: Float64Array
  /** The part of the cost that is not billed either way; missing if that is all of it. */
  extra?: Float64Array
  /** Mean number of interruptions. */
  interruptions: number
}

/** Cost of moving data, for a job without interruptions and for each further machine. */
export interface Moving {
  onceMicroUsd: MicroUsd
  perMachineMicroUsd: MicroUsd
}

/** Evaluates the life of a job at each point: its machines, each billed as its provider bills. `reservedMs`: until its reservation ends. */
export function sampleOf(
  parts: Parts,
  offer: Offer,
  {
    moving,
    storing,
    reservedMs = Infinity,
  }: { moving: Moving; storing: Storing | undefined; reservedMs?: number | undefined },
): Sample {
  const values = valuesOf(parts)
  const { wait, waitAgain, boot, image, setup, fetch, restore, duration, speed, saving, stop, price, store } =
    values
  const sample: Sample = {
    doneMs: new Float64Array(POINTS),
    cost: new Float64Array(POINTS),
    budgeted: new Float64Array(POINTS),
    ...(offer.reservation !== undefined && { extra: new Float64Array(POINTS) }),
    interruptions: 0,
  }
  for (let i = 0; i < POINTS; i += 1) {
    const freshMs = boot[i]! + image[i]! + setup[i]! + fetch[i]!
    const restartMs = freshMs + restore[i]!
    const startMs = parts.isResumed ? restartMs : freshMs
    const workMs = parts.workMs * duration[i]! * speed[i]!
    const busyMs = workMs + Math.floor(workMs / parts.everyMs) * saving[i]!
    const atOnceMs = startMs + busyMs + stop[i]!
    const moves = movesOf(atOnceMs, { offer, changeMs: restartMs + stop[i]!, reservedMs })
    const calmMs = atOnceMs + moves * (restartMs + stop[i]!)
    const loss = boundedLoss(values, { i, calmMs, restartMs, everyMs: Math.min(parts.everyMs, busyMs) })
    const machines = 1 + loss.count + moves
    const onMs = calmMs + loss.ms
    const billed = billedOver(onMs, { i, machines, offer })
    const movingMicroUsd = moving.onceMicroUsd + (machines - 1) * moving.perMachineMicroUsd
    const priceMicroUsd = offer.priceMicroUsdPerHour * price[i]!
    sample.doneMs[i] = wait[i]! + (machines - 1) * waitAgain[i]! + onMs
    const storeMicroUsd = store[i]! * storingOver(onMs, { machines, storing })
    sample.budgeted[i] = spendOver(billed, priceMicroUsd) + movingMicroUsd
    sample.cost[i] = sample.budgeted[i]! + storeMicroUsd
    if (sample.extra !== undefined) {
      const extra = Math.max(0, priceMicroUsd - offer.reservation!.idleMicroUsdPerHour)
      sample.extra[i] = spendOver(billed, extra) + movingMicroUsd + storeMicroUsd
    }
    sample.interruptions += loss.mean / POINTS
  }
  return sample
}

function storingOver(
  onMs: number,
  { machines, storing }: { machines: number; storing: Storing | undefined },
): MicroUsd {
  if (storing === undefined) return 0
  const { onceMicroUsd, perMachineMicroUsd, perHourMicroUsd } = storing
  return onceMicroUsd + (machines - 1) * perMachineMicroUsd + (perHourMicroUsd * onMs) / HOUR_MS
}

/** How often the provider's limit of a run, or the end of a reservation, moves a job to another machine. */
function movesOf(
  needsMs: number,
  { offer: { runMsMax }, changeMs, reservedMs }: { offer: Offer; changeMs: number; reservedMs: number },
): number {
  if (runMsMax === undefined) return needsMs > reservedMs ? 1 : 0
  if (needsMs <= runMsMax) return 0
  return Math.ceil((needsMs - runMsMax) / Math.max(USEFUL_RUN_MS, runMsMax - changeMs))
}

interface Life {
  /** The point. */
  i: number
  calmMs: number
  restartMs: number
  everyMs: number
}

interface Loss {
  ms: number
  count: number
  /** Of `count`, at this point's rate. */
  mean: number
}

/** A pool that recently took a machine lengthens the job at most by half, and never shortens it. */
function boundedLoss({ rate, shakyRate }: Pick<Values, 'rate' | 'shakyRate'>, life: Life): Loss {
  const usual = lossOf(rate[life.i]!, life)
  if (shakyRate === rate) return usual
  const shaky = lossOf(shakyRate[life.i]!, life)
  const mostMs = usual.ms + SHAKY_LOSS_MAX * (life.calmMs + usual.ms)
  return { ...shaky, ms: Math.min(mostMs, Math.max(usual.ms, shaky.ms)) }
}

/** A larger one would mean that a job rarely gets on. */
const LOSS_EXPONENT_MAX = 2

/**
 * The time that interruptions cost: each a new start, and the work since the last checkpoint, half an interval in the mean. Repeated time
 * can be interrupted again, which Daly's exponential counts.
 */
function lossOf(rate: number, { i, calmMs, restartMs, everyMs }: Life): Loss {
  if (rate === 0) return NO_LOSS
  const eachMs = restartMs + everyMs / 2
  const exponent = Math.min(LOSS_EXPONENT_MAX, (rate * eachMs) / HOUR_MS)
  const growth = exponent === 0 ? 1 : Math.expm1(exponent) / exponent
  const mean = ((rate * calmMs) / HOUR_MS) * growth
  const count = poisson(mean, i)
  const spreadMs = Math.sqrt(count / 12) * everyMs * NORMAL_LOSS[i]!
  return { ms: Math.max(count * restartMs, count * eachMs + spreadMs), count, mean }
}

const NO_LOSS: Loss = { ms: 0, count: 0, mean: 0 }
const NORMAL_LOSS = normalOf('loss')
const NORMAL_COUNT = normalOf('interruptions')
const UNIFORM_COUNT = uniformOf('interruptions')
/** Above it the normal distribution is close enough. */
const POISSON_MEAN_MAX = 30

function poisson(mean: number, i: number): number {
  if (mean > POISSON_MEAN_MAX) return Math.max(0, Math.round(mean + Math.sqrt(mean) * NORMAL_COUNT[i]!))
  const uniform = UNIFORM_COUNT[i]!
  let count = 0
  let probability = Math.exp(-mean)
  for (let sum = probability; sum < uniform && count < 4 * POISSON_MEAN_MAX; sum += probability) {
    count += 1
    probability *= mean / count
  }
  return count
}

const CUT = uniformOf('cut')

/** Each machine is billed on its own; the first one lives longer or shorter than an equal share, so that the rounding varies. */
function billedOver(
  onMs: number,
  { i, machines, offer }: { i: number; machines: number; offer: Offer },
): number {
  if (machines === 1) return billedMs(onMs, offer)
  const shareMs = onMs / machines
  const others = (machines - 2) * billedMs(shareMs, offer)
  return billedMs(shareMs * (0.5 + CUT[i]!), offer) + others + billedMs(shareMs * (1.5 - CUT[i]!), offer)
}

/** The dimension in which a part deviates. */
const DIMENSION_OF = {
  ...{ wait: 'wait', waitAgain: 'wait', boot: 'boot', image: 'image', setup: 'setup', fetch: 'fetch' },
  ...{ restore: 'restore', duration: 'duration', speed: 'speed', saving: 'saving', stop: 'stop' },
  ...{ price: 'price', rate: 'rate', shakyRate: 'rate' },
  // A further dimension would change all forecasts, and `cut` moves a cost only a little.
  store: 'cut',
} as const satisfies Partial<Record<keyof Parts, Dimension>>

const PARTS = Object.keys(DIMENSION_OF) as (keyof typeof DIMENSION_OF)[]

/** Most parts have the same range at all offers of a plan. */
const known = new WeakMap<Range, Float64Array>()

type Values = Record<keyof typeof DIMENSION_OF, Float64Array>

function valuesOf(parts: Parts): Values {
  // Complete after the loop, which goes through all keys.
  const values = {} as Values
  for (const part of PARTS) {
    const range = parts[part]
    let found = known.get(range)
    if (found === undefined) known.set(range, (found = valuesAt(range, normalOf(DIMENSION_OF[part]))))
    values[part] = found
  }
  return values
}
