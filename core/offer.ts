import { formatUsd, type MicroUsd } from './money'
import type { MachineShape } from './resources'

/** A backend's name as in the registry: `local`, `ec2`, `modal`, ... Above `backends/` it is only ever a label. @public */
export type BackendName = string

/** How the capacity is bought. An attribute of an offer, never a kind of backend. */
export const CAPACITY_TYPES = ['spot', 'on-demand', 'reserved'] as const
/** @public */
export type CapacityType = (typeof CAPACITY_TYPES)[number]

/** Who else uses the hardware, strictest first: nobody, other customers of the provider, or its owner, a private person or a small host. */
export const ISOLATIONS = ['dedicated', 'shared', 'community'] as const
/** @public */
export type Isolation = (typeof ISOLATIONS)[number]

/**
 * Whether an offer can be had now. `unknown` counts as worth trying: most providers publish no stock level, and only a
 * launch tells. `no-quota` means the account may not have it, whatever the stock. `unusable` means that the backend would not buy it
 * for any job as it is set up; it is listed so that a job that asks for it is told why.
 */
export type Availability = 'available' | 'unknown' | 'unavailable' | 'no-quota' | 'unusable'

/** Where a price was read and when: a price without its age misleads. */
export interface PriceSource {
  /** `live` (asked of the provider), `static` (a dated table in the backend's folder) or `configured` (set by the user). */
  kind: 'live' | 'static' | 'configured'
  observedAtMs: number
}

/** What a reservation adds to an offer: capacity that is held, and paid for, whether anything runs in it or not. */
export interface ReservedCapacity {
  /** Places into which a machine could be launched now, of so many. */
  free: number
  total: number
  /** When it begins, while that is still to come. */
  startsAtMs?: number
  /** When it ends, where it does. */
  endsAtMs?: number
  /** What a free place costs per hour: beyond what was paid up front, and no longer once a machine runs in it. */
  idleMicroUsdPerHour: MicroUsd
}

/** A priced possibility: a shape at a place, bought in one way. */
export interface Offer {
  backend: BackendName
  capacityType: CapacityType
  /** The provider's name for the machine type. */
  type: string
  /** Region, zone or host; empty when the provider has no places. */
  place: string
  /** The part of the provider that sells it, where there are several: one order asks one part. */
  region?: string
  shape: MachineShape
  /** `dedicated` when missing. */
  isolation?: Isolation
  /** Its provider may take the machine back although its price is that of on-demand capacity. */
  isPreemptible?: boolean
  /** What is billed for a machine hour, all in all; of a reservation, beyond what was paid for it up front. */
  priceMicroUsdPerHour: MicroUsd
  /** Of that, what is billed beside the machine itself (its disk, its address), at a price that stays; missing for nothing. */
  besideMicroUsdPerHour?: MicroUsd
  priceSource: PriceSource
  /** The most that the price can become while a machine of it runs; missing where it stays as it is. */
  priceMaxMicroUsdPerHour?: MicroUsd
  /** What the provider bills at least, however soon the machine ends; missing where every second counts alike. */
  billedAtLeastMs?: number
  /** Billing counts in steps of this duration, each begun one in full; missing for steps of one second. */
  billedInStepsOfMs?: number
  /** What still costs money when the machine is off, in words. */
  stillBilled?: string
  /** The price before a discount or credit that the operator has configured; `priceMicroUsdPerHour` is after it. */
  listPriceMicroUsdPerHour?: MicroUsd
  /** What it costs to move data between the machine and the store; missing where that is free. */
  transfer?: DataTransfer
  availability: Availability
  /** How many such machines could be had now, where the backend counts its places exactly. */
  freePlaces?: number
  /** Why it is unavailable, or a remark worth showing. */
  note?: string
  /** Names the reservation that a `reserved` offer launches into. */
  reservationId?: string
  /** Of a `reserved` offer. */
  reservation?: ReservedCapacity
  /** Until when the capacity can be used at all: from then on its provider ends what runs in it. */
  usableUntilMs?: number
  /** The provider ends a machine of it so long after its launch; missing where it may run for ever. */
  runMsMax?: number
  /** Expected interruptions per hour of running, where the backend has a figure for it. */
  interruptionsPerHour?: number
  /**
   * Whatever else the backend needs to buy exactly this (image, network, ...), fixed when the offer was made: it goes on record
   * with the order, so that a repeated launch asks for the very same. Small; nothing above the backend reads it.
   */
  data?: Record<string, string>
  /** What of this offer all later ones of the same job must have, too: `offers` gets it back. */
  pins?: Pins
}

/** The way between machines of an offer and the store of the deployment, where that is in another Region. */
export interface DataTransfer {
  /** Where the store is. */
  storeRegion: string
  /** Of 10^9 bytes from the machine to the store, and from the store to the machine. */
  upMicroUsdPerGb: MicroUsd
  downMicroUsdPerGb: MicroUsd
  /** Where both prices were read and when. */
  priceSource?: PriceSource
  /** What one machine is expected to move. */
  bytesPerSecond: number
}

/**
 * What stays the same for all attempts of a job at one backend (the image that a name stood for, ...), in that backend's own words.
 * Small; nothing above the backend reads it.
 */
export type Pins = Readonly<Record<string, string>>

/** Whether the provider may take its machine back. */
export function isInterruptible({ capacityType, isPreemptible = false }: Offer): boolean {
  return capacityType === 'spot' || isPreemptible
}

/** The most that an hour of it can cost. */
export function dearestPriceOf(
  offer: Pick<Offer, 'priceMicroUsdPerHour' | 'priceMaxMicroUsdPerHour'>,
): MicroUsd {
  return Math.max(offer.priceMicroUsdPerHour, offer.priceMaxMicroUsdPerHour ?? 0)
}

/** Identity of an offer for memory of what was out of stock: everything but price and stock. */
export function offerKey(
  offer: Pick<Offer, 'backend' | 'capacityType' | 'type' | 'place' | 'reservationId'>,
): string {
  const parts = [offer.backend, offer.capacityType, offer.type, offer.place]
  return (offer.reservationId === undefined ? parts : [...parts, offer.reservationId]).join('/')
}

/** Whether an `offerKey` is that of a reservation. */
export function isReservedKey(key: string): boolean {
  return key.split('/')[1] === 'reserved'
}

/** `$1.01/h`, `free`, or `paid` for what was paid for up front, but for what is billed beside it. */
export function priceInWords(offer: Offer): string {
  const { priceMicroUsdPerHour: price, besideMicroUsdPerHour: beside = 0, reservation } = offer
  if (reservation === undefined || price > beside) return price === 0 ? 'free' : `${formatUsd(price)}/h`
  return beside === 0 ? 'paid' : `paid, ${formatUsd(beside)}/h`
}

/** Stands for every offer at a place, in what a plan is to keep away from. */
export function placeKey({ backend, place }: Pick<Offer, 'backend' | 'place'>): string {
  return [backend, '*', '*', place].join('/')
}

/** What the user wrote under `backends`: a backend, or one capacity type of it (`ec2:spot`). @public */
export interface BackendChoice {
  backend: BackendName
  capacityType?: CapacityType
}

export function formatBackendChoice(choice: BackendChoice): string {
  return choice.capacityType === undefined ? choice.backend : `${choice.backend}:${choice.capacityType}`
}
