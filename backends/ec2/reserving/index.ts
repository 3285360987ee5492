import type { CapacityQuote, CapacityRequest } from '../../../core/reservation/reservation'
import type { ReservingBackend } from '../../backend'
import { BackendError } from '../../errors'
import { verb } from '../calls'
import type { Host } from '../host'
import { blockQuotes, extensionQuotes } from './blocks'
import { change, release, releaseTerms } from './change'
import { hourlyQuotes } from './hourly'
import { reservations } from './owned'
import { reserve } from './reserve'
import { fitTypes } from './types'

/** Capacity Blocks (`prepaid`) and On-Demand Capacity Reservations (`hourly`) of one Region. */
export function createReserving(host: Host): ReservingBackend {
  return {
    account: (ctx) => verb(ctx, () => host.account(ctx.signal)),
    reservable: (wish, ctx) => verb(ctx, () => reservable(host, wish, ctx.signal)),
    reservations: (ctx) => verb(ctx, () => reservations(host, ctx.signal)),
    reserve: (order, ctx) => verb(ctx, () => reserve(host, order, ctx)),
    change: ({ id }, wanted, ctx) => verb(ctx, () => change(host, { id, change: wanted }, ctx.signal)),
    releaseTerms: ({ id }, ctx) => verb(ctx, () => releaseTerms(host, id, ctx.signal)),
    release: ({ id }, terms, ctx) => verb(ctx, () => release(host, { id, terms }, ctx.signal)),
  }
}

async function reservable(host: Host, wish: CapacityRequest, signal: AbortSignal): Promise<CapacityQuote[]> {
  if (wish.extends !== undefined) return extensionQuotes(host, wish, signal)
  await checkZones(host, wish, signal)
  const fitting = { ...wish, types: await fitTypes(host, wish.types, signal) }
  return wish.kind === 'prepaid' ? blockQuotes(host, fitting, signal) : hourlyQuotes(host, fitting, signal)
}

/** A zone that is misspelt would look like one in which nothing is for sale. */
async function checkZones(host: Host, { zones = [] }: CapacityRequest, signal: AbortSignal): Promise<void> {
  if (zones.length === 0) return
  const known = [...(await host.places.byZone(signal)).keys()].sort()
  if (zones.some((zone) => known.includes(zone))) return
  throw new BackendError({
    class: 'invalid',
    message: `${host.config.region} has no zone ${zones.join(', ')} with a subnet for machines`,
    hint: `Its zones with one: ${known.join(', ')}.`,
  })
}
