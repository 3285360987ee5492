import { performance } from 'node:perf_hooks'
import type { Offer } from '../../../core/offer'
import { makePlan } from '../../../planner/plan/plan'
import type { Measure } from '../measure'
import { hiddenJob } from './world'

const OFFERS = 3_000

/** How long a plan of 3,000 different offers takes: the first one, as `crucible plan` makes it. */
export function planTime(): Measure {
  const { request } = hiddenJob(1, 'spot')
  const [answer] = request.answers
  const [offer] = answer!.offers
  const offers = Array.from({ length: OFFERS }, (_, index): Offer => ({
    ...offer!,
    place: `place-${index}`,
    interruptionsPerHour: 0.05 + index / OFFERS,
    priceMicroUsdPerHour: 1_000_000 + index,
  }))
  const fromMs = performance.now()
  makePlan({ ...request, answers: [{ ...answer!, offers }] })
  return {
    bench: 'forecast',
    name: `plan of ${OFFERS} offers`,
    value: performance.now() - fromMs,
    unit: 'ms',
    goal: { is: 'at most', value: 300 },
  }
}
