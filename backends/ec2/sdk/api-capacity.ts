import type { AccountApi, MarketApi, NetworkApi, Subnet } from './api'

interface RegionState {
  name: string
  /** The account can use it: AWS enables older Regions for every account, and others on request. */
  isEnabled: boolean
}

/** A Capacity Block for sale, until another account buys it. */
export interface BlockOffering {
  id: string
  type: string
  count: number
  zone: string
  startsAtMs: number
  endsAtMs: number
  /** Length that AWS states in addition to the dates of the block; missing if it states none. */
  lengthMs?: number
  /** Price of the whole block, paid at once. */
  upfrontFee: string
  /** ISO 4217; empty if AWS gives none. */
  currency: string
  tenancy: string
  /** Type of UltraServer, for a block of UltraServers. */
  ultraServerType?: string
}

export interface OfferingRequest {
  type: string
  count: number
  /** A length that AWS sells: `capacity/block-durations.ts`. */
  durationHours: number
  startsAfterMs?: number
  endsBeforeMs?: number
}

/** Network place of the machines of a reservation. */
export interface NetworkPlace {
  reservation: string
  type: string
  zone: string
  state: string
  /** Network nodes from the top layer down; two machines that share a lower node are closer. May be empty. */
  nodes: string[]
}

/** Likelihood that a spot request succeeds, 1 to 10. */
interface PlacementScore {
  region: string
  /** An id such as `use1-az1`, which means the same zone in every account. */
  zoneId?: string
  score: number
}

/** How well EC2 could now serve a request for machines of one type in one zone, in its words: `high`, `medium`, `low` or `unsupported`. */
interface CapacityScore {
  type: string
  zoneId: string
  score: string
}

export interface PriceChange {
  type: string
  zone: string
  atMs: number
  usdPerHour: string
}

/** A running machine, as far as quotas count it. */
export interface CountedMachine {
  type: string
  vcpus: number
  isSpot: boolean
  /** Machines in a Capacity Block count against no quota. */
  isInBlock: boolean
}

/** The read-only calls about capacity of one Region that no backend needs. */
export interface CapacityApi {
  /** Returns all Regions of the partition. Every Region gives the same answer. */
  regions(signal: AbortSignal): Promise<RegionState[]>
  /** The names of types that are sold as Capacity Blocks in this Region. */
  blockTypes(signal: AbortSignal): Promise<string[]>
  offerings(wish: OfferingRequest, signal: AbortSignal): Promise<BlockOffering[]>
  topology(signal: AbortSignal): Promise<NetworkPlace[]>
  placementScores(
    wish: { types: string[]; count: number; regions: string[]; byZone: boolean },
    signal: AbortSignal,
  ): Promise<PlacementScore[]>
  /** Scores capacity for up to fifty types in up to ten zones of any Regions; only for accounts with the support plan Unified Operations. */
  capacityScores(
    wish: { market: 'on-demand' | 'spot'; types: string[]; zoneIds: string[]; count: number },
    signal: AbortSignal,
  ): Promise<CapacityScore[]>
  /** Returns every change of the spot prices since an instant, and the price in force then, oldest first. */
  spotChanges(wish: { types: string[]; fromAtMs: number }, signal: AbortSignal): Promise<PriceChange[]>
  /** The id of each zone that the account can use, by its name. */
  zoneIds(signal: AbortSignal): Promise<Map<string, string>>
  subnetsOfAll(signal: AbortSignal): Promise<Subnet[]>
  countedMachines(signal: AbortSignal): Promise<CountedMachine[]>
}

/** Read-only questions about the capacity of one Region. Every call throws only `AwsError`. */
export interface RegionApi {
  market: MarketApi
  network: NetworkApi
  capacity: CapacityApi
  account: Pick<AccountApi, 'quota' | 'quotaRequests'>
}
