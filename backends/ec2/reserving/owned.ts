import type { MicroUsd } from '../../../core/money/money'
import { isHeld, type OwnedReservation } from '../../../core/reservation/reservation'
import { ec2Error } from '../errors'
import type { Host } from '../host'
import { cutOffOf, freeIn, phaseOf, whyUnfit } from '../market/reservations'
import type { Reservation } from '../sdk/api'
import type { BoughtExtension } from '../sdk/api-reserving'
import { purchaseOf } from './tags'
import { unfitTypes } from './types'

/** Returns every reservation that the account can see in this Region. */
export async function reservations(host: Host, signal: AbortSignal): Promise<OwnedReservation[]> {
  const [all, facts] = await Promise.all([host.api.market.reservations(signal), factsFor(host, signal)])
  const hasBlock = all.some((one) => one.isBlock && isHeld(phaseOf(one)))
  const extensions = hasBlock ? await extensionsIn(host, signal) : []
  return all.map((one) => ownedOf(one, { ...facts, extensions }))
}

export interface OwnedFacts {
  account: string
  region: string
  priceOf: (type: string) => MicroUsd | undefined
  whyTypeUnfit: (type: string) => string | undefined
  extensions: readonly BoughtExtension[]
}

export async function factsFor(host: Host, signal: AbortSignal): Promise<Omit<OwnedFacts, 'extensions'>> {
  const [account, priceOf, whyTypeUnfit] = await Promise.all([
    host.account(signal),
    host.market.onDemand(signal),
    unfitTypes(host, signal),
  ])
  const region = host.config.region
  const ownPriceOf = (type: string): MicroUsd | undefined => {
    const price = priceOf(type)
    return price?.source.standIn === undefined ? price?.microUsdPerHour : undefined
  }
  return { account, region, priceOf: ownPriceOf, whyTypeUnfit }
}

/** Returns extensions. A worker that may not buy may not read them; then only the end of the block shows an extension. */
async function extensionsIn(host: Host, signal: AbortSignal): Promise<BoughtExtension[]> {
  try {
    return await host.api.reserving.extensions(signal)
  } catch (error) {
    if (signal.aborted || ec2Error(error).class !== 'auth') throw error
    return []
  }
}

export function ownedOf(
  told: Reservation,
  { account, region, priceOf, whyTypeUnfit, extensions }: OwnedFacts,
): OwnedReservation {
  const { id, isBlock, state, type, zone, total, matching, owner = account } = told
  const phase = phaseOf(told)
  const isShared = owner !== account
  // The owner of a shared reservation pays for its unused places.
  const idleMicroUsdPerHour = isBlock || isShared ? 0 : priceOf(type)
  const extension = extensions
    .filter((one) => one.reservation === id)
    .reduce<BoughtExtension | undefined>(
      (newest, one) => (newest !== undefined && newest.boughtAtMs > one.boughtAtMs ? newest : one),
      undefined,
    )
  return {
    id,
    kind: isBlock ? 'prepaid' : 'hourly',
    phase,
    state,
    type,
    region,
    zone,
    total,
    free: freeIn(told),
    startsAtMs: told.startsAtMs,
    endsAtMs: told.endsAtMs,
    usableUntilMs: cutOffOf(told),
    createdAtMs: told.createdAtMs,
    idleMicroUsdPerHour,
    // A launch into a block always names it.
    isTargeted: isBlock || matching === 'targeted',
    isShared,
    unfit: whyUnfit(told) ?? whyTypeUnfit(type),
    ...purchaseOf(told.tags ?? {}),
    extension:
      extension !== undefined
        ? {
            phase: paymentPhase(extension),
            endsAtMs: extension.endsAtMs,
            boughtAtMs: extension.boughtAtMs,
          }
        : undefined,
  }
}

function paymentPhase({ state }: BoughtExtension): 'unpaid' | 'paid' | 'failed' {
  if (state === 'payment-pending') return 'unpaid'
  return state === 'payment-succeeded' ? 'paid' : 'failed'
}
