import { spendOver } from '../core/meter'
import { formatUsd, type MicroUsd } from '../core/money'
import type { Offer } from '../core/offer'
import { formatDuration } from '../core/time'
import { estimate } from './price'
import type { PlanRequest } from './request'
import { transferFor } from './transfer'

/** Why a job that has not begun is not begun: in words, and what it would cost where that is why. */
export interface Refusal {
  reason: string
  costMicroUsd?: MicroUsd
}

/**
 * A job that gives its duration is not begun where its limits cannot hold it. Only its first attempt is judged: of what comes later
 * nobody knows how much is done already.
 */
export function exceedsLimits(offer: Offer, request: PlanRequest): Refusal | undefined {
  if (!request.isFirst || request.spec.durationMs === undefined) return undefined
  return tooLong(request.spec.durationMs, request) ?? tooDear(offer, request)
}

function tooLong(
  durationMs: number,
  { timing, deadlineAtMs, nowMs, startsInMs = 0 }: PlanRequest,
): Refusal | undefined {
  const reserveMs = timing.drainMs + timing.powerOffMs
  const leftMs = (deadlineAtMs ?? Infinity) - nowMs - startsInMs
  if (durationMs + reserveMs <= leftMs) return undefined
  const [needs, reserve, left] = [durationMs, reserveMs, leftMs].map(formatDuration)
  return { reason: `it takes ${needs}, and ${reserve} to save and stop; the deadline is in ${left}` }
}

function tooDear(offer: Offer, request: PlanRequest): Refusal | undefined {
  const { spec, timing, remainingMicroUsd } = request
  if (remainingMicroUsd === undefined) return undefined
  const { durationMs, interruptions } = estimate(offer, spec)
  const reserveMs = timing.drainMs + timing.powerOffMs
  const { priceMicroUsdPerHour, billedAtLeastMs = 0 } = offer
  const transfer = transferFor(offer, request, interruptions)?.costMicroUsd ?? 0
  const machineMicroUsd = spendOver(Math.max(durationMs + reserveMs, billedAtLeastMs), priceMicroUsdPerHour)
  const costMicroUsd = machineMicroUsd + transfer
  if (costMicroUsd <= remainingMicroUsd) return undefined
  const [needs, reserve] = [durationMs, reserveMs].map(formatDuration)
  const [price, cost, budget] = [priceMicroUsdPerHour, costMicroUsd, remainingMicroUsd].map(formatUsd)
  const repeated = interruptions > 0 ? ' (what interruptions are expected to take is in it)' : ''
  const moved = transfer === 0 ? '' : ` and ${formatUsd(transfer)} for moving its data`
  return {
    reason: `${needs}${repeated} of ${offer.type} at ${price} cost ${cost} with ${reserve} to save and stop${moved}; the budget is ${budget}`,
    costMicroUsd,
  }
}
