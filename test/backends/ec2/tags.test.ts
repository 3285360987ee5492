import { describe, expect, it } from '@jest/globals'
import { handleOfFleet } from '../../../backends/ec2/machine/machines'
import { priceOn, TAGS, tagsOf } from '../../../backends/ec2/tags'
import type { Offer } from '../../../core/offer'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { MemoryStore } from '../scripted/memory-store'
import { makeOrder } from '../orders'

const offer = (type: string, place: string, priceMicroUsdPerHour: number): Offer =>
  ({ backend: 'ec2', capacityType: 'spot', type, place, priceMicroUsdPerHour }) as Offer
const OFFERS = [offer('g5.xlarge', 'us-east-1a', 1_000), offer('g5.2xlarge', 'us-east-1b', 3_000)]
const timing = { startWithinMs: 20 * MINUTE_MS, drainMs: 5 * MINUTE_MS, powerOffMs: MINUTE_MS }
const order = (budget: { microUsd: number; priceMaxMicroUsdPerHour: number } | null = null) =>
  makeOrder({
    store: new MemoryStore(Date.now),
    offers: OFFERS,
    timing,
    runner: { limits: { seq: 0, deadlineAtMs: null, budget } },
  })

describe('the tag crucible:timer', () => {
  it('has the time to begin first, then the time after the lease, both in milliseconds as the dead man reads them', () => {
    const begins = 20 * MINUTE_MS + CLOCK_SLACK_MS
    const ends = 6 * MINUTE_MS + CLOCK_SLACK_MS
    expect(tagsOf(order())[TAGS.timer]).toBe(`${begins} ${ends}`)
  })

  it('has less time to begin where the budget is used up before', () => {
    // Ten minutes at the dearest price; of these one is to power off.
    const budget = { microUsd: 500, priceMaxMicroUsdPerHour: 3_000 }
    const [begins] = tagsOf(order(budget))[TAGS.timer]!.split(' ').map(Number)
    expect(begins).toBe((500 / 3_000) * HOUR_MS - MINUTE_MS - CLOCK_SLACK_MS)
    expect(tagsOf(order({ ...budget, microUsd: 1 }))[TAGS.timer]).toMatch(/^0 /)
  })
})

describe('the price of a machine', () => {
  it('is the one at which its pool was ordered', () => {
    expect(priceOn(tagsOf(order()), { type: 'g5.xlarge', place: 'us-east-1a' })).toBe(1_000)
  })

  it('is the dearest of the order for a pool that was not ordered', () => {
    expect(priceOn(tagsOf(order()), { type: 'g5.xlarge', place: 'us-east-1c' })).toBe(3_000)
    const launched = { id: 'i-1', launchedAtMs: 0, pool: { type: 'p5.48xlarge', subnet: 'subnet-1' } }
    expect(handleOfFleet(order(), launched).realised.priceMicroUsdPerHour).toBe(3_000)
  })
})
