import { HOUR_MS } from '../../../core/time/time'
import { cutOffOf, isLive } from '../market/reservations'
import type { MachineType, Reservation } from '../sdk/api'
import type { Inquiry } from './inquiry'
import type { Asked } from './many-regions'
import { fitting as fittingTypes, type TypePattern } from './patterns'
import { isAccelerated, onDemandPrices } from './search'

export type ReservationKind = 'on-demand' | 'capacity-block'

/** A reservation that the account owns, or that another account shares with it. */
export interface Owned {
  region: string
  reservation: Reservation
  /** Dollars per hour of one of its machines on demand, if known; a block is paid for already. */
  usdPerHour?: number
}

export interface OwnedWish {
  kind: ReservationKind
  patterns: readonly TypePattern[]
  isAcceleratedOnly: boolean
  isAvailableOnly: boolean
  isActiveOnly: boolean
  minCapacity: number
  /** Also those that have ended. */
  hasEnded: boolean
  zones: readonly string[]
}

export interface OwnedAnswer {
  owned: Owned[]
  /** The same without a limit on the room of each, for `jointRoom`. */
  joinable: Owned[]
  notes: string[]
}

/** On-demand reservations or Capacity Blocks in every Region, never both. */
export async function findOwned(inquiry: Inquiry, wish: OwnedWish): Promise<Asked<OwnedAnswer>> {
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
    const joinable = fitting.map((reservation) => ({ region, reservation }))
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

function isWanted(reservation: Reservation, wish: OwnedWish, type: MachineType | undefined): boolean {
  const isFitting =
    fittingTypes([type ?? { name: reservation.type }], wish.patterns).length > 0 &&
    (wish.zones.length === 0 || wish.zones.includes(reservation.zone))
  return (
    isFitting &&
    (wish.hasEnded || isLive(reservation)) &&
    (!wish.isAcceleratedOnly || (type !== undefined && isAccelerated(type))) &&
    (!wish.isActiveOnly || isActive(reservation)) &&
    (!wish.isAvailableOnly || (reservation.state === 'active' && reservation.free > 0))
  )
}

/** A block that is paid for and has not begun counts as active: it is what the account has. */
function isActive({ state, isBlock }: Reservation): boolean {
  return state === 'active' || (isBlock && state === 'scheduled')
}

/** Machines that a launch can get: now, or of a reservation that has not begun, then. */
export function roomIn({ state, free, total }: Reservation): number {
  return state === 'active' ? free : total
}

/** When machines in it begin to be ended; of an on-demand reservation never. */
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

/** Reservations of one type and zone that together have the room that none of them has. */
export function jointRoom(
  owned: readonly Owned[],
  needed: number,
): { type: string; zone: string; room: number }[] {
  const rooms = new Map<string, { type: string; zone: string; room: number; most: number }>()
  for (const { reservation } of owned) {
    if (reservation.state !== 'active') continue
    const { type, zone, free } = reservation
    const key = `${type} ${zone}`
    const known = rooms.get(key) ?? { type, zone, room: 0, most: 0 }
    rooms.set(key, { type, zone, room: known.room + free, most: Math.max(known.most, free) })
  }
  return [...rooms.values()].filter(({ room, most }) => room >= needed && most < needed)
}
