import type { MicroUsd } from '../../../core/money/money'
import type { Availability, Offer, PriceSource, ReservedCapacity } from '../../../core/offer'
import { formatInstant } from '../../../core/time/time'
import type { MachineType, Reservation } from '../sdk/api'
import type { Host } from '../host'
import { TAGS } from '../tags'
import type { Price } from './market'
import { cutOffOf, freeIn, isForNaming, isOpen } from './reservations'

/** Properties that only offers of a reservation have. */
export type ReservedFacts = Pick<
  Offer,
  'reservationId' | 'usableUntilMs' | 'priceMicroUsdPerHour' | 'besideMicroUsdPerHour'
> & {
  reservation: ReservedCapacity
  priceSource: PriceSource
  availability: Availability
  notes: string[]
  /** Data for the launch. */
  data: Record<string, string>
}

/**
 * The offer of a reservation. An on-demand place costs the list price, used or not; a place in a block is paid for; both without disk and
 * address. `undefined` if the price is unknown.
 */
export function reservedFacts(
  host: Host,
  reservation: Reservation,
  {
    type,
    price,
    besideMicroUsdPerHour,
    readAtMs,
  }: {
    type: MachineType
    price: Price | undefined
    besideMicroUsdPerHour: MicroUsd
    readAtMs: number
  },
): ReservedFacts | undefined {
  const { id, isBlock, total, startsAtMs, endsAtMs } = reservation
  if (!isBlock && price === undefined) return undefined
  const microUsdPerHour = isBlock ? 0 : price!.microUsdPerHour
  const isToCome = reservation.state !== 'active'
  const usableUntilMs = cutOffOf(reservation)
  const { availability, note } = availabilityOf(host, reservation, type)
  const notes = [note, ...(isBlock ? [] : [price!.note, ...endNote(reservation)])]
  return {
    reservationId: id,
    priceMicroUsdPerHour: microUsdPerHour + besideMicroUsdPerHour,
    besideMicroUsdPerHour,
    priceSource: isBlock ? { kind: 'live', observedAtMs: readAtMs } : price!.source,
    availability,
    notes: notes.filter((one) => one !== undefined),
    reservation: {
      free: freeIn(reservation),
      total,
      idleMicroUsdPerHour: microUsdPerHour,
      startsAtMs: isToCome ? startsAtMs : undefined,
      endsAtMs,
      isOpen: isOpen(reservation) || undefined,
      intent: intentOf(host, reservation),
      isForNaming:
        isForNaming(reservation, { config: host.config, deployment: host.deps.deployment }) || undefined,
    },
    usableUntilMs,
    data: isBlock ? { reservation: id, market: 'capacity-block' } : { reservation: id },
  }
}

/** Returns the intent of a reservation; none for a purchase of another deployment. */
function intentOf({ deps: { deployment } }: Host, { tags = {} }: Reservation): string | undefined {
  return deployment !== undefined && tags[TAGS.deployment] === deployment ? tags[TAGS.intent] : undefined
}

/** The end of an on-demand reservation does not end its machines. */
function endNote({ endsAtMs }: Reservation): string[] {
  if (endsAtMs === undefined) return []
  return [
    `the reservation ends ${formatInstant(endsAtMs)}; its machines continue after that, at the on-demand price`,
  ]
}

function availabilityOf(
  host: Host,
  reservation: Reservation,
  { name }: MachineType,
): { availability: Availability; note?: string } {
  const { id, state, zone, total, startsAtMs } = reservation
  const unavailable = (note: string): { availability: Availability; note: string } => ({
    availability: 'unavailable',
    note,
  })
  if (state !== 'active') {
    const when = startsAtMs === undefined ? '' : `, from ${formatInstant(startsAtMs)}`
    return unavailable(`the reservation ${id} is ${state}: it cannot be used yet${when}`)
  }
  if (freeIn(reservation) <= 0) return unavailable(`all ${total} places of the reservation ${id} are in use`)
  const pool = {
    backend: 'ec2',
    capacityType: 'reserved' as const,
    type: name,
    place: zone,
    reservationId: id,
  }
  const missed = host.memory.whyMissed(pool)
  // Counted a moment ago; others may have taken them since.
  return missed === undefined ? { availability: 'unknown' } : unavailable(`a moment ago: ${missed}`)
}
