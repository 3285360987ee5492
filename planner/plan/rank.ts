import type { Objective } from '../../core/job/job'
import { isInterruptible, offerKey, type CapacityType, type Offer } from '../../core/offer'
import type { Placement } from '../../core/job/plan'

/** The most durable capacity comes first. */
const BY_RELIABILITY: Readonly<Record<CapacityType, number>> = { reserved: 0, 'on-demand': 1, spot: 2 }

/**
 * Sorts placements by the job's objective, with the others as tie-breakers and finally by name, so that the order is total and stable.
 * Placements that are likely to miss the deadline come after all others, followed by those that are only a last resort.
 */
export function rank(
  placements: Placement[],
  objective: Objective,
  isLast: (placement: Placement) => boolean,
): Placement[] {
  return [...placements].sort((a, b) => {
    const late = Number(a.isLate ?? false) - Number(b.isLate ?? false)
    const measures = [late, Number(isLast(a)) - Number(isLast(b)), ...measuresOf(a, b, objective)]
    return (
      measures.find((difference) => difference !== 0) ?? compareText(offerKey(a.offer), offerKey(b.offer))
    )
  })
}

function measuresOf(a: Placement, b: Placement, objective: Objective): number[] {
  const cost = extraCost(a) - extraCost(b)
  const time = a.durationMs - b.durationMs
  const reliability = unreliability(a.offer) - unreliability(b.offer)
  switch (objective) {
    case 'cost':
      return [cost, time, reliability]
    case 'time':
      return [time, cost, reliability]
    case 'reliability':
      return [reliability, cost, time]
    // A tenth more money for a tenth less time counts as equal.
    case 'balanced':
      return [extraCost(a) * a.durationMs - extraCost(b) * b.durationMs, time, reliability]
  }
}

/**
 * Returns how much better one placement is than another by the job's objective: the saved share of the cost, of the time or of their
 * product, or 1 for more durable capacity; negative if it is worse.
 */
export function gainOf(a: Placement, b: Placement, objective: Objective): number {
  const saved = (of: (placement: Placement) => number): number => (of(b) === 0 ? 0 : 1 - of(a) / of(b))
  const reliability = Math.sign(unreliability(b.offer) - unreliability(a.offer))
  switch (objective) {
    case 'cost':
      return saved(extraCost)
    case 'time':
      return saved(({ durationMs }) => durationMs)
    case 'reliability':
      return reliability === 0 ? saved(extraCost) : reliability
    case 'balanced':
      return saved((placement) => extraCost(placement) * placement.durationMs)
  }
}

/** Rates the unreliability of an offer. On-demand capacity that its provider may take back counts as spot. */
function unreliability(offer: Offer): number {
  return BY_RELIABILITY[isInterruptible(offer) ? 'spot' : offer.capacityType]
}

/** Money that is billed either way does not favour another offer. */
function extraCost({ costMicroUsd, extraCostMicroUsd = costMicroUsd }: Placement): number {
  return extraCostMicroUsd
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
