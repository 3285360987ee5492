import type { JobSpec } from '../core/job'
import { spendOver } from '../core/meter'
import { isInterruptible, type Offer } from '../core/offer'
import { HOUR_MS } from '../core/time'
import {
  ASSUMED_CHECKPOINT_EVERY_MS,
  ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR,
  RECOVERY_MS,
  SHAKY_COST_FACTOR_MAX,
  SHAKY_INTERRUPTIONS_PER_HOUR,
} from './assumptions'
import { runLimitStops } from './run-limit'
import type { TransferEstimate } from './transfer'
import { workOn, type WorkTerms } from './work'

/** Expected time and money of a job, or of the rest of it, on an offer. */
export interface Estimate {
  durationMs: number
  costMicroUsd: number
  /** The part of it that is not billed either way; missing if that is all of it. */
  extraCostMicroUsd?: number
  /** Expected number of interruptions until the job is done. */
  interruptions: number
}

/**
 * Expected time and money of the rest of a job on an offer: its work there, plus recovery and half a checkpoint interval of repeated work for
 * every expected interruption. A shaky pool is expected to interrupt more often, within a bound.
 */
export function estimate(
  offer: Offer,
  spec: JobSpec,
  { isShaky = false, leftShare }: { isShaky?: boolean; leftShare?: number | undefined } = {},
): Estimate {
  const perHour = isInterruptible(offer)
    ? (offer.interruptionsPerHour ?? ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR)
    : 0
  const terms = { spec, leftShare }
  const calm = estimateAt(offer, terms, perHour)
  if (!isShaky || perHour >= SHAKY_INTERRUPTIONS_PER_HOUR) return calm
  const shaky = estimateAt(offer, terms, SHAKY_INTERRUPTIONS_PER_HOUR)
  const mostMs = Math.floor(calm.durationMs * SHAKY_COST_FACTOR_MAX)
  return shaky.durationMs <= mostMs ? shaky : { ...shaky, ...timeAndMoney(mostMs, offer) }
}

/**
 * The same including data transfer to and from a store in another Region: its price, and the time that the machine waits for it.
 */
export function withTransfer(
  expected: Estimate,
  { priceMicroUsdPerHour, reservation }: Pick<Offer, 'priceMicroUsdPerHour' | 'reservation'>,
  transfer: Pick<TransferEstimate, 'costMicroUsd' | 'durationMs'>,
): Estimate {
  const { costMicroUsd, extraCostMicroUsd } = expected
  const added = transfer.costMicroUsd + spendOver(transfer.durationMs, priceMicroUsdPerHour)
  const extraPerHour = Math.max(0, priceMicroUsdPerHour - (reservation?.idleMicroUsdPerHour ?? 0))
  const extra = transfer.costMicroUsd + spendOver(transfer.durationMs, extraPerHour)
  return {
    ...expected,
    durationMs: expected.durationMs + transfer.durationMs,
    costMicroUsd: costMicroUsd + added,
    ...(extraCostMicroUsd === undefined ? {} : { extraCostMicroUsd: extraCostMicroUsd + extra }),
  }
}

function estimateAt(offer: Offer, terms: WorkTerms, interruptionsPerHour: number): Estimate {
  const { spec } = terms
  const workMs = workOn(offer, terms).ms
  const interruptions = (interruptionsPerHour * workMs) / HOUR_MS
  const redoneMs = (spec.checkpoint.everyMs ?? ASSUMED_CHECKPOINT_EVERY_MS) / 2
  // Before its time is up a machine is left in good order: nothing is done again.
  const movingMs = runLimitStops(offer, workMs) * RECOVERY_MS
  const durationMs = Math.round(workMs + movingMs + interruptions * (RECOVERY_MS + redoneMs))
  return { ...timeAndMoney(durationMs, offer), interruptions }
}

function timeAndMoney(durationMs: number, offer: Offer): Omit<Estimate, 'interruptions'> {
  const { priceMicroUsdPerHour, reservation } = offer
  const costMicroUsd = spendOver(durationMs, priceMicroUsdPerHour, offer)
  if (reservation === undefined) return { durationMs, costMicroUsd }
  const extra = Math.max(0, priceMicroUsdPerHour - reservation.idleMicroUsdPerHour)
  return { durationMs, costMicroUsd, extraCostMicroUsd: spendOver(durationMs, extra, offer) }
}
