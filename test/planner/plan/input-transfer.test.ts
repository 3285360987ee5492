import { describe, expect, it } from '@jest/globals'
import type { Offer } from '../../../core/offer'
import { inputsInWords, inputTrafficOf } from '../../../planner/plan/input-transfer'
import type { PlanRequest } from '../../../planner/plan/request'
import { answer, offer, SPEC } from '../wishes'

const GB = 1e9
const spec = {
  ...SPEC,
  inputs: ['s3://a/1', 's3://a/2', 'file:///x'].map((source) => ({ source, path: 'x' })),
}
const way = { storeRegion: 'west', upMicroUsdPerGb: 10_000, downMicroUsdPerGb: 20_000, bytesPerSecond: 5e7 }

function traffic(
  one: Partial<Offer>,
  inputSizes: PlanRequest['inputSizes'],
  { machines = 1, others = [] as Offer[] } = {},
) {
  return inputTrafficOf(
    offer(one),
    { spec, answers: [answer(others)], inputSizes: inputSizes ? inputSizes : undefined },
    machines,
  )
}
const sized = (one: string | undefined, other: string | undefined, sizeBytes = 3 * GB) => [
  { source: 's3://a/1', sizeBytes: GB, region: one },
  { source: 's3://a/2', sizeBytes, region: other },
]

describe('reading the inputs of a job', () => {
  it('from the Region of the store costs each machine the way to it', () => {
    expect(traffic({ region: 'east', transfer: way }, sized('west', 'west'), { machines: 2.5 })).toEqual({
      bytes: 10 * GB,
      costMicroUsd: 200_000,
      bytesPerSecond: 5e7,
      uncounted: 0,
      ways: [{ region: 'west', microUsdPerGb: 20_000 }],
    })
  })

  it('from its own Region is free, and needs no figure', () => {
    expect(traffic({ region: 'east', transfer: way }, sized('east', 'east'))).toEqual({
      bytes: 0,
      costMicroUsd: 0,
      ways: [],
      uncounted: 0,
    })
  })

  it('from elsewhere costs machines next to the store the way out of that Region', () => {
    const there = [
      offer({ region: 'north', transfer: { ...way, storeRegion: 'other', upMicroUsdPerGb: 99 } }),
      offer({ region: 'north' }),
      offer({ region: 'north', transfer: { ...way, storeRegion: 'east', upMicroUsdPerGb: 70_000 } }),
    ]
    expect(traffic({ region: 'east' }, sized('north', 'east'), { others: there })).toEqual({
      bytes: GB,
      costMicroUsd: 70_000,
      bytesPerSecond: 5e7,
      uncounted: 0,
      ways: [{ region: 'north', microUsdPerGb: 70_000 }],
    })
  })

  it.each<[string, Partial<Offer>, PlanRequest['inputSizes']]>([
    ['without any figure', { region: 'east', transfer: way }, undefined],
    ['of unknown Regions', { region: 'east', transfer: way }, sized(undefined, undefined)],
    [
      'by a way that neither starts nor ends at the store',
      { region: 'east', transfer: way },
      sized('north', 'south'),
    ],
    ['without a way', { region: 'east' }, sized('north', 'south')],
  ])('%s is not counted, and says so', (_, one, sizes) => {
    expect(traffic(one, sizes)).toEqual({ bytes: 0, costMicroUsd: 0, ways: [], uncounted: 2 })
  })

  it('rounds each cost up', () => {
    expect(traffic({ region: 'east', transfer: way }, sized('west', 'west', 1)).costMicroUsd).toBe(20_001)
  })
})

it.each([
  [{ ways: [], uncounted: 2 }, undefined],
  [
    { ways: [{ region: 'west', microUsdPerGb: 20_000 }], uncounted: 0 },
    'including $0.80 for reading 40 GB of inputs from west, at $0.02 per GB',
  ],
  [
    { ways: [{ region: 'west', microUsdPerGb: 20_000 }], uncounted: 1 },
    'including $0.80 for reading 40 GB of inputs from west, at $0.02 per GB; one input is not included',
  ],
  [
    { ways: ['west', 'north'].map((region) => ({ region, microUsdPerGb: 20_000 })), uncounted: 2 },
    'including $0.80 for reading 40 GB of inputs from west, at $0.02 per GB and north, at $0.02 per GB; 2 inputs are not included',
  ],
])('reading %j has the words %j', (traffic, words) => {
  expect(inputsInWords({ bytes: 40 * GB, costMicroUsd: 800_000, ...traffic })).toBe(words)
})
