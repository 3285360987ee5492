import { billedMs, spendOver } from '../../core/money/meter'
import type { MicroUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { HOUR_MS } from '../../core/time/time'
import { USEFUL_RUN_MS } from '../plan/assumptions'
import type { Storing } from '../plan/storing'
import { lossesAt, type Losses, type Lives } from './losses'
import type { Parts } from './parts'
import { column, POINTS, uniformOf } from './points'
import { valuesOf, type Values } from './values'

/**
 * Outcomes of a job on an offer at each of the points, which are equally probable. The columns are valid until the next sample: a plan
 * makes thousands of samples, and separate columns would cost more than their contents.
 */
export interface Sample {
  /** Time from the order until the job is done. */
  doneMs: Float64Array
  cost: Float64Array
  /** Cost without the charges of the store, which a budget does not cover. */
  budgeted: Float64Array
  /** Part of the cost that the job adds, for capacity that is paid anyway; missing if it is the whole cost. */
  extra?: Float64Array
  /** Mean number of interruptions. */
  interruptions: number
}

/** Cost of moving data, for a job without interruptions and for each further machine. */
export interface Moving {
  onceMicroUsd: MicroUsd
  perMachineMicroUsd: MicroUsd
}

/** A job's life at each point without interruptions: `moves` is how often it changes machines as planned. */
const LIVES: Lives & { moves: Float64Array } = {
  calmMs: column(),
  restartMs: column(),
  everyMs: column(),
  moves: column(),
}
const DONE_MS = column()
const COST = column()
const BUDGETED = column()
const EXTRA = column()

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
  fillLives(parts, values, { offer, reservedMs })
  const { rate, shakyRate } = values
  const losses = lossesAt(LIVES, { rate, shakyRate: parts.shakyRate === parts.rate ? undefined : shakyRate })
  fillCosts(values, losses, { offer, moving, storing })
  return {
    doneMs: DONE_MS,
    cost: COST,
    budgeted: BUDGETED,
    extra: offer.reservation !== undefined ? EXTRA : undefined,
    interruptions: losses.mean,
  }
}

function fillLives(
  parts: Parts,
  { boot, image, setup, fetch, restore, duration, speed, saving, stop }: Values,
  { offer, reservedMs }: { offer: Offer; reservedMs: number },
): void {
  for (let i = 0; i < POINTS; i += 1) {
    const freshMs = boot[i]! + image[i]! + setup[i]! + fetch[i]!
    const restartMs = freshMs + restore[i]!
    const startMs = parts.isResumed ? restartMs : freshMs
    const workMs = parts.workMs * duration[i]! * speed[i]!
    const busyMs = workMs + Math.floor(workMs / parts.everyMs) * saving[i]!
    const atOnceMs = startMs + busyMs + stop[i]!
    const changeMs = restartMs + stop[i]!
    const moves = movesOf(atOnceMs, { offer, changeMs, reservedMs })
    LIVES.calmMs[i] = atOnceMs + moves * changeMs
    LIVES.restartMs[i] = restartMs
    LIVES.everyMs[i] = Math.min(parts.everyMs, busyMs)
    LIVES.moves[i] = moves
  }
}

/** Returns how often the provider's run limit, or the end of a reservation, moves a job to another machine. */
function movesOf(
  needsMs: number,
  { offer: { runMsMax }, changeMs, reservedMs }: { offer: Offer; changeMs: number; reservedMs: number },
): number {
  if (runMsMax === undefined) return needsMs > reservedMs ? 1 : 0
  return Math.max(0, Math.ceil((needsMs - runMsMax) / Math.max(USEFUL_RUN_MS, runMsMax - changeMs)))
}

function fillCosts(
  { wait, waitAgain, price, store }: Values,
  losses: Losses,
  { offer, moving, storing }: { offer: Offer; moving: Moving; storing: Storing | undefined },
): void {
  const idleMicroUsdPerHour = offer.reservation?.idleMicroUsdPerHour
  for (let i = 0; i < POINTS; i += 1) {
    const further = losses.count[i]! + LIVES.moves[i]!
    const onMs = LIVES.calmMs[i]! + losses.ms[i]!
    const billed = billedAt(i, onMs, { further, offer })
    const movingMicroUsd = moving.onceMicroUsd + further * moving.perMachineMicroUsd
    const priceMicroUsd = offer.priceMicroUsdPerHour * price[i]!
    const budgeted = spendOver(billed, priceMicroUsd) + movingMicroUsd
    const storeMicroUsd = store[i]! * storingOver(onMs, { further, storing })
    DONE_MS[i] = wait[i]! + further * waitAgain[i]! + onMs
    BUDGETED[i] = budgeted
    COST[i] = budgeted + storeMicroUsd
    if (idleMicroUsdPerHour === undefined) continue
    const extra = Math.max(0, priceMicroUsd - idleMicroUsdPerHour)
    EXTRA[i] = spendOver(billed, extra) + movingMicroUsd + storeMicroUsd
  }
}

const CUT = uniformOf('cut')

/** Bills each machine separately. The first one lives longer or shorter than an equal share, so that the rounding varies. */
function billedAt(i: number, onMs: number, { further, offer }: { further: number; offer: Offer }): number {
  if (further === 0) return billedMs(onMs, offer)
  const shareMs = onMs / (1 + further)
  const others = (further - 1) * billedMs(shareMs, offer)
  return billedMs(shareMs * (0.5 + CUT[i]!), offer) + others + billedMs(shareMs * (1.5 - CUT[i]!), offer)
}

function storingOver(
  onMs: number,
  { further, storing }: { further: number; storing: Storing | undefined },
): MicroUsd {
  if (storing === undefined) return 0
  const { onceMicroUsd, perMachineMicroUsd, perHourMicroUsd } = storing
  return onceMicroUsd + further * perMachineMicroUsd + (perHourMicroUsd * onMs) / HOUR_MS
}
