import { formatUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { Rejection } from '../../core/job/plan'
import { formatDuration } from '../../core/time/time'
import { stoppingMs } from '../../core/time/timing'
import { stoppingMicroUsd, type Forecasted } from '../forecast/forecast'
import type { PlanRequest } from './request'
import { workOn } from './work'

/** Reason why a job may not start, with its cost if that is the reason. */
export type Refusal = Pick<Rejection, 'code' | 'reason' | 'costMicroUsd'>

/**
 * A job with a stated duration does not start if its limits are unlikely to hold it. Only the first attempt is checked: later, the
 * remaining work is unknown.
 */
export function exceedsLimits(
  offer: Offer,
  request: PlanRequest,
  forecast: () => Forecasted,
): Refusal | undefined {
  if (!request.isFirst || request.spec.durationMs === undefined) return undefined
  return tooLong(offer, request) ?? tooDear(offer, request, forecast)
}

/** Whether the deadline is too near for a machine to save and stop before it. */
export function isDeadlineDue({
  deadlineAtMs = Infinity,
  nowMs,
  timing,
}: Pick<PlanRequest, 'deadlineAtMs' | 'nowMs' | 'timing'>): boolean {
  return deadlineAtMs - nowMs < stoppingMs(timing)
}

/** A job that would miss its deadline even as fast as it may be; one that is only likely to is ranked behind. */
function tooLong(offer: Offer, request: PlanRequest): Refusal | undefined {
  const { timing, deadlineAtMs, nowMs, startsInMs = 0 } = request
  const work = workOn(offer, request)
  const reserveMs = stoppingMs(timing)
  const leftMs = (deadlineAtMs ?? Infinity) - nowMs - startsInMs
  if (work.fastMs + reserveMs <= leftMs) return undefined
  const [least, reserve, left] = [work.fastMs, reserveMs, leftMs].map(formatDuration)
  const needs = work.fastMs === work.ms ? least : `at least ${least} there`
  return {
    code: 'deadline',
    reason: `it needs ${needs}, plus ${reserve} to save and stop, but the deadline is in ${left}`,
  }
}

function tooDear(offer: Offer, request: PlanRequest, forecast: () => Forecasted): Refusal | undefined {
  const { timing, remainingMicroUsd } = request
  if (remainingMicroUsd === undefined) return undefined
  const { durationMs, interruptions, budgetedMicroUsd: expectedMicroUsd, transfer } = forecast()
  const costMicroUsd = expectedMicroUsd + stoppingMicroUsd(offer, request)
  if (costMicroUsd <= remainingMicroUsd) return undefined
  const [needs, reserve] = [durationMs, stoppingMs(timing)].map(formatDuration)
  const [price, cost, budget] = [offer.priceMicroUsdPerHour, costMicroUsd, remainingMicroUsd].map(formatUsd)
  const repeated = interruptions > 0 ? ' (expected interruptions included)' : ''
  const moved =
    transfer === undefined || transfer.costMicroUsd === 0
      ? ''
      : ` and ${formatUsd(transfer.costMicroUsd)} for moving its data`
  return {
    code: 'budget',
    reason: `${needs}${repeated} of ${offer.type} at ${price}, plus ${reserve} to save and stop${moved}, cost about ${cost}; the budget is ${budget}`,
    costMicroUsd,
  }
}
