import type { Capabilities } from '../../core/capabilities'
import { nameSome, type Placement, type Plan, type Rejection } from '../../core/job/plan'
import { offerKey, type Offer } from '../../core/offer'
import { savingOf } from '../../core/job/saving'
import { formatDuration } from '../../core/time/time'
import { wantsGpu } from '../../core/resources'
import { isShaky, isDeprioritised } from './avoidance'
import { reasonsFor, risksOf } from './explain'
import { reject } from './filter'
import { forecastOf, timeLeftMs, type Forecasted } from '../forecast/forecast'
import { rank } from './rank'
import { withCutOff } from './run-limit'
import type { PlanRequest } from './request'
import { durationOn } from './work'

/** The ranking: every offer that can run the job, best first, and why each other one cannot. Pure. */
export function makePlan(request: PlanRequest): Plan {
  const placements: Placement[] = []
  const rejections: Rejection[] = []
  for (const { offers, capabilities } of request.answers) {
    for (const offered of offers) {
      const offer = withCutOff(offered, capabilities, request)
      const found = consider(offer, capabilities, request)
      if ('offer' in found) placements.push(found)
      else rejections.push(found)
    }
  }
  const { spec, avoid, leftShare } = request
  const ranked = rank(placements, spec.optimize, ({ offer }) => isDeprioritised(offer, avoid))
  const isReferenceAssumed = spec.durationOn === undefined && wantsGpu(spec.resources)
  return {
    placements: toldOfPassedOver(ranked, request),
    rejections,
    isDurationAssumed: spec.durationMs === undefined,
    assumedAccelerator: isReferenceAssumed ? durationOn(spec) : undefined,
    leftShare,
    silentBackends: request.silentBackends,
  }
}

/** An offer (`withCutOff`) with its forecast, or why it cannot run the job. */
export function consider(
  offer: Offer,
  capabilities: Capabilities,
  request: PlanRequest,
): Placement | Rejection {
  // Most offers of a catalog do not fit, so their forecast is never computed.
  let made: Forecasted | undefined
  const forecast = (): Forecasted => (made ??= forecastOf(offer, capabilities, { request, isShaky: false }))
  return (
    reject(offer, capabilities, { request, forecast }) ??
    place(offer, capabilities, { request, calm: forecast() })
  )
}

function place(
  offer: Offer,
  capabilities: Capabilities,
  { request, calm }: { request: PlanRequest; calm: Forecasted },
): Placement {
  const { spec, savedBefore, nowMs, avoid } = request
  const shaky = isShaky(offer, avoid)
  const expected = shaky ? forecastOf(offer, capabilities, { request, isShaky: true }) : calm
  const saving = savingOf(spec, savedBefore)
  const hasBudget = request.remainingMicroUsd !== undefined
  const { durationMs, transfer } = expected
  const lateMs = durationMs - (timeLeftMs(request) ?? Infinity)
  return {
    offer,
    costMicroUsd: expected.costMicroUsd,
    extraCostMicroUsd: expected.extraCostMicroUsd,
    calmMicroUsd: shaky ? calm.costMicroUsd : undefined,
    durationMs,
    forecast: expected.forecast,
    isLate: lateMs > 0 ? (true as const) : undefined,
    transferMicroUsd: transfer === undefined ? undefined : transfer.costMicroUsd,
    // The words are computed on demand, because only the best placements of thousands are shown with them.
    get reasons() {
      return reasonsFor(offer, request, expected)
    },
    get risks() {
      return [
        ...(lateMs > 0 ? [`is likely to miss the deadline: about ${formatDuration(lateMs)} too long`] : []),
        ...risksOf(offer, spec, {
          isShaky: shaky,
          capabilities,
          hasBudget,
          expected,
          nowMs,
          saving,
        }),
      ]
    },
  }
}

/** Names the offers that the first one replaces although they cost no more per hour, because they recently interrupted a machine. */
function toldOfPassedOver(ranked: Placement[], { avoid }: PlanRequest): Placement[] {
  const [best, ...others] = ranked
  if (best === undefined || isShaky(best.offer, avoid)) return ranked
  const passedOver = others
    .map(({ offer }) => offer)
    .filter((offer) => isShaky(offer, avoid) && offer.priceMicroUsdPerHour <= best.offer.priceMicroUsdPerHour)
  if (passedOver.length === 0) return ranked
  const reason = `skipped ${nameSome(passedOver.map(offerKey))}, where this job recently lost a machine`
  return [{ ...best, reasons: [...best.reasons, reason] }, ...others]
}

/** Whether a plan without placements is worth retrying; otherwise the permanent obstacle. */
export function outlook(plan: Plan): 'wait' | 'quota' | 'never' {
  if (plan.silentBackends.length > 0 || plan.rejections.some(({ why }) => why === 'unavailable'))
    return 'wait'
  return plan.rejections.some(({ why }) => why === 'quota') ? 'quota' : 'never'
}
