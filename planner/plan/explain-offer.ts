import { offerKey, rowKey } from '../../core/offer'
import type { Plan } from '../../core/job/plan'
import type { OfferExplained } from '../../core/arithmetic'
import { isShaky } from './avoidance'
import { arithmeticOf } from '../forecast/arithmetic'
import type { PlanRequest } from './request'
import { bestOfRows } from '../why/switch-points'
import { selects } from '../why/what-if'

/**
 * Explains the best of the offers that `of` selects, by its rank and arithmetic or by the reason of its exclusion; `undefined` if it
 * selects none. `plan` is the plan of `request`.
 */
export function explainOffer(of: string, plan: Plan, request: PlanRequest): OfferExplained | undefined {
  const isMeant = selects(of)
  const placement = plan.placements.find(({ offer }) => isMeant(offer))
  if (placement !== undefined) {
    const { offer, reasons, risks, ...figures } = placement
    const { capabilities } = request.answers.find(({ backend }) => backend === offer.backend)!
    const rows = bestOfRows(plan).map((one) => rowKey(one.offer))
    return {
      offerKey: offerKey(offer),
      rank: rows.indexOf(rowKey(offer)) + 1,
      rowsTotal: rows.length,
      costMicroUsd: figures.costMicroUsd,
      durationMs: figures.durationMs,
      reasons,
      risks,
      excludedBecause: null,
      arithmetic: arithmeticOf(offer, capabilities, { request, isShaky: isShaky(offer, request.avoid) }),
    }
  }
  const keys = new Set(request.answers.flatMap(({ offers }) => offers.filter(isMeant).map(offerKey)))
  const rejection = plan.rejections.find(({ offerKey: key }) => keys.has(key))
  if (rejection === undefined) return undefined
  return {
    offerKey: rejection.offerKey,
    rank: null,
    rowsTotal: bestOfRows(plan).length,
    costMicroUsd: null,
    durationMs: null,
    reasons: [],
    risks: [],
    arithmetic: [],
    excludedBecause: rejection.reason,
  }
}
