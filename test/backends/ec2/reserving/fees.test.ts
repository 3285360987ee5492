import { describe, expect, it } from '@jest/globals'
import { decimalOf, microOf } from '../../../../backends/ec2/reserving/fees'

describe('a fee', () => {
  it.each([
    ['0', 0],
    ['4529.34', 4_529_340_000],
    ['4529.340001', 4_529_340_001],
    ['0.2900000000', 290_000],
    ['1.0000000', 1_000_000],
    // As a fraction this is 8.219999999999999.
    ['8.22', 8_220_000],
    ['123456789.123456', 123_456_789_123_456],
  ])('of %s is exact in millionths', (decimal, micro) => {
    expect(microOf(decimal)).toBe(micro)
    expect(microOf(decimalOf(micro))).toBe(micro)
  })

  it('with more digits costs one more millionth', () => {
    expect(microOf('1.0000001')).toBe(1_000_001)
  })

  it.each(['', '1,000.00', '-1', 'USD 5', '1e3', '99999999999999'])('of "%s" is no fee', (text) => {
    expect(microOf(text)).toBeUndefined()
  })
})
