import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import {
  dearestPriceOf,
  formatBackendChoice,
  isInterruptible,
  isReservedKey,
  isInRegion,
  offerKey,
  overlap,
  placeKey,
  priceInWords,
  rowKey,
  type BackendChoice,
  type CapacityType,
  type Offer,
} from '../../core/offer'

const OFFER = {
  backend: 'ec2',
  capacityType: 'on-demand',
  type: 'g6.xlarge',
  place: 'us-east-1a',
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

it.each([
  ['ec2', 'ec2', true],
  ['ec2', 'modal', false],
  ['ec2', 'ec2:spot', true],
  ['ec2:spot', 'ec2', true],
  ['ec2:spot', 'ec2:spot', true],
  ['ec2:spot', 'ec2:on-demand', false],
  ['ec2:spot', 'modal:spot', false],
  ['ec2', 'modal:spot', false],
])('the choices %s and %s can cover the same offer: %s', (one, other, isCovered) => {
  const [a, b] = [one, other].map((text): BackendChoice => {
    const [backend, capacityType] = text.split(':')
    return { backend: backend!, capacityType: capacityType ? (capacityType as CapacityType) : undefined }
  })
  expect(overlap(a!, b!)).toBe(isCovered)
})

it.each([
  ['us-east-1', true],
  ['us-east-1a', true],
  ['us-east-1-bos-1a', true],
  ['us-east-10', false],
  ['us-east-1ab', false],
  ['us-east-1-1', false],
  ['us-east', false],
  ['eu-us-east-1a', false],
])('the place %s is in us-east-1: %s', (place, isThere) => {
  expect(isInRegion({ place }, 'us-east-1')).toBe(isThere)
})

it('a place is in the Region that its offer names', () => {
  expect(isInRegion({ region: 'us-east-1', place: 'boston' }, 'us-east-1')).toBe(true)
  expect(isInRegion({ region: 'us-east-2', place: 'boston' }, 'us-east-1')).toBe(false)
})

it('a row has no place, and the name of a reservation', () => {
  expect(rowKey(offer())).toBe('ec2/on-demand/g6.xlarge')
  expect(rowKey(offer({ capacityType: 'reserved', reservationId: 'cr-1' }))).toBe(
    'ec2/reserved/g6.xlarge/cr-1',
  )
})
