export interface MachineType {
  name: string
  cpus: number
  memoryMiB: number
  /** `x86_64`, `arm64`, ... */
  architectures: string[]
  gpus: Gpu[]
  /** Whether it has AI accelerators other than GPUs, or other special hardware. */
  hasOtherChips: boolean
  /** `on-demand`, `spot`, `capacity-block`. */
  usageClasses: string[]
  /** Accounts on the free plan may launch it. */
  isFreeTier: boolean
  isBareMetal: boolean
  /** Network performance in EC2's words: `Up to 10 Gigabit`, `3200 Gigabit`. */
  networkPerformance?: string
  /** Interfaces with EFA that a machine can have; 0 for a type without EFA. */
  efaInterfaces?: number
  /** Most MB (10^6 bytes) per second that it exchanges with its EBS disks; missing if EC2 does not say. */
  diskMbPerSecond?: number | undefined
  /** GB (10^9 bytes) of NVMe disks of the machine itself; missing without any. */
  localDiskGb?: number | undefined
}

export interface Gpu {
  name: string
  manufacturer: string
  /** Devices that a program sees; each may be a part of a GPU. */
  count: number
  memoryMiB: number
  /** The share of a whole GPU of each, up to 1. */
  part: number
}

export interface SpotPrice {
  type: string
  zone: string
  usdPerHour: string
}

export interface Image {
  id: string
  /** The name that its owner gave it. */
  name?: string
  /** When its owner stops recommending it; it can still be launched. */
  deprecatedAtMs?: number
  architecture: string
  rootDevice: string
  /** Minimum size of a root volume. */
  diskGiB: number
}

/** Capacity that the account holds or that another account shares with it. */
export interface Reservation {
  id: string
  /** Whether it is a Capacity Block, which starts and ends at fixed times, and whose machines end with it. */
  isBlock: boolean
  /** A block of several machines that form one unit, which ends earlier than others. */
  isUltraServer: boolean
  /** Whether its owner can take its places back at any time. */
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
  /** Id of a Capacity Block: `cb-...`. */
  blockId?: string
  /** The account that pays for it; another account's is shared with this one. */
  owner?: string
  /** `open`: a launch that names no reservation uses it. */
  matching?: string
  isEbsOptimized?: boolean
  createdAtMs?: number
  /** End of the commitment of a reservation that was requested ahead of its start: it is paid for until then at least. */
  committedUntilMs?: number
  tags?: Record<string, string>
}

/** Dollars per month of a gp3 disk: for its size, and for what it has beyond the included 125 MiB/s and 3,000 operations per second. */
export interface DiskRates {
  usdPerGiBMonth: number
  usdPerMibpsMonth: number
  usdPerIopsMonth: number
}

export interface MarketApi {
  /** The types whose names match patterns with `*`. */
  types(patterns: string[], signal: AbortSignal): Promise<MachineType[]>
  /** The zones in which each type is sold, in stock or not. */
  typeZones(patterns: string[], signal: AbortSignal): Promise<{ type: string; zone: string }[]>
  /** Dollars per hour of Linux on shared hardware, by type, for a whole Region. */
  onDemandPrices(region: string, signal: AbortSignal): Promise<Map<string, string>>
  /** Returns the on-demand price of one type; nothing if the list has none. */
  onDemandPrice(pool: { region: string; type: string }, signal: AbortSignal): Promise<string | undefined>
  /** Returns the prices of the machines' kind of disk (gp3); nothing if the list lacks one of them. */
  diskRates(region: string, signal: AbortSignal): Promise<DiskRates | undefined>
  /** Returns the price in dollars per GB (10^9 bytes) that leaves one Region for another; nothing if the list has none. */
  transferUsdPerGb(way: { from: string; to: string }, signal: AbortSignal): Promise<string | undefined>
  /** The current prices. */
  spotPrices(types: string[], signal: AbortSignal): Promise<SpotPrice[]>
  /** The price of one pool at an instant, and every later one, oldest first. */
  spotPriceHistory(
    pool: { type: string; zone: string; fromAtMs: number },
    signal: AbortSignal,
  ): Promise<{ atMs: number; usdPerHour: string }[]>
  image(id: string, signal: AbortSignal): Promise<Image | undefined>
  /** Returns the reservations in any state. */
  reservations(signal: AbortSignal): Promise<Reservation[]>
}
