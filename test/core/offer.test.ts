import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../core/money'
import {
  dearestPriceOf,
  formatBackendChoice,
  isInterruptible,
  isReservedKey,
  offerKey,
  placeKey,
  priceInWords,
  type Offer,
} from '../../core/offer'

const OFFER = {
  ...{ backend: 'ec2', capacityType: 'on-demand', type: 'g6.xlarge', place: 'us-east-1a' },
  priceMicroUsdPerHour: microUsd(1),
} as Offer
const offer = (changes: Partial<Offer> = {}): Offer => ({ ...OFFER, ...changes })
const reservation = { free: 1, total: 1, idleMicroUsdPerHour: 0 }

describe('a price in words', () => {
  it.each<[string, Partial<Offer>]>([
    ['$1.00/h', {}],
    ['$1.00/h', { besideMicroUsdPerHour: microUsd(1) }],
    ['free', { priceMicroUsdPerHour: 0 }],
    ['$1.00/h', { reservation }],
    ['$1.00/h', { reservation, besideMicroUsdPerHour: microUsd(0.02) }],
    ['paid', { reservation, priceMicroUsdPerHour: 0 }],
    [
      'paid, $0.02/h',
      { reservation, priceMicroUsdPerHour: microUsd(0.02), besideMicroUsdPerHour: microUsd(0.02) },
    ],
  ])('is %s for %j', (words, changes) => {
    expect(priceInWords(offer(changes))).toBe(words)
  })
})

describe('an offer', () => {
  it('costs at most what its price can become', () => {
    expect(dearestPriceOf(offer())).toBe(microUsd(1))
    expect(dearestPriceOf(offer({ priceMaxMicroUsdPerHour: microUsd(2) }))).toBe(microUsd(2))
    expect(dearestPriceOf(offer({ priceMaxMicroUsdPerHour: microUsd(0.5) }))).toBe(microUsd(1))
  })

  it('may be interrupted as spot capacity, or when its provider may take it back anyway', () => {
    const types = ['spot', 'on-demand', 'reserved'] as const
    expect(types.map((capacityType) => isInterruptible(offer({ capacityType })))).toEqual([
      true,
      false,
      false,
    ])
    expect(isInterruptible(offer({ isPreemptible: true }))).toBe(true)
  })

  it('has a key of its own, with its reservation, and shares the key of its place', () => {
    const held = offer({ capacityType: 'reserved', reservationId: 'cr-1' })
    expect(offerKey(offer())).toBe('ec2/on-demand/g6.xlarge/us-east-1a')
    expect(offerKey(held)).toBe('ec2/reserved/g6.xlarge/us-east-1a/cr-1')
    expect([offer(), held].map((one) => isReservedKey(offerKey(one)))).toEqual([false, true])
    expect([offer(), held].map(placeKey)).toEqual(['ec2/*/*/us-east-1a', 'ec2/*/*/us-east-1a'])
  })
})

it('a choice of backend is shown as it is written', () => {
  expect(formatBackendChoice({ backend: 'ec2' })).toBe('ec2')
  expect(formatBackendChoice({ backend: 'ec2', capacityType: 'spot' })).toBe('ec2:spot')
})
