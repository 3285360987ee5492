import { describe, expect, it } from '@jest/globals'
import type { Avoidance } from '../../../core/job/ledger'
import { offerKey, placeKey } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { isDeprioritised, isShaky, SHAKY_MS, stillAvoided, whyAvoided } from '../../../planner/plan/avoidance'
import { offer } from '../wishes'

const HERE = offer({ place: 'a', capacityType: 'spot' })
const avoidance = (why: Avoidance['why'], changes: Partial<Avoidance> = {}): Avoidance => ({
  offerKey: offerKey(HERE),
  forMs: 5 * MINUTE_MS,
  why,
  ...changes,
})

describe('an avoidance', () => {
  it('ends when its time has passed, and until then is as much shorter', () => {
    const avoid = [1, 2, 3].map((minutes) => avoidance('capacity', { forMs: minutes * MINUTE_MS }))
    expect(stillAvoided(avoid, 2 * MINUTE_MS)).toEqual([avoidance('capacity', { forMs: MINUTE_MS })])
    expect(stillAvoided(avoid, 0)).toEqual(avoid)
  })

  it('is about one offer or about everything at its place, and about one reason', () => {
    const elsewhere = offer({ place: 'b', capacityType: 'spot' })
    const ofOffer = avoidance('quota')
    const ofPlace = avoidance('quota', { offerKey: placeKey(HERE) })
    for (const one of [ofOffer, ofPlace]) {
      expect(whyAvoided(HERE, [one], 'quota')).toMatch(/avoided for 5m$/)
      expect(whyAvoided(elsewhere, [one], 'quota')).toBeUndefined()
      expect(whyAvoided(HERE, [one], 'capacity')).toBeUndefined()
    }
    const neighbour = offer({ place: 'a', type: 'large' })
    expect([ofOffer, ofPlace].map((one) => whyAvoided(neighbour, [one], 'quota'))).toEqual([
      undefined,
      expect.stringMatching(/avoided for 5m$/),
    ])
  })

  it('is reported with its reason and its remaining time', () => {
    expect(whyAvoided(HERE, [avoidance('quota', { forMs: HOUR_MS })], 'quota')).toBe(
      'refused for missing quota recently; avoided for 1h',
    )
    expect(whyAvoided(HERE, [avoidance('capacity')], 'capacity')).toBe(
      'had no capacity recently; avoided for 5m',
    )
    expect(whyAvoided(HERE, [avoidance('capacity')], 'quota')).toBeUndefined()
  })

  it('by preference only ranks an offer last, and after an interruption only what can be interrupted again', () => {
    const onDemand = offer({ place: 'a', capacityType: 'on-demand' })
    const preference = [avoidance('preference', { offerKey: placeKey(HERE) })]
    const interruption = [avoidance('interruption', { offerKey: placeKey(HERE) })]
    expect([HERE, onDemand].map((one) => isDeprioritised(one, preference))).toEqual([true, true])
    expect([HERE, onDemand].map((one) => isDeprioritised(one, interruption))).toEqual([false, false])
    expect([HERE, onDemand].map((one) => isShaky(one, interruption))).toEqual([true, false])
    expect([HERE, onDemand].map((one) => isShaky(one, preference))).toEqual([false, false])
  })
})

it('a pool that interrupted the job is expected to do it again for two hours, as the traces of 0012 say', () => {
  expect(SHAKY_MS).toBe(2 * HOUR_MS)
})
