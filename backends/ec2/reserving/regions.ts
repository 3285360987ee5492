import type { CapacityQuote, CapacityRequest } from '../../../core/reservation/reservation'
import { MINUTE_MS } from '../../../core/time/time'
import type { Backend, LookContext, ReservingBackend } from '../../backend'
import { BackendError } from '../../errors'
import { invalid } from '../errors'
import { inEach, type Look } from '../each-region'

const LIMIT_MS = MINUTE_MS

/**
 * Combines reservations over all Regions of the configuration. A reservation is looked up in its own Region, even if that is no longer
 * configured.
 */
export function reservingAcross({ regions, at }: Pick<Look, 'regions' | 'at'>): ReservingBackend {
  const of = (region: string): ReservingBackend => at(region).reserving!
  return {
    account: (ctx) => of(regions[0]!).account(ctx),
    reservable: (wish, ctx) => reservable(wish, { regions, at, ctx }),
    reservations: async (ctx) => {
      const found = await inEach({ regions, at, ctx, limitMs: LIMIT_MS }, (backend, _, within) =>
        backend.reserving!.reservations(within),
      )
      return found.flatMap(({ answer }) => answer)
    },
    reserve: (order, ctx) => of(order.quote.region).reserve(order, ctx),
    change: (ref, change, ctx) => of(ref.region).change(ref, change, ctx),
    releaseTerms: (ref, ctx) => of(ref.region).releaseTerms(ref, ctx),
    release: (ref, terms, ctx) => of(ref.region).release(ref, terms, ctx),
  }
}

async function reservable(
  wish: CapacityRequest,
  { regions, at, ctx }: { regions: readonly string[]; at: (region: string) => Backend; ctx: LookContext },
): Promise<CapacityQuote[]> {
  const wanted = wish.extends === undefined ? (wish.regions ?? regions) : [wish.extends.region]
  const foreign = wanted.filter((region) => !regions.includes(region) && wish.extends === undefined)
  if (foreign.length > 0)
    throw invalid(
      `machines are not bought in ${foreign.join(', ')}`,
      `Name Regions of CRUCIBLE_EC2_REGIONS: ${regions.join(', ')}.`,
    )
  const refusals: BackendError[] = []
  const found = await inEach({ regions: wanted, at, ctx, limitMs: LIMIT_MS }, async (backend, _, within) => {
    try {
      return await backend.reserving!.reservable(wish, within)
    } catch (error) {
      // Another Region may sell a request that this one never does.
      if (!(error instanceof BackendError) || error.class !== 'invalid') throw error
      refusals.push(error)
      return []
    }
  })
  if (refusals.length === found.length && refusals.length > 0) throw refusals[0]!
  return found.flatMap(({ answer }) => answer)
}
