import type { Objective } from '../core/job'
import { offerKey, type CapacityType } from '../core/offer'
import type { Placement } from '../core/plan'

/** The most durable capacity comes first. */
const BY_RELIABILITY: Readonly<Record<CapacityType, number>> = { reserved: 0, 'on-demand': 1, spot: 2 }

/**
 * Sorts placements by the job's objective, with the others as tie-breakers and finally by name, so that the order is total and
 * stable. `isLast` marks placements used only if there is no other.
 */
export function rank(
  placements: Placement[],
  objective: Objective,
  isLast: (placement: Placement) => boolean,
): Placement[] {
  return [...placements].sort((a, b) => {
    const measures = [Number(isLast(a)) - Number(isLast(b)), ...measuresOf(a, b, objective)]
    return (
      measures.find((difference) => difference !== 0) ?? compareText(offerKey(a.offer), offerKey(b.offer))
    )
  })
}

function measuresOf(a: Placement, b: Placement, objective: Objective): number[] {
  const cost = extraCost(a) - extraCost(b)
  const time = a.durationMs - b.durationMs
  const reliability = BY_RELIABILITY[a.offer.capacityType] - BY_RELIABILITY[b.offer.capacityType]
  switch (objective) {
    case 'cost':
      return [cost, time, reliability]
    case 'time':
      return [time, cost, reliability]
    case 'reliability':
      return [reliability, cost, time]
  }
}

/** Money that is billed either way is no reason to run elsewhere. */
function extraCost({ costMicroUsd, extraCostMicroUsd = costMicroUsd }: Placement): number {
  return extraCostMicroUsd
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
