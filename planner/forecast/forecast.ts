import type { Capabilities } from '../../core/capabilities'
import type { Forecast } from '../../core/job/forecast'
import { spendOver } from '../../core/money/meter'
import type { MicroUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { stoppingMs } from '../../core/time/timing'
import type { PlanRequest } from '../plan/request'
import { storingFor } from '../plan/storing'
import { transferFor, type TransferEstimate } from '../plan/transfer'
import type { Work } from '../plan/work'
import { driversOf } from './drivers'
import { partsOf, type Parts } from './parts'
import { sampleOf, type Moving } from './sample'

/** Expected time and cost of the rest of a job on an offer. */
export interface Forecasted {
  /** Medians. */
  durationMs: number
  costMicroUsd: MicroUsd
  /** The part of the cost that a budget covers: all but the charges of the store. */
  budgetedMicroUsd: MicroUsd
  /** Part of the cost that the job adds, for capacity that is paid anyway; missing if it is the whole cost. */
  extraCostMicroUsd?: MicroUsd
  /** Mean number of interruptions until the job is done. */
  interruptions: number
  /** The mean cost of moving data; missing if that is free. */
  transfer: TransferEstimate | undefined
  work: Work
  forecast: Forecast
}

/**
 * Estimates time and cost of the rest of a job on an offer from the facts at planning time; no other code estimates them. Equal facts give
 * equal figures. `isShaky`: the job lost a machine there recently.
 */
export function forecastOf(
  offer: Offer,
  capabilities: Capabilities,
  { request, isShaky }: { request: PlanRequest; isShaky: boolean },
): Forecasted {
  const parts = partsOf(offer, capabilities, { request, isShaky })
  const storing = storingFor(request, parts.everyMs)
  const sample = sampleOf(parts, offer, {
    moving: movingOf(offer, request),
    storing,
    reservedMs: reservedMsOf(offer, request),
  })
  const { doneMs, cost, budgeted, extra, interruptions } = sample
  const chances = chancesOf(offer, request, sample)
  for (const values of [doneMs, cost, budgeted, extra]) values?.sort()
  return {
    durationMs: quantile(doneMs, 0.5),
    costMicroUsd: quantile(cost, 0.5),
    budgetedMicroUsd: quantile(budgeted, 0.5),
    extraCostMicroUsd: extra !== undefined ? quantile(extra, 0.5) : undefined,
    interruptions,
    transfer: transferFor(offer, request, interruptions),
    work: parts.work,
    forecast: {
      cost: { lowMicroUsd: quantile(cost, LOW), highMicroUsd: quantile(cost, HIGH) },
      finish: { lowMs: quantile(doneMs, LOW), highMs: quantile(doneMs, HIGH) },
      startMs: startMsOf(parts),
      trainingMs: parts.workMs,
      waitMs: Math.round(parts.wait.middle),
      interruptions: Math.round(interruptions * 100) / 100,
      chances,
      drivers: driversOf(parts, offer, { interruptions, storing }),
    },
  }
}

const LOW = 0.05
const HIGH = 0.95

/** The median of unsorted values, rounded to a whole number. */
export function medianOf(values: Float64Array): number {
  return quantile(values.sort(), 0.5)
}

/** Interpolates between sorted values and rounds to a whole number. `part` is never so small or large that it is outside all of them. */
function quantile(sorted: Float64Array, part: number): number {
  const at = part * sorted.length - 0.5
  const below = Math.floor(at)
  return Math.round(sorted[below]! + (sorted[below + 1]! - sorted[below]!) * (at - below))
}

function startMsOf({ wait, boot, image, setup, fetch, restore, isResumed }: Parts): number {
  const middles = [wait, boot, image, setup, fetch].reduce((sum, { middle }) => sum + middle, 0)
  return Math.round(middles + (isResumed ? restore.middle : 0))
}

/** The price of moving data grows with each machine that reads it again. */
export function movingOf(offer: Offer, request: PlanRequest): Moving {
  const once = transferFor(offer, request, 0)?.costMicroUsd ?? 0
  const twice = transferFor(offer, request, 1)?.costMicroUsd ?? 0
  return { onceMicroUsd: once, perMachineMicroUsd: twice - once }
}

/** Time until the end of a reservation. */
export function reservedMsOf({ usableUntilMs, runMsMax }: Offer, request: PlanRequest): number | undefined {
  if (usableUntilMs === undefined || runMsMax !== undefined) return undefined
  return usableUntilMs - request.nowMs - (request.startsInMs ?? 0)
}

/**
 * Returns the time until a job's deadline, without the time to save and stop; missing if the job has none, or if the amount of its work is
 * unknown: without a stated duration, and for a later attempt unless a checkpoint shows the rest.
 */
export function timeLeftMs(request: PlanRequest): number | undefined {
  const { spec, deadlineAtMs, nowMs, startsInMs = 0, timing, isFirst, leftShare } = request
  const isWorkKnown = spec.durationMs !== undefined && (isFirst === true || leftShare !== undefined)
  if (deadlineAtMs === undefined || !isWorkKnown) return undefined
  return deadlineAtMs - nowMs - startsInMs - stoppingMs(timing)
}

/** Money that a machine needs beyond its work: for the time to save and stop. */
export function stoppingMicroUsd({ priceMicroUsdPerHour }: Offer, { timing }: PlanRequest): MicroUsd {
  return spendOver(stoppingMs(timing), priceMicroUsdPerHour)
}

function chancesOf(
  offer: Offer,
  request: PlanRequest,
  { doneMs, budgeted }: { doneMs: Float64Array; budgeted: Float64Array },
): Forecast['chances'] {
  const leftMs = timeLeftMs(request)
  const { remainingMicroUsd } = request
  return {
    deadline: leftMs !== undefined ? shareOf(doneMs, leftMs) : undefined,
    budget:
      remainingMicroUsd !== undefined
        ? shareOf(budgeted, remainingMicroUsd - stoppingMicroUsd(offer, request))
        : undefined,
  }
}

function shareOf(values: Float64Array, most: number): number {
  let kept = 0
  for (let i = 0; i < values.length; i += 1) if (values[i]! <= most) kept += 1
  return Math.round((kept / values.length) * 100) / 100
}
