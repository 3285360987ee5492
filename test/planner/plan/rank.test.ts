import { describe, expect, it } from '@jest/globals'
import { NO_FORECAST } from '../../../core/job/forecast'
import { OBJECTIVES, type Objective } from '../../../core/job/job'
import type { Offer } from '../../../core/offer'
import type { Placement } from '../../../core/job/plan'
import { gainOf, rank } from '../../../planner/plan/rank'
import { offer } from '../wishes'

type Given = Partial<Pick<Placement, 'costMicroUsd' | 'extraCostMicroUsd' | 'durationMs' | 'isLate'>> & {
  type?: string
  capacityType?: Offer['capacityType']
  isPreemptible?: boolean
}

function placement({
  type = 'small',
  capacityType = 'on-demand',
  isPreemptible = false,
  ...given
}: Given): Placement {
  return {
    offer: offer({ type, capacityType, isPreemptible }),
    costMicroUsd: 100,
    durationMs: 100,
    forecast: NO_FORECAST,
    reasons: [],
    risks: [],
    ...given,
  }
}

/** The types of placements in their order, whatever the order in which they are given. */
function ranked(objective: Objective, ...given: Given[]): string[] {
  const typesOf = (all: Given[]): string[] =>
    rank(all.map(placement), objective, ({ offer: { type } }) => type.startsWith('last')).map(
      ({ offer: { type } }) => type,
    )
  expect(typesOf([...given].reverse())).toEqual(typesOf(given))
  return typesOf(given)
}

describe('placements', () => {
  const cheap = { type: 'cheap', costMicroUsd: 50, durationMs: 300, capacityType: 'on-demand' as const }
  const fast = { type: 'fast', costMicroUsd: 400, durationMs: 50, capacityType: 'spot' as const }
  const middle = { type: 'middle', costMicroUsd: 120, durationMs: 120, capacityType: 'spot' as const }
  const durable = { type: 'durable', costMicroUsd: 500, durationMs: 400, capacityType: 'reserved' as const }

  it.each<[Objective, string[]]>([
    ['cost', ['cheap', 'middle', 'fast', 'durable']],
    ['time', ['fast', 'middle', 'cheap', 'durable']],
    ['reliability', ['durable', 'cheap', 'middle', 'fast']],
    // 14,400, 15,000, 20,000 and 200,000.
    ['balanced', ['middle', 'cheap', 'fast', 'durable']],
  ])('by %s are %j', (objective, types) => {
    expect(ranked(objective, fast, cheap, durable, middle)).toEqual(types)
  })

  it('that are late come after all others, then those that are used only without another', () => {
    const late = { type: 'late', costMicroUsd: 1, isLate: true as const }
    const last = { type: 'last', costMicroUsd: 2 }
    const lastLate = { type: 'last-late', costMicroUsd: 0, isLate: true as const }
    expect(ranked('cost', lastLate, late, last, cheap)).toEqual(['cheap', 'last', 'late', 'last-late'])
  })

  it('that cost the same are in the order of their other figures, and at last of their names', () => {
    const same = ['c', 'a', 'd', 'b'].map((type) => ({ type }))
    for (const objective of OBJECTIVES) {
      expect(ranked(objective, ...same)).toEqual(['a', 'b', 'c', 'd'])
      expect(ranked(objective, { type: 'a', capacityType: 'spot' }, { type: 'b' })).toEqual(['b', 'a'])
      expect(ranked(objective, { type: 'a', durationMs: 101 }, { type: 'b' })).toEqual(['b', 'a'])
    }
  })

  it('are compared by the money that is not paid either way, and preemptible ones are like spot', () => {
    expect(
      ranked('cost', { ...cheap, extraCostMicroUsd: 60 }, { ...durable, extraCostMicroUsd: 55 }),
    ).toEqual(['durable', 'cheap'])
    expect(ranked('reliability', { type: 'a', isPreemptible: true }, { type: 'b' })).toEqual(['b', 'a'])
  })
})

describe('the gain of a placement', () => {
  it.each<[Objective, Given, Given, number]>([
    ['cost', { costMicroUsd: 75 }, {}, 0.25],
    ['cost', { costMicroUsd: 150 }, {}, -0.5],
    ['cost', { costMicroUsd: 90, extraCostMicroUsd: 20 }, {}, 0.8],
    // Nothing is saved where nothing is paid.
    ['cost', {}, { costMicroUsd: 0 }, 0],
    ['cost', { costMicroUsd: 0 }, { costMicroUsd: 0 }, 0],
    ['time', { durationMs: 40, costMicroUsd: 900 }, {}, 0.6],
    ['balanced', { durationMs: 50, costMicroUsd: 150 }, {}, 0.25],
    ['reliability', { capacityType: 'reserved', costMicroUsd: 900 }, {}, 1],
    ['reliability', { capacityType: 'spot', costMicroUsd: 9 }, {}, -1],
    ['reliability', { costMicroUsd: 90 }, {}, 0.1],
  ])('by %s, of %j before %j, is %d', (objective, one, other, gain) => {
    expect(gainOf(placement(one), placement(other), objective)).toBeCloseTo(gain, 9)
  })
})
