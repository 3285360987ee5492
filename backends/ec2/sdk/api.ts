import type { CommandsApi } from './api-commands'
import type { LeftoversApi } from './api-leftovers'

/**
 * What this backend asks of AWS, in our own terms: the boundary at which tests put a fake, and behind which alone the SDK is
 * known (`sdk*.ts`). Lists are whole: paging is behind this line. Every call throws `AwsError` and nothing else.
 */
export interface Ec2Api {
  readonly account: AccountApi
  readonly market: MarketApi
  readonly network: NetworkApi
  readonly machines: MachinesApi
  readonly commands: CommandsApi
  readonly leftovers: LeftoversApi
}

/** A call that failed, before anybody has judged what that means. */
export class AwsError extends Error {
  /** The provider's or the system's own code, verbatim. */
  readonly code: string
  readonly httpStatus: number | undefined
  /**
   * `answered`: the provider said so. `unsent`: it never got the request. `unanswered`: nobody knows whether it did, or what
   * came of it.
   */
  readonly reach: 'answered' | 'unsent' | 'unanswered'

  constructor(
    message: string,
    facts: { code: string; reach: AwsError['reach']; httpStatus?: number | undefined; cause?: unknown },
  ) {
    super(message, { cause: facts.cause })
    this.name = 'AwsError'
    this.code = facts.code
    this.reach = facts.reach
    this.httpStatus = facts.httpStatus
  }
}

export interface AccountApi {
  /** `clockAheadMs`: how far the provider's clock is ahead of ours, to a second or two. */
  identity(signal: AbortSignal): Promise<{ account: string; arn: string; clockAheadMs: number }>
  /** New accounts may be on the free plan, which launches a few small types only. */
  plan(signal: AbortSignal): Promise<'free' | 'paid'>
  /** The value of one quota of EC2, in its own unit. */
  quota(code: string, signal: AbortSignal): Promise<number>
  /** Requests for higher quotas of EC2 in this Region, newest first. */
  quotaRequests(signal: AbortSignal): Promise<QuotaRequest[]>
  /** Which of these actions the identity may not do to a resource in a context, as far as its policies tell. */
  deniedActions(
    arn: string,
    wish: { actions: string[]; probe: { resource: string; context: Record<string, string> } },
    signal: AbortSignal,
  ): Promise<string[]>
  /** The role of an instance profile and the policies attached to it, or `undefined` when there is no such profile. */
  profile(name: string, signal: AbortSignal): Promise<Profile | undefined>
  hasRole(name: string, signal: AbortSignal): Promise<boolean>
  /** The whole ARN of a role, with its path; `undefined` when there is no such role. */
  roleArn(name: string, signal: AbortSignal): Promise<string | undefined>
  /** A public or own parameter's value. */
  parameter(name: string, signal: AbortSignal): Promise<string>
  /** Region of a bucket, or `undefined` when there is no such bucket. */
  bucketRegion(bucket: Bucket, signal: AbortSignal): Promise<string | undefined>
  /** Puts an object unless there is one; false, and nothing changed, when there is. */
  putIfAbsent(bucket: Bucket, key: string, signal: AbortSignal): Promise<boolean>
  deleteObject(bucket: Bucket, key: string, signal: AbortSignal): Promise<void>
}

export type Profile = { roleName?: string; roleArn?: string; policies: string[] }

export interface QuotaRequest {
  code: string
  wanted: number
  /** As AWS says it: `PENDING`, `CASE_OPENED`, `APPROVED`, `DENIED`, `CASE_CLOSED`, ... */
  status: string
  askedAtMs: number
}

/** A bucket of the object store, which need not be one of AWS. */
export interface Bucket {
  name: string
  region?: string
  endpoint?: string
}

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

export interface Subnet {
  id: string
  zone: string
  vpc: string
  freeAddresses: number
  /** Machines in it get a public address. */
  givesPublicAddress: boolean
}

export interface SecurityGroup {
  id: string
  name: string
  vpc: string
  inboundRules: number
  /** Everything, or HTTPS at least, may leave. */
  letsOut: boolean
}

export interface NetworkApi {
  /** The named subnets, or the default ones of every zone. Unknown ids are left out. */
  subnets(wanted: string[] | 'default', signal: AbortSignal): Promise<Subnet[]>
  securityGroups(
    wanted: { ids: string[] } | { name: string; vpcs: string[] },
    signal: AbortSignal,
  ): Promise<SecurityGroup[]>
  /** How traffic leaves a subnet: where its default route leads (`igw-...`, `nat-...`), or `undefined` without one. */
  defaultRoute(subnet: Subnet, signal: AbortSignal): Promise<string | undefined>
  /** The services that a network reaches without a way out, by the last part of their names (`ssm`, `s3`). */
  endpoints(vpc: string, signal: AbortSignal): Promise<string[]>
}

/** One pool of machines: a type in a subnet. */
export interface Pool {
  type: string
  subnet: string
}

export interface TemplateSpec {
  name: string
  image: string
  profile: string
  securityGroups: string[]
  rootDevice: string
  diskGiB: number
  userData: string
  /** Its machines take no place of a reservation. */
  avoidsReservations: boolean
  /** Spot requests of its launches get the tags of the template, all of them; only launches of spot machines may use it. */
  tagsSpotRequests: boolean
  tags: Record<string, string>
}

export interface FleetRequest {
  token: string
  capacityType: 'spot' | 'on-demand'
  templateName: string
  /** Best first. */
  pools: Pool[]
  /** On the machine and all that comes with it. */
  tags: Record<string, string>
}

/** One machine in a reservation. */
export interface ReservedRequest {
  token: string
  templateName: string
  pool: Pool
  reservation: string
  isBlock: boolean
  /** On the machine and all that comes with it. */
  tags: Record<string, string>
}

/** What came of a fleet of one machine. With neither machines nor errors it says nothing. */
export interface FleetAnswer {
  fleetId?: string
  machines: {
    id: string
    pool?: Partial<Pool>
    /** Where the answer says all of it. */
    machine?: Machine
  }[]
  /** Why a pool gave none. */
  errors: { code: string; message: string; pool?: Partial<Pool> }[]
}

export type MachineState = 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped'

export interface Machine {
  id: string
  state: MachineState
  type: string
  zone: string
  subnet?: string
  capacityType: 'spot' | 'on-demand' | 'reserved'
  launchedAtMs: number
  /** The reservation that it is in, or was launched into. */
  reservation?: string
  tags: Record<string, string>
  /** Why it is in its state, by the provider's own code, when it is ending or has ended. */
  reason?: { code: string; message: string }
  /** When and by whose wish it left its former state: `User initiated (2026-11-21 10:00:00 GMT)`. */
  transition?: string
}

export interface Volume {
  id: string
  state: string
  zone: string
  sizeGiB: number
  createdAtMs: number
  tags: Record<string, string>
}

export interface MachinesApi {
  createFleet(request: FleetRequest, signal: AbortSignal): Promise<FleetAnswer>
  /** What is on record of an instant fleet; `undefined` where it is not shown (yet). */
  fleet(id: string, signal: AbortSignal): Promise<FleetAnswer | undefined>
  /** Launches into a reservation, or throws: never elsewhere. */
  runReserved(request: ReservedRequest, signal: AbortSignal): Promise<Machine>
  /** Makes version 1 of a launch template. */
  createTemplate(spec: TemplateSpec, signal: AbortSignal): Promise<void>
  /** Those of these that the provider shows. */
  byId(ids: string[], signal: AbortSignal): Promise<Machine[]>
  byTag(tag: { name: string; value: string }, signal: AbortSignal): Promise<Machine[]>
  terminate(id: string, signal: AbortSignal, how?: { isAbrupt: boolean }): Promise<void>
  /** Volumes that no machine uses. */
  looseVolumes(tag: { name: string; value: string }, signal: AbortSignal): Promise<Volume[]>
  deleteVolume(id: string, signal: AbortSignal): Promise<void>
  /** The serial console's text, or `undefined` while there is none. */
  console(id: string, signal: AbortSignal): Promise<string | undefined>
}
