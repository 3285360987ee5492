import { defined } from '../../../../core/defined'
import {
  isHeld,
  type CapacityQuote,
  type CapacityRequest,
  type OwnedReservation,
} from '../../../../core/reservation/reservation'
import { valueAt, type ExtensionLot, type HourlyLot, type Lot, type PrepaidLot } from './lots'

interface Asked {
  wish: CapacityRequest
  nowMs: number
  leftOf: (lot: Lot) => number
  held: (id: string) => OwnedReservation | undefined
}

/** What of these lots satisfies the whole wish now. */
export function quotesOf(
  { lots, cutOffMs }: { lots: Lot[]; cutOffMs: number },
  asked: Asked,
): CapacityQuote[] {
  const made = lots.flatMap((lot) => {
    const left = asked.leftOf(lot)
    if (lot.kind === 'extension') return left > 0 ? extensionOf(lot, asked) : []
    if (asked.wish.extends !== undefined) return []
    if (lot.kind === 'hourly') return left >= asked.wish.count ? hourlyOf(lot, asked) : []
    return left > 0 ? prepaidOf(lot, asked) : []
  })
  return made
    .map((quote) => ({
      ...quote,
      ...(quote.kind === 'prepaid' && { usableUntilMs: quote.endsAtMs! - cutOffMs }),
    }))
    .filter((quote) => satisfies(quote, asked.wish))
}

function prepaidOf(lot: PrepaidLot, { nowMs }: Asked): CapacityQuote[] {
  const upfrontMicro = valueAt(lot.upfrontMicro, nowMs)
  if (upfrontMicro === undefined || lot.startsAtMs <= nowMs) return []
  const { type, region, zone, count, startsAtMs, durationMs, currency = 'USD' } = lot
  const endsAtMs = startsAtMs + durationMs
  return [
    {
      id: `${type}/${zone}/${startsAtMs}/${durationMs}`,
      kind: 'prepaid',
      type,
      count,
      region,
      zone,
      startsAtMs,
      endsAtMs,
      upfrontMicro,
      perHourMicro: 0,
      currency,
      readAtMs: nowMs,
    },
  ]
}

function hourlyOf(lot: HourlyLot, { wish, nowMs }: Asked): CapacityQuote[] {
  const { type, region, zone, currency = 'USD', committedMs } = lot
  const price = valueAt(lot.perHourMicro, nowMs)
  const startsAtMs = Math.max(nowMs, wish.earliestStartAtMs ?? nowMs)
  const isLater = startsAtMs > nowMs
  if (price === undefined || (isLater && committedMs === undefined)) return []
  const endsAtMs = wish.durationMs === undefined ? wish.latestEndAtMs : startsAtMs + wish.durationMs
  return [
    {
      id: '',
      kind: 'hourly',
      type,
      count: wish.count,
      region,
      zone,
      startsAtMs,
      upfrontMicro: 0,
      perHourMicro: price * wish.count,
      currency,
      readAtMs: nowMs,
      endsAtMs,
      ...(isLater && defined({ committedMs })),
    },
  ]
}

function extensionOf(lot: ExtensionLot, { wish, nowMs, held }: Asked): CapacityQuote[] {
  const one = held(lot.reservation)
  const upfrontMicro = valueAt(lot.upfrontMicro, nowMs)
  if (wish.extends?.id !== lot.reservation || one?.endsAtMs === undefined || upfrontMicro === undefined)
    return []
  if (!isHeld(one.phase) || one.phase === 'unpaid' || one.extension?.phase === 'unpaid') return []
  const { type, region, zone, total: count, endsAtMs: startsAtMs } = one
  const endsAtMs = startsAtMs + lot.durationMs
  return [
    {
      id: `${one.id}+${lot.durationMs}`,
      kind: 'prepaid',
      type,
      count,
      region,
      zone,
      extends: one.id,
      startsAtMs,
      endsAtMs,
      upfrontMicro,
      perHourMicro: 0,
      currency: lot.currency ?? 'USD',
      readAtMs: nowMs,
    },
  ]
}

function satisfies(quote: CapacityQuote, wish: CapacityRequest): boolean {
  const { startsAtMs, endsAtMs = Infinity, usableUntilMs = endsAtMs } = quote
  // An extension adds its whole length: the machines of the time before go on.
  const lastsMs = (quote.extends === undefined ? usableUntilMs : endsAtMs) - startsAtMs
  const { earliestStartAtMs = -Infinity, latestStartAtMs = Infinity, latestEndAtMs = Infinity } = wish
  return (
    quote.kind === wish.kind &&
    wish.types.includes(quote.type) &&
    quote.count === wish.count &&
    lastsMs >= (wish.durationMs ?? 0) &&
    (wish.zones ?? [quote.zone]).includes(quote.zone) &&
    endsAtMs <= latestEndAtMs &&
    (quote.extends !== undefined || (startsAtMs >= earliestStartAtMs && startsAtMs <= latestStartAtMs))
  )
}
