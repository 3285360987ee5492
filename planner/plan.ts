import type { Placement, Plan, Rejection } from '../core/plan'
import { offerKey, placeKey, type Offer } from '../core/offer'
import { savingOf } from '../core/saving'
import { reasonsFor, risksOf } from './explain'
import { reject } from './filter'
import { estimate } from './price'
import { rank } from './rank'
import type { PlanRequest } from './request'

/** The one ranking: every offer that can run the job, best first, and why each other one cannot. Pure. */
export function makePlan(request: PlanRequest, offersSha256: string): Plan {
  const placements: Placement[] = []
  const rejections: Rejection[] = []
  for (const { offers, capabilities } of request.answers) {
    for (const offer of offers) {
      const rejection = reject(offer, capabilities, request)
      if (rejection === undefined) placements.push(place(offer, request))
      else rejections.push(rejection)
    }
  }
  const unloved = new Set(
    request.avoid.filter(({ why }) => why === 'preference').map((avoid) => avoid.offerKey),
  )
  const isUnloved = (offer: Offer): boolean => unloved.has(offerKey(offer)) || unloved.has(placeKey(offer))
  return {
    placements: rank(placements, request.spec.optimize, ({ offer }) => isUnloved(offer)),
    rejections,
    isDurationAssumed: request.spec.durationMs === undefined,
    offersSha256,
    silentBackends: request.silentBackends,
  }
}

function place(offer: Offer, { spec, savedBefore, nowMs }: PlanRequest): Placement {
  const expected = estimate(offer, spec)
  const saving = savingOf(spec, savedBefore)
  return {
    offer,
    costMicroUsd: expected.costMicroUsd,
    durationMs: expected.durationMs,
    reasons: reasonsFor(offer, spec, expected),
    risks: risksOf(offer, spec, { expected, nowMs, ...(saving === undefined ? {} : { saving }) }),
  }
}

/** Whether a plan without placements is worth asking again, or what stands in the way for good. */
export function outlook(plan: Plan): 'wait' | 'quota' | 'never' {
  if (plan.silentBackends.length > 0 || plan.rejections.some(({ why }) => why === 'unavailable'))
    return 'wait'
  return plan.rejections.some(({ why }) => why === 'quota') ? 'quota' : 'never'
}
