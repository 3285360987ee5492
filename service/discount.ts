import type { Backend } from '../backends/backend'
import type { MicroUsd } from '../core/money/money'
import type { BackendName, Offer } from '../core/offer'
import { ConfigError } from './config-error'

/** The share of the list price that a deployment really pays: 0.9 after a discount of 10 %. */
export type Discounts = ReadonlyMap<BackendName, number>

/** Reads `ec2=10%, modal=25%`: what credits or a negotiated contract take off each backend's list prices. Throws a `ConfigError`. */
export function parseDiscounts(text = ''): Discounts {
  const discounts = new Map<BackendName, number>()
  const problems: string[] = []
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue
    const [, name, percent] = /^([a-z0-9-]+)\s*=\s*(\d+(?:\.\d+)?)\s*%?$/.exec(part) ?? []
    if (name === undefined || Number(percent) > 100)
      problems.push(`CRUCIBLE_DISCOUNTS has "${part}": write backend=percent from 0 to 100, such as ec2=10%`)
    else discounts.set(name, 1 - Number(percent) / 100)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return discounts
}

/**
 * Wraps a backend so that it reports the prices that are really paid. A machine's own price comes from its offer, so it is discounted
 * already; prices over time come from the provider, which ignores the discount.
 */
export function discounted(backend: Backend, paidShare = 1): Backend {
  if (paidShare === 1) return backend
  const paid = (price: MicroUsd): MicroUsd => Math.round(price * paidShare)
  const prices = backend.prices?.bind(backend)
  return {
    ...backend,
    offers: async (...args: Parameters<Backend['offers']>) =>
      (await backend.offers(...args)).map((offer) => paidOffer(offer, paid)),
    ...(prices !== undefined && {
      prices: async (...args: Parameters<NonNullable<Backend['prices']>>) => {
        const path = await prices(...args)
        if (path.knownToAtMs === undefined) return path
        const steps = path.prices.map((step) => ({
          ...step,
          priceMicroUsdPerHour: paid(step.priceMicroUsdPerHour),
        }))
        return { ...path, prices: steps }
      },
    }),
  }
}

function paidOffer(offer: Offer, paid: (price: MicroUsd) => MicroUsd): Offer {
  const { priceMicroUsdPerHour, priceMaxMicroUsdPerHour, besideMicroUsdPerHour, reservation } = offer
  return {
    ...offer,
    priceMicroUsdPerHour: paid(priceMicroUsdPerHour),
    listPriceMicroUsdPerHour: priceMicroUsdPerHour,
    ...(priceMaxMicroUsdPerHour !== undefined && { priceMaxMicroUsdPerHour: paid(priceMaxMicroUsdPerHour) }),
    ...(besideMicroUsdPerHour !== undefined && { besideMicroUsdPerHour: paid(besideMicroUsdPerHour) }),
    ...(reservation !== undefined && {
      reservation: { ...reservation, idleMicroUsdPerHour: paid(reservation.idleMicroUsdPerHour) },
    }),
  }
}
