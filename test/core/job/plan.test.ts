import { describe, expect, it } from '@jest/globals'
import { NO_FORECAST } from '../../../core/job/forecast'
import type { Offer } from '../../../core/offer'
import {
  excerptOf,
  groupRejections,
  nameSome,
  placesOf,
  rejectionsInWords,
  reportOf,
  silentName,
  type Placement,
  type Plan,
  type Rejection,
} from '../../../core/job/plan'

describe('a list of names in a sentence', () => {
  it.each([
    [['a'], 'a'],
    [['a', 'b', 'c'], 'a, b, c'],
    [['a', 'b', 'c', 'd'], 'a, b, c and 1 more'],
    [['a', 'b', 'c', 'd', 'e'], 'a, b, c and 2 more'],
    [['modal/on-demand/T4x1/', 'ec2/spot/x/a'], 'modal/on-demand/T4x1, ec2/spot/x/a'],
  ])('%j', (names, words) => {
    expect(nameSome(names)).toBe(words)
  })
})

describe('rejections in words', () => {
  const rejection = (offerKey: string, changes: Partial<Rejection> = {}): Rejection => ({
    offerKey,
    why: 'unavailable',
    code: 'stock',
    reason: 'out of stock',
    ...changes,
  })

  it('give each reason once, in the order of the offers', () => {
    const other = rejection('c', { reason: 'no quota' })
    const words = (...all: Rejection[]) => rejectionsInWords(groupRejections(all))
    expect(words(rejection('a'), other, rejection('b'))).toEqual(['a, b: out of stock', 'c: no quota'])
    expect(words()).toEqual([])
  })

  it('give only the least cost of what costs more than there is', () => {
    const dear = [9, 3, 5].map((costMicroUsd) =>
      rejection(`at-${costMicroUsd}`, { costMicroUsd, reason: `costs ${costMicroUsd}` }),
    )
    expect(rejectionsInWords(groupRejections([...dear, rejection('a')]))).toEqual([
      'at-9, at-3, at-5: costs 3',
      'a: out of stock',
    ])
  })

  it('name three offers of a reason, and count the others', () => {
    const groups = groupRejections(['a', 'b', 'c', 'd', 'e'].map((key) => rejection(key)))
    expect(groups).toMatchObject([{ offerKeys: ['a', 'b', 'c'], count: 5 }])
    expect(rejectionsInWords(groups)).toEqual(['a, b, c and 2 more: out of stock'])
  })
})

it('a silent backend is named with its place where only a part of it is silent', () => {
  expect(silentName({ backend: 'ec2' })).toBe('ec2')
  expect(silentName({ backend: 'ec2', place: 'eu-west-1' })).toBe('ec2 in eu-west-1')
})

it('the places of an order are listed once each', () => {
  const offers = ['a', 'b', 'a'].map((place) => ({ place }) as Offer)
  expect(placesOf({ offers })).toEqual(['a', 'b'])
})

describe('a plan that is kept or sent', () => {
  const plan = (placements: number, rejected: number): Plan => ({
    placements: Array.from(
      { length: placements },
      (_, index) => ({ costMicroUsd: index, durationMs: 1, forecast: NO_FORECAST, offer: {} }) as Placement,
    ),
    rejections: Array.from({ length: rejected }, (_, index) => ({
      offerKey: `k${index}`,
      why: 'unavailable',
      code: 'stock',
      reason: 'out of stock',
    })),
    isDurationAssumed: false,
    silentBackends: [],
  })

  it('has its best placements on record, and counts the others', () => {
    const counts = [5, 20, 27].map((count) => {
      const { placements, othersTotal } = excerptOf(plan(count, 0))
      return [placements.length, othersTotal]
    })
    expect(counts).toEqual([
      [5, 0],
      [20, 0],
      [20, 7],
    ])
  })

  it('has thousands of placements and names of refused offers in a report, and no more', () => {
    const { placements, others, othersTotal, rejections } = reportOf(
      plan(4_020, 6_001),
      { kind: 'place' },
      [],
    )
    expect([placements.length, others.length, othersTotal]).toEqual([20, 3_500, 4_000])
    // Each of them once, after the best ones.
    expect(others[0]!.costMicroUsd).toBe(20)
    expect(rejections).toMatchObject([{ count: 6_001, offerKeys: { length: 6_000 } }])
  })

  it('has the cost at each offer above the budget in a report, and not on record', () => {
    const dear = [9, 3].map((costMicroUsd) => ({ ...plan(0, 1).rejections[0]!, costMicroUsd }))
    const all = [...dear, ...plan(0, 1).rejections]
    expect(groupRejections(all, { keysMax: 9 }).map(({ costsMicroUsd }) => costsMicroUsd)).toEqual([[9, 3]])
    expect(groupRejections(dear)[0]).not.toHaveProperty('costsMicroUsd')
  })
})
