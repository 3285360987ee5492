import type { Capabilities } from '../../core/capabilities'
import { formatUsd } from '../../core/money/money'
import { offerKey, type Offer } from '../../core/offer'
import type { BackendAnswer, Placement, Plan, RejectionCode } from '../../core/job/plan'
import type { Relaxation } from '../../core/job/relaxation'
import { formatDuration } from '../../core/time/time'
import { isDeprioritised } from './avoidance'
import { isBackendAllowed } from './filter'
import { consider } from './plan'
import { gainOf, rank } from './rank'
import type { PlanRequest } from './request'
import { withCutOff } from './run-limit'
import { REQUIREMENTS, type Limit, type Requirement } from './requirements'
import { workOn } from './work'

/** Largest number of relaxations; more are too many to compare. */
const RELAXATIONS_MAX = 3
/** A change that gains less is not worth a line. */
const LEAST_GAIN = 0.1
/** Limit on the offers that are considered again, for all requirements together: about a tenth of a second. */
const CONSIDERED_MAX = 600

/** An offer that a single requirement keeps from the first place. */
interface Candidate {
  offer: Offer
  capabilities: Capabilities
}

/** The best placement without one requirement. */
interface RelaxedPlacement {
  code: RejectionCode
  wish: Requirement
  candidate: Candidate
  placement: Placement
}

/**
 * Returns the plan's changes if exactly one requirement of the job were relaxed: for each requirement the offer that would be first, with
 * the smallest round limit that is enough for it. Lists the best three changes that make a plan possible, keep the deadline, or gain a
 * tenth by the job's objective. `others` are answers of backends that the job does not allow. Filter and forecast are those of the plan; of
 * offers that differ only in their zone, the cheapest is considered. A backend lists offers that could hold the request, so smaller
 * machines are found only if none is large enough.
 */
export function relaxationsOf(
  plan: Plan,
  request: PlanRequest,
  others: readonly BackendAnswer[] = [],
): Relaxation[] {
  const [best] = plan.placements
  const { optimize } = request.spec
  const byWish = candidatesOf(plan, { ...request, answers: [...request.answers, ...others] })
  const found = [...byWish].flatMap(([code, candidates]) => {
    const wish = REQUIREMENTS[code]!
    const most = Math.floor(CONSIDERED_MAX / byWish.size)
    return bestWithout({ code, wish }, { candidates: candidates.slice(0, most), request, best })
  })
  const worth = found.filter(({ placement }) => {
    if (best === undefined) return true
    if (best.isLate === true) return placement.isLate !== true
    return placement.isLate !== true && gainOf(placement, best, optimize) >= LEAST_GAIN
  })
  const order = rank(
    worth.map(({ placement }) => placement),
    optimize,
    () => false,
  )
  return worth
    .sort((a, b) => order.indexOf(a.placement) - order.indexOf(b.placement))
    .slice(0, RELAXATIONS_MAX)
    .map((one) => relaxationFrom(one, request, best))
}

/**
 * Returns for each requirement the offers that it excludes, most promising first. A second filter without it shows whether it is the only
 * obstacle.
 */
function candidatesOf(
  { placements, rejections }: Plan,
  request: PlanRequest,
): Map<RejectionCode, Candidate[]> {
  const codes = new Map<string, RejectionCode>(rejections.map(({ offerKey: key, code }) => [key, code]))
  // Late placements would be ranked by their cost if the deadline were later.
  for (const { offer, isLate } of placements) if (isLate === true) codes.set(offerKey(offer), 'deadline')
  const cheapest = new Map<string, Candidate & { code: RejectionCode }>()
  for (const { offers, capabilities } of request.answers) {
    for (const offer of offers) {
      const isAllowed = isBackendAllowed(offer, request.spec)
      const code = codes.get(offerKey(offer)) ?? (isAllowed ? undefined : 'backend')
      if (code === undefined || REQUIREMENTS[code] === undefined) continue
      const { backend, capacityType, type, region = '', reservationId = '', isolation = '' } = offer
      const key = [code, backend, capacityType, type, region, reservationId, isolation].join('/')
      const known = cheapest.get(key)
      if (known === undefined || offer.priceMicroUsdPerHour < known.offer.priceMicroUsdPerHour)
        cheapest.set(key, { code, offer: withCutOff(offer, capabilities, request), capabilities })
    }
  }
  const byWish = new Map<RejectionCode, Candidate[]>()
  for (const one of cheapest.values()) byWish.set(one.code, [...(byWish.get(one.code) ?? []), one])
  const promise = promiseOf(request)
  for (const candidates of byWish.values()) candidates.sort((a, b) => promise(a.offer) - promise(b.offer))
  return byWish
}

/** Estimates how promising an offer is, only for the order of consideration: the work at the hourly price, or its time. */
function promiseOf(request: PlanRequest): (offer: Offer) => number {
  const { optimize } = request.spec
  return (offer) => {
    const { ms } = workOn(offer, request)
    if (optimize === 'time') return ms
    return ms * offer.priceMicroUsdPerHour * (optimize === 'balanced' ? ms : 1)
  }
}

function bestWithout(
  { code, wish }: Pick<RelaxedPlacement, 'code' | 'wish'>,
  {
    candidates,
    request,
    best,
  }: { candidates: Candidate[]; request: PlanRequest; best: Placement | undefined },
): RelaxedPlacement[] {
  const relaxed = wish.without(request)
  const possible = new Map<Placement, Candidate>()
  for (const candidate of candidates) {
    if (best !== undefined && wish.isSlower?.(candidate.offer, request) === true) continue
    const placement = placementOf(candidate, relaxed)
    if (placement !== undefined) possible.set(placement, candidate)
  }
  const [placement] = rank([...possible.keys()], request.spec.optimize, ({ offer }) =>
    isDeprioritised(offer, request.avoid),
  )
  return placement === undefined ? [] : [{ code, wish, placement, candidate: possible.get(placement)! }]
}

function placementOf({ offer, capabilities }: Candidate, request: PlanRequest): Placement | undefined {
  const found = consider(offer, capabilities, request)
  return 'offer' in found ? found : undefined
}

function relaxationFrom(
  { code, wish, placement, candidate }: RelaxedPlacement,
  request: PlanRequest,
  best: Placement | undefined,
): Relaxation {
  const { offer, costMicroUsd, durationMs } = placement
  const { limit } = wish
  const change = limit === undefined ? wish.change(offer) : limit.change(smallest(limit, candidate, request))
  const isSlower = wish.isSlower?.(offer, request) === true
  const figures = figuresInWords(placement, best, request.spec.optimize === 'time')
  return {
    wish: code,
    change,
    offerKey: offerKey(offer),
    costMicroUsd,
    durationMs,
    sentence: [
      `With \`${change}\`: ${figures}, on ${offerKey(offer).replace(/\/$/, '')}`,
      ...(isSlower ? ['but slower, with less than requested'] : []),
      ...(best?.isLate === true ? ['in time'] : []),
    ].join(', '),
  }
}

/** The first of the limit's values with which the offer is accepted and not late; the last one is. */
function smallest(limit: Limit, candidate: Candidate, request: PlanRequest): number {
  const { values } = limit
  let [low, high] = [0, values.length - 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const value = values[middle]!
    const placement = placementOf(candidate, limit.with(request, value))
    const isEnough = placement !== undefined && limit.covers?.(value, placement) !== false
    if (isEnough && placement.isLate !== true) high = middle
    else low = middle + 1
  }
  return values[low]!
}

/** `$4.10 instead of $9.60, 13h instead of 9h`; what matters to the job comes first. */
function figuresInWords(
  { costMicroUsd, durationMs }: Placement,
  best: Placement | undefined,
  isTimeFirst: boolean,
): string {
  const instead = (now: string, before: string | undefined): string =>
    before === undefined || before === now ? now : `${now} instead of ${before}`
  const figures = [
    instead(formatUsd(costMicroUsd), best && formatUsd(best.costMicroUsd)),
    instead(formatDuration(durationMs), best && formatDuration(best.durationMs)),
  ]
  return (isTimeFirst ? figures.reverse() : figures).join(', ')
}
