import { describe, expect, it } from '@jest/globals'
import type { Backend } from '../../backends/backend'
import type { MachineHandle } from '../../core/handle'
import type { Offer } from '../../core/offer'
import type { ConfigError } from '../../service/config-error'
import { discounted, parseDiscounts } from '../../service/discount'
import { patiently } from '../backends/harness'
import { offer } from '../planner/wishes'

const problemsOf = (text: string): readonly string[] => {
  try {
    parseDiscounts(text)
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

describe('the discounts of a deployment', () => {
  it('are a percentage for each backend', () => {
    expect(parseDiscounts()).toEqual(new Map())
    expect(parseDiscounts('ec2 = 10%, modal=25, ')).toEqual(
      new Map([
        ['ec2', 0.9],
        ['modal', 0.75],
      ]),
    )
  })

  it('are refused all at once if they are invalid', () => {
    expect(problemsOf('ec2=cheap, modal=101%, lambda=5%')).toEqual([
      'CRUCIBLE_DISCOUNTS has "ec2=cheap": write backend=percent from 0 to 100, such as ec2=10%',
      'CRUCIBLE_DISCOUNTS has "modal=101%": write backend=percent from 0 to 100, such as ec2=10%',
    ])
  })
})

describe('a backend with a discount', () => {
  const LIST = offer({
    priceMicroUsdPerHour: 1_000_000,
    priceMaxMicroUsdPerHour: 3_000_000,
    besideMicroUsdPerHour: 100_000,
    reservation: { free: 1, total: 1, idleMicroUsdPerHour: 500_000 },
  })
  const backendAt = (knownToAtMs?: number): Backend =>
    ({
      name: 'here',
      offers: async () => [LIST],
      prices: async () => ({
        prices: [{ fromAtMs: 0, priceMicroUsdPerHour: 2_000_000 }],
        knownToAtMs,
      }),
    }) as unknown as Backend
  const pricesOf = async (backend: Backend): Promise<number | undefined> =>
    (await backend.prices!({} as MachineHandle, { fromAtMs: 0 }, patiently())).prices[0]?.priceMicroUsdPerHour

  it('offers everything at what is really paid, with the list price', async () => {
    const [one] = await discounted(backendAt(), 0.9).offers({}, patiently())
    expect(one).toEqual({
      ...LIST,
      priceMicroUsdPerHour: 900_000,
      priceMaxMicroUsdPerHour: 2_700_000,
      besideMicroUsdPerHour: 90_000,
      listPriceMicroUsdPerHour: 1_000_000,
      reservation: { free: 1, total: 1, idleMicroUsdPerHour: 450_000 },
    } satisfies Offer)
  })

  it('takes the discount off the prices that the provider reports over time, and not twice off a price that stays', async () => {
    expect(await pricesOf(discounted(backendAt(5), 0.9))).toBe(1_800_000)
    expect(await pricesOf(discounted(backendAt(), 0.9))).toBe(2_000_000)
  })

  it('is the backend itself without one', () => {
    const backend = backendAt()
    expect(discounted(backend)).toBe(backend)
    expect(discounted(backend, 1)).toBe(backend)
  })
})
