export interface MachineType {
  name: string
  cpus: number
  memoryMiB: number
  /** `x86_64`, `arm64`, ... */
  architectures: string[]
  gpus: Gpu[]
  /** It has chips for learning that are no GPUs, or other special hardware. */
  hasOtherChips: boolean
  /** `on-demand`, `spot`, `capacity-block`. */
  usageClasses: string[]
  /** Accounts on the free plan may launch it. */
  isFreeTier: boolean
  isBareMetal: boolean
}

export interface Gpu {
  name: string
  manufacturer: string
  /** Devices that a program sees; each may be a part of a GPU. */
  count: number
  memoryMiB: number
  /** What each is of a whole GPU, up to 1. */
  part: number
}

export interface SpotPrice {
  type: string
  zone: string
  usdPerHour: string
}

export interface Image {
  id: string
  architecture: string
  rootDevice: string
  /** Smallest root volume that can hold it. */
  diskGiB: number
}

/** Capacity that the account holds, or that another shares with it. */
export interface Reservation {
  id: string
  /** A Capacity Block: it begins and ends at instants, and what runs in it ends with it. */
  isBlock: boolean
  /** A block of several machines that are one, which is ended earlier than others. */
  isUltraServer: boolean
  /** Its places are taken back whenever their owner wants them. */
  isInterruptible: boolean
  /** `active`, `scheduled`, `payment-pending`, ... */
  state: string
  type: string
  zone: string
  /** `Linux/UNIX`, ... */
  platform: string
  tenancy: string
  total: number
  free: number
  startsAtMs?: number
  endsAtMs?: number
}

export interface MarketApi {
  /** The types whose names match patterns with `*`. */
  types(patterns: string[], signal: AbortSignal): Promise<MachineType[]>
  /** Where each type is to be had at all, stock or not. */
  typeZones(patterns: string[], signal: AbortSignal): Promise<{ type: string; zone: string }[]>
  /** Dollars per hour of Linux on shared hardware, by type, of a whole Region. */
  onDemandPrices(region: string, signal: AbortSignal): Promise<Map<string, string>>
  /** Dollars for a GiB of disk of the kind that machines get (gp3) and a month; nothing where the list does not say. */
  diskUsdPerGiBMonth(region: string, signal: AbortSignal): Promise<string | undefined>
  /** Dollars for a GB (10^9 bytes) that leaves one Region for another; nothing where the list does not say. */
  transferUsdPerGb(way: { from: string; to: string }, signal: AbortSignal): Promise<string | undefined>
  /** The prices in force now. */
  spotPrices(types: string[], signal: AbortSignal): Promise<SpotPrice[]>
  /** The price of one pool in force at an instant, and every one since, the oldest first. */
  spotPriceHistory(
    pool: { type: string; zone: string; fromAtMs: number },
    signal: AbortSignal,
  ): Promise<{ atMs: number; usdPerHour: string }[]>
  image(id: string, signal: AbortSignal): Promise<Image | undefined>
  /** Whatever their state. */
  reservations(signal: AbortSignal): Promise<Reservation[]>
}
