import { HOUR_MS } from '../../../core/time/time'
import { cutOffOf, freeIn, isLive } from '../market/reservations'
import type { MachineType, Reservation } from '../sdk/api'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import { fitting as fittingTypes, type TypePattern } from './patterns'
import { isAccelerated, onDemandPrices } from './search'

export { freeIn }
export type ReservationKind = 'on-demand' | 'capacity-block'

/** A reservation that the account owns or that another account shares with it. */
export interface Owned {
  region: string
  reservation: Reservation
  /** On-demand price of one of its machines in dollars per hour, if known; a block is already paid. */
  usdPerHour?: number
}

export interface OwnedQuery {
  kind: ReservationKind
  patterns: readonly TypePattern[]
  isAcceleratedOnly: boolean
  isAvailableOnly: boolean
  isActiveOnly: boolean
  minCapacity: number
  /** Whether ended reservations are included. */
  hasEnded: boolean
  zones: readonly string[]
}

export interface OwnedAnswer {
  owned: Owned[]
  /** Reservations without a limit on the room of each, for `jointRoom`. */
  joinable: Owned[]
  notes: string[]
}

/** Returns on-demand reservations or Capacity Blocks in every Region, never both. */
export async function findOwned(inquiry: Inquiry, wish: OwnedQuery): Promise<RegionAnswers<OwnedAnswer>> {
  const { signal } = inquiry
  return inquiry.each(async (api, region) => {
    const all = (await api.market.reservations(signal)).filter(
      ({ isBlock }) => isBlock === (wish.kind === 'capacity-block'),
    )
    const needsTypes = wish.isAcceleratedOnly || wish.patterns.some(({ isAccelerator }) => isAccelerator)
    const names = [...new Set(all.map(({ type }) => type))]
    const types = needsTypes && names.length > 0 ? await api.market.types(names, signal) : undefined
    const typeOf = (name: string): MachineType | undefined => types?.find((type) => type.name === name)
    const fitting = all
      .filter((one) => isWanted(one, wish, typeOf(one.type)))
      .sort((a, b) => (a.startsAtMs ?? 0) - (b.startsAtMs ?? 0) || a.id.localeCompare(b.id))
    const owned = fitting.filter((one) => roomIn(one) >= wish.minCapacity)
    const joinable = fitting
      .filter(({ isInterruptible }) => !isInterruptible)
      .map((reservation) => ({ region, reservation }))
    if (wish.kind === 'capacity-block')
      return { owned: owned.map((reservation) => ({ region, reservation })), joinable, notes: [] }
    const prices = await onDemandPrices(api, { region, types: owned.map(({ type }) => type) }, signal)
    return {
      owned: owned.map((reservation) => {
        const usd = prices.usd.get(reservation.type)
        return { region, reservation, usdPerHour: usd }
      }),
      joinable,
      notes: prices.notes,
    }
  })
}

function isWanted(reservation: Reservation, wish: OwnedQuery, type: MachineType | undefined): boolean {
  const isFitting =
    fittingTypes([type ?? { name: reservation.type }], wish.patterns).length > 0 &&
    (wish.zones.length === 0 || wish.zones.includes(reservation.zone))
  return (
    isFitting &&
    (wish.hasEnded || isLive(reservation)) &&
    (!wish.isAcceleratedOnly || (type !== undefined && isAccelerated(type))) &&
    (!wish.isActiveOnly || isActive(reservation)) &&
    (!wish.isAvailableOnly || (freeIn(reservation) > 0 && !reservation.isInterruptible))
  )
}

/** Whether a reservation is active. A paid block that has not begun counts, because the account owns it. */
function isActive({ state, isBlock }: Reservation): boolean {
  return state === 'active' || (isBlock && state === 'scheduled')
}

/**
 * Returns the number of machines that a launch can get: now, or at the start of a reservation that has not begun. An interruptible one has no
 * room: its owner may end its machines at any time, and launches need a market type of their own.
 */
export function roomIn({ state, free, total, isInterruptible }: Reservation): number {
  if (isInterruptible) return 0
  return state === 'active' ? free : total
}

/** Returns when EC2 begins to end machines in it; never for an on-demand reservation. */
export function usableUntilOf(reservation: Reservation): number | undefined {
  return cutOffOf(reservation)
}

/** Hours between its start and its end, to the hundredth. */
export function durationHoursOf({
  startsAtMs,
  endsAtMs,
}: {
  startsAtMs?: number
  endsAtMs?: number
}): number | undefined {
  if (startsAtMs === undefined || endsAtMs === undefined) return undefined
  return Math.round(((endsAtMs - startsAtMs) / HOUR_MS) * 100) / 100
}

/** Finds reservations of one type and zone that have enough room together but not individually. */
export function jointRoom(
  owned: readonly Owned[],
  needed: number,
): { type: string; zone: string; room: number }[] {
  const rooms = new Map<string, { type: string; zone: string; room: number; most: number }>()
  for (const { reservation } of owned) {
    if (reservation.state !== 'active') continue
    const { type, zone } = reservation
    const free = freeIn(reservation)
    const key = `${type} ${zone}`
    const known = rooms.get(key) ?? { type, zone, room: 0, most: 0 }
    rooms.set(key, { type, zone, room: known.room + free, most: Math.max(known.most, free) })
  }
  return [...rooms.values()].filter(({ room, most }) => room >= needed && most < needed)
}
