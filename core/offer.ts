import { formatUsd, type MicroUsd } from './money/money'
import type { ReservationHold } from './reservation/hold'
import type { MachineShape } from './resources'
import { formatInstant } from './time/time'

/** Name of a backend as in the registry: `local`, `ec2`, `modal`, ... Above `backends/` it is only a label. @public */
export type BackendName = string

/** How the capacity is bought. It is an attribute of an offer, never a kind of backend. */
export const CAPACITY_TYPES = ['spot', 'on-demand', 'reserved'] as const
/** @public */
export type CapacityType = (typeof CAPACITY_TYPES)[number]

/**
 * Other users of the hardware, strictest first: no other customer, other customers of the provider, or its owner (a private person or small
 * host).
 */
export const ISOLATIONS = ['dedicated', 'shared', 'community'] as const
/** @public */
export type Isolation = (typeof ISOLATIONS)[number]

/**
 * Whether an offer is available now. `unknown` is worth trying, because most providers publish no stock level. `no-quota`: the account may
 * not have it, whatever the stock. `unusable`: the backend would not buy it for any job in this configuration; it is listed so that a job
 * that asks for it gets the reason.
 */
export type Availability = 'available' | 'unknown' | 'unavailable' | 'no-quota' | 'unusable'

/** Source and time of a price: a price without its age misleads. */
export interface PriceSource {
  /** `live` (asked of the provider), `static` (a dated table in the backend's folder) or `configured` (set by the user). */
  kind: 'live' | 'static' | 'configured'
  observedAtMs: number
  /** The place whose price stands in for the unknown one of the offer's own place. */
  standIn?: string
}

/** Reservation of an offer: capacity that is paid for whether it is used or not. */
export interface ReservedCapacity {
  /** Places that are free for a launch now, and the total. */
  free: number
  total: number
  /** Start of the reservation, if that is in the future. */
  startsAtMs?: number
  /** End of the reservation, if it has one. */
  endsAtMs?: number
  /** Hourly cost of a free place, beyond the upfront payment. A machine in the place ends this cost. */
  idleMicroUsdPerHour: MicroUsd
  /** The intent that it was bought for by this deployment, as the provider reports it; missing for others. */
  intent?: string
  /** For whom its places are kept; missing if no one holds them. Backends omit it; the plan adds it from the store. */
  hold?: ReservationHold
  /** Only jobs that name it may use it: it was reserved outside of this deployment, whose settings do not open it to all jobs. */
  isForNaming?: boolean
  /** The provider also gives its places to any fitting machine of the account. */
  isOpen?: true
  /** Number of waiting jobs that name it and so go first; missing for none. Added by the plan. */
  namedByWaiting?: number
}

/** A priced possibility: a machine type at a place, bought in one way. */
export interface Offer {
  backend: BackendName
  capacityType: CapacityType
  /** The provider's name for the machine type. */
  type: string
  /** Region, zone or host; empty when the provider has no places. */
  place: string
  /** Region that sells the offer, if the provider has several: one order uses one Region. */
  region?: string
  shape: MachineShape
  /** `dedicated` when missing. */
  isolation?: Isolation
  /** The provider may take the machine back although its price is that of on-demand capacity. */
  isPreemptible?: boolean
  /** Total billed per machine hour; for a reservation, beyond its upfront payment. */
  priceMicroUsdPerHour: MicroUsd
  /** Part of the price for other things than the machine (its disk, its address), at a constant rate; missing if it is zero. */
  besideMicroUsdPerHour?: MicroUsd
  priceSource: PriceSource
  /** Highest price while a machine of the offer runs; missing if the price is constant. */
  priceMaxMicroUsdPerHour?: MicroUsd
  /** Minimum billed duration; missing if every second is billed alike. */
  billedAtLeastMs?: number
  /** Billing counts in steps of this duration, each begun one in full; missing for steps of one second. */
  billedInStepsOfMs?: number
  /** Items that still cost money when the machine is off, in words. */
  stillBilled?: string
  /** The price before a discount or credit that the operator has configured; `priceMicroUsdPerHour` is after it. */
  listPriceMicroUsdPerHour?: MicroUsd
  /** Cost of moving data between the machine and the store; missing if free. */
  transfer?: DataTransfer
  availability: Availability
  /** Number of free places of such machines, if the backend counts its places exactly. */
  freePlaces?: number
  /** Reason why the offer is unavailable, or a remark worth showing. */
  note?: string
  /** Jobs without an image run as one user there, which can read the files of all of them and the deployment's key. */
  sharesUser?: boolean
  /** Names the reservation that a `reserved` offer launches into. */
  reservationId?: string
  /** Reservation of a `reserved` offer. */
  reservation?: ReservedCapacity
  /** End of the capacity's availability, at which the provider ends all machines in it. */
  usableUntilMs?: number
  /** A reservation that the provider fills with any fitting machine, which machines of this offer leave alone; missing without one. */
  leavesOpen?: { reservationId: string; free: number }
  /** The latest end of the sign-in with which its worker renews the machine's lease, unless a person renews it; missing if it needs none. */
  signedInUntilMs?: number
  /** The provider ends a machine this long after its launch; missing if it may run without limit. */
  runMsMax?: number
  /** Expected interruptions per hour of running, if the backend has a figure. */
  interruptionsPerHour?: number
  /**
   * Other data that the backend needs to buy exactly this offer (image, network, ...), fixed when the offer was made. It is recorded with
   * the order, so that a repeated launch sends exactly the same request. Small; nothing above the backend reads it.
   */
  data?: Record<string, string>
  /** Properties of this offer that all later ones of the job must share; `offers` receives them. */
  pins?: Pins
}

/** The route between machines of an offer and the deployment's store in another Region. */
export interface DataTransfer {
  /** Region of the store. */
  storeRegion: string
  /** Price per 10^9 bytes from the machine to the store. `downMicroUsdPerGb` is for the other direction. */
  upMicroUsdPerGb: MicroUsd
  downMicroUsdPerGb: MicroUsd
  /** Source and time of both prices. */
  priceSource?: PriceSource
  /** Expected transfer rate of one machine. */
  bytesPerSecond: number
}

/**
 * Properties that stay the same for all attempts of a job at one backend (the image behind a name, ...), in that backend's own words.
 * Small; nothing above the backend reads them.
 */
export type Pins = Readonly<Record<string, string>>

/** Whether the provider may take the machine of an offer back. */
export function isInterruptible({ capacityType, isPreemptible = false }: Offer): boolean {
  return capacityType === 'spot' || isPreemptible
}

/** Whether the place of an offer is a Region, or a zone of it: `us-east-1a` and `us-east-1-bos-1a` are in `us-east-1`. */
export function isInRegion({ region, place }: Pick<Offer, 'region' | 'place'>, name: string): boolean {
  if (region === name || place === name) return true
  return place.startsWith(name) && /^(?:[a-z]$|-[a-z])/.test(place.slice(name.length))
}

/** The Region of an offer; a zone such as `us-east-1a` is that of its Region with a letter. */
export function regionOf(offer: Pick<Offer, 'region' | 'place'>): string {
  const zoneless = /^(.*\d)[a-z]$/.exec(offer.place)?.[1]
  return offer.region ?? zoneless ?? offer.place
}

/** Returns the highest hourly price of an offer. */
export function dearestPriceOf(
  offer: Pick<Offer, 'priceMicroUsdPerHour' | 'priceMaxMicroUsdPerHour'>,
): MicroUsd {
  return Math.max(offer.priceMicroUsdPerHour, offer.priceMaxMicroUsdPerHour ?? 0)
}

/** Identity of an offer for remembering missing stock: all properties except price and stock. */
export function offerKey(
  offer: Pick<Offer, 'backend' | 'capacityType' | 'type' | 'place' | 'reservationId'>,
): string {
  const { backend, capacityType, type, place, reservationId } = offer
  const key = `${backend}/${capacityType}/${type}/${place}`
  return reservationId === undefined ? key : `${key}/${reservationId}`
}

/** Stands for all places that sell the same machine type in the same way: one row of a plan. */
export function rowKey(offer: Pick<Offer, 'backend' | 'capacityType' | 'type' | 'reservationId'>): string {
  const { backend, capacityType, type, reservationId = '' } = offer
  return [backend, capacityType, type, reservationId].join('/').replace(/\/$/, '')
}

/** Whether an `offerKey` belongs to a reservation. */
export function isReservedKey(key: string): boolean {
  return key.split('/')[1] === 'reserved'
}

/** Returns a clause about the open reservation that an offer uses or leaves alone; `undefined` without one. */
export function openReservationInWords({
  type,
  place,
  reservationId,
  reservation,
  leavesOpen,
}: Pick<Offer, 'type' | 'place' | 'reservationId' | 'reservation' | 'leavesOpen'>): string | undefined {
  if (leavesOpen !== undefined)
    return `the reservation ${leavesOpen.reservationId} of ${type} in ${place} is open, and ${leavesOpen.free} of its places are free: an on-demand machine of a job leaves them to others, and their owner keeps paying; \`reservation: ${leavesOpen.reservationId}\` uses them`
  if (reservation?.isOpen !== true) return undefined
  return `the reservation ${reservationId} is open: its provider also fills it with any fitting on-demand machine of the account, to which a job's machine leaves fewer places`
}

/** Returns a clause about a worker's sign-in that ends before the job is likely to; `undefined` if it lasts, or needs no renewal. */
export function signInEndInWords(
  { signedInUntilMs }: Pick<Offer, 'signedInUntilMs'>,
  { durationMs, nowMs }: { durationMs: number; nowMs: number },
): string | undefined {
  if (signedInUntilMs === undefined || nowMs + durationMs <= signedInUntilMs) return undefined
  return `the sign-in of its worker ends by ${formatInstant(signedInUntilMs)}, before the job does: sign in again until then, or run the worker with a role; otherwise the machine saves and stops`
}

/** `$1.01/h`, `free`, or `paid` if it was paid for upfront and only extras are billed. */
export function priceInWords(
  offer: Pick<Offer, 'priceMicroUsdPerHour' | 'besideMicroUsdPerHour' | 'reservation'>,
): string {
  const { priceMicroUsdPerHour: price, besideMicroUsdPerHour: beside = 0, reservation } = offer
  if (reservation === undefined || price > beside) return price === 0 ? 'free' : `${formatUsd(price)}/h`
  return beside === 0 ? 'paid' : `paid, ${formatUsd(beside)}/h`
}

/** Stands for every offer at a place when a plan avoids places. */
export function placeKey({ backend, place }: Pick<Offer, 'backend' | 'place'>): string {
  return [backend, '*', '*', place].join('/')
}

/** One entry of `backends`: a backend, or one capacity type of it (`ec2:spot`). @public */
export interface BackendChoice {
  backend: BackendName
  capacityType?: CapacityType
}

/** Whether some offer matches both choices. */
export function overlap(one: BackendChoice, other: BackendChoice): boolean {
  const [a, b] = [one.capacityType, other.capacityType]
  return one.backend === other.backend && (a === undefined || b === undefined || a === b)
}

export function formatBackendChoice(choice: BackendChoice): string {
  return choice.capacityType === undefined ? choice.backend : `${choice.backend}:${choice.capacityType}`
}
