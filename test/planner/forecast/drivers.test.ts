import { describe, expect, it } from '@jest/globals'
import type { ForecastPart } from '../../../core/job/forecast'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { driversOf } from '../../../planner/forecast/drivers'
import type { Parts } from '../../../planner/forecast/parts'
import type { Storing } from '../../../planner/plan/storing'
import { offer } from '../wishes'
import { exactParts } from './exact'

const wide = (low: number, high: number) => ({ low, middle: (low + high) / 2, high, source: 'a test' })
const minutes = (count: number) => wide(MINUTE_MS, (count + 1) * MINUTE_MS)

function drivers(
  parts: Partial<Parts>,
  {
    interruptions = 0,
    storing,
    ...changes
  }: Partial<Offer> & { interruptions?: number; storing?: Storing } = {},
) {
  return driversOf(exactParts(parts), offer(changes), { interruptions, storing })
}

/**
 * Whether a part, of the width that is worked out by hand, is above the saving of ten checkpoints of a width just below it, and below that
 * of a width just above it.
 */
function expectWidth(
  part: ForecastPart,
  ms: number,
  given: Parameters<typeof drivers>,
  of: 'finish' | 'cost' = 'finish',
) {
  const [parts, facts] = given
  const beside = (share: number) =>
    drivers({ ...parts, saving: wide(0, (ms * share) / 10) }, facts)[of].filter(
      (one) => one === part || one === 'saving',
    )
  expect([beside(0.99), beside(1.01)]).toEqual([
    [part, 'saving'],
    ['saving', part],
  ])
}

describe('the width of a part of a forecast', () => {
  it.each<[ForecastPart, number, Partial<Parts>, number]>([
    // Ten minutes for each of three machines, with two interruptions between them.
    ['boot', 30, { boot: minutes(10) }, 2],
    ['image', 30, { image: minutes(10) }, 2],
    ['setup', 30, { setup: minutes(10) }, 2],
    ['fetch', 30, { fetch: minutes(10) }, 2],
    ['restore', 20, { restore: minutes(10) }, 2],
    ['restore', 30, { restore: minutes(10), isResumed: true }, 2],
    ['wait', 10 + 2 * 4, { wait: minutes(10), waitAgain: minutes(4) }, 2],
    ['stop', 10, { stop: minutes(10) }, 2],
    // Of ten hours of work.
    ['duration', 300, { duration: wide(0.8, 1.3) }, 2],
    ['speed', 150, { speed: wide(0.9, 1.15) }, 2],
  ])('%s is %d minutes', (part, count, parts, interruptions) => {
    expectWidth(part, count * MINUTE_MS, [parts, { interruptions }])
  })

  it('of interruptions is from few at the low rate to many at the high one', () => {
    // In ten hours 0.2 to 14 of them, each with a start of 240 s and half an hour; few are none.
    const many = 14 + 1.6 * Math.sqrt(14)
    expectWidth('interruptions', many * 2_040 * SECOND_MS, [{ shakyRate: wide(0.02, 1.4) }])
    // From 10 on, few are some.
    const few = 10 - 1.6 * Math.sqrt(10)
    expectWidth('interruptions', (many - few) * 2_040 * SECOND_MS, [{ shakyRate: wide(1, 1.4) }])
    // Without checkpoints half of all work is lost.
    const longer = { shakyRate: wide(0.02, 1.4), everyMs: 100 * HOUR_MS }
    const widths = drivers({ ...longer, duration: wide(0, (0.99 * many * 18_240) / 36_000) }).finish
    expect(widths).toEqual(['interruptions', 'duration'])
    expect(drivers({ ...longer, duration: wide(0, (1.01 * many * 18_240) / 36_000) }).finish).toEqual([
      'duration',
      'interruptions',
    ])
  })

  it.each<[ForecastPart, number, Partial<Parts>, Partial<Offer> & { storing?: Storing }]>([
    ['price', 60, { price: wide(0.95, 1.05) }, {}],
    ['billing', 60, {}, { billedInStepsOfMs: HOUR_MS }],
    ['billing', 120, {}, { billedAtLeastMs: 12 * HOUR_MS }],
    ['billing', 60, {}, { billedAtLeastMs: 10.5 * HOUR_MS, billedInStepsOfMs: HOUR_MS }],
    // 1.4 times $0.50 and ten hours at $0.05, at the price of $2 for an hour.
    [
      'store',
      42,
      { store: wide(0.6, 2) },
      {
        priceMicroUsdPerHour: microUsd(2),
        storing: { onceMicroUsd: 500_000, perMachineMicroUsd: 0, perHourMicroUsd: 50_000 },
      },
    ],
  ])('%s of a bill is %d minutes of the machine', (part, count, parts, facts) => {
    expectWidth(part, count * MINUTE_MS, [parts, facts], 'cost')
    expect(drivers(parts, facts).finish).toEqual([])
  })

  it('is nothing for the store if it is free, for a minimum that is reached, and for the wait in a bill', () => {
    expect(drivers({ store: wide(0.6, 2) }).cost).toEqual([])
    expect(drivers({}, { billedAtLeastMs: HOUR_MS }).cost).toEqual([])
    expect(drivers({ wait: minutes(10) })).toEqual({ cost: [], finish: ['wait'] })
    expect(drivers({ boot: minutes(10) }, { priceMicroUsdPerHour: 0 })).toEqual({
      cost: [],
      finish: ['boot'],
    })
  })
})

describe('the drivers of a forecast', () => {
  it('are at most three, the widest first, and of equal ones the first in the order of a life', () => {
    const parts = { boot: minutes(5), image: minutes(7), setup: minutes(6), fetch: minutes(8) }
    expect(drivers(parts).finish).toEqual(['fetch', 'image', 'setup'])
    expect(drivers({ ...parts, fetch: minutes(3) }).finish).toEqual(['image', 'setup', 'boot'])
    const equal = { boot: minutes(5), image: minutes(5), setup: minutes(5), fetch: minutes(5) }
    expect(drivers(equal).finish).toEqual(['boot', 'image', 'setup'])
  })

  it('have at least a twentieth of the widest one', () => {
    expect(drivers({ boot: minutes(100), image: minutes(5) }).finish).toEqual(['boot', 'image'])
    expect(drivers({ boot: minutes(100), image: minutes(4.9) }).finish).toEqual(['boot'])
  })

  it('are none where nothing is uncertain', () => {
    expect(drivers({})).toEqual({ cost: [], finish: [] })
  })
})
