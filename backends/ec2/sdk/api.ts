import type { CommandsApi } from './api-commands'
import type { LeftoversApi } from './api-leftovers'
import type { MarketApi } from './api-market'
import type { ReservingApi } from './api-reserving'

export type * from './api-market'

/**
 * This backend's use of AWS in our own terms: the boundary where tests insert a fake, and the only part that knows the SDK (`sdk/`). Lists
 * are complete, because paging is hidden here. Every call throws only `AwsError`.
 */
export interface Ec2Api {
  readonly account: AccountApi
  readonly market: MarketApi
  readonly network: NetworkApi
  readonly machines: MachinesApi
  readonly commands: CommandsApi
  readonly leftovers: LeftoversApi
  readonly reserving: ReservingApi
}

/** A failed call, before its meaning is classified. */
export class AwsError extends Error {
  /** Verbatim code of the provider or the system. */
  readonly code: string
  readonly httpStatus: number | undefined
  /**
   * How far the request got. `answered`: the provider answered. `unsent`: it never got the request. `unanswered`: it may have got the
   * request, and the result is unknown.
   */
  readonly reach: 'answered' | 'unsent' | 'unanswered'
  /** The command that renews the sign-in; missing if the error has another cause. */
  readonly remedy: string | undefined

  constructor(
    message: string,
    facts: {
      code: string
      reach: AwsError['reach']
      httpStatus?: number | undefined
      remedy?: string | undefined
      cause?: unknown
    },
  ) {
    super(message, { cause: facts.cause })
    this.name = 'AwsError'
    this.code = facts.code
    this.reach = facts.reach
    this.httpStatus = facts.httpStatus
    this.remedy = facts.remedy
  }
}

export interface DeniedAction {
  action: string
  /** The permissions boundary of the identity does not allow it, whatever its policies say. */
  isOfBoundary: boolean
}

export interface AccountApi {
  /** `clockAheadMs`: how far the provider's clock is ahead of our clock, to a second or two. */
  identity(signal: AbortSignal): Promise<{ account: string; arn: string; clockAheadMs: number }>
  /** New accounts may be on the free plan, which launches only a few small types. */
  plan(signal: AbortSignal): Promise<'free' | 'paid'>
  /** Returns the value of one quota of EC2, in its own unit. */
  quota(code: string, signal: AbortSignal): Promise<number>
  /** Requests for higher quotas of EC2 in this Region, newest first. */
  quotaRequests(signal: AbortSignal): Promise<QuotaRequest[]>
  /** The actions that the identity may not perform on a resource in a context, according to its policies. */
  deniedActions(
    arn: string,
    wish: { actions: string[]; probe: { resource: string; context: Record<string, string> } },
    signal: AbortSignal,
  ): Promise<DeniedAction[]>
  /** The role of an instance profile and its attached policies, or `undefined` without such a profile. */
  profile(name: string, signal: AbortSignal): Promise<Profile | undefined>
  hasRole(name: string, signal: AbortSignal): Promise<boolean>
  /** The full ARN of a role, with its path; `undefined` without such a role. */
  roleArn(name: string, signal: AbortSignal): Promise<string | undefined>
  /** Returns the value of a public or own parameter. */
  parameter(name: string, signal: AbortSignal): Promise<string>
  /** The KMS key that encrypts disks in this Region; `undefined` for AWS's own. */
  diskKey(signal: AbortSignal): Promise<string | undefined>
  /** Region of a bucket, or `undefined` without such a bucket. */
  bucketRegion(bucket: Bucket, signal: AbortSignal): Promise<string | undefined>
  /** Puts an object if it does not exist; otherwise returns false and changes nothing. */
  putIfAbsent(bucket: Bucket, key: string, signal: AbortSignal): Promise<boolean>
  deleteObject(bucket: Bucket, key: string, signal: AbortSignal): Promise<void>
}

type Profile = { roleName?: string; roleArn?: string; policies: string[] }

export interface QuotaRequest {
  code: string
  wanted: number
  /** Status in AWS's words: `PENDING`, `CASE_OPENED`, `APPROVED`, `DENIED`, `CASE_CLOSED`, ... */
  status: string
  askedAtMs: number
}

/** A bucket of the object store, which need not be on AWS. */
export interface Bucket {
  name: string
  region?: string
  endpoint?: string
}

export interface Subnet {
  id: string
  zone: string
  vpc: string
  freeAddresses: number
  /** Whether its machines get a public address. */
  givesPublicAddress: boolean
}

export interface SecurityGroup {
  id: string
  name: string
  vpc: string
  inboundRules: number
  /** Whether outbound traffic is allowed: all of it, or at least HTTPS. */
  letsOut: boolean
}

export interface NetworkApi {
  /** The named subnets, or the default ones of every zone. Unknown ids are left out. */
  subnets(wanted: string[] | 'default', signal: AbortSignal): Promise<Subnet[]>
  securityGroups(
    wanted: { ids: string[] } | { name: string; vpcs: string[] },
    signal: AbortSignal,
  ): Promise<SecurityGroup[]>
  /** Target of a subnet's default route (`igw-...`, `nat-...`), or `undefined` without one. */
  defaultRoute(subnet: Subnet, signal: AbortSignal): Promise<string | undefined>
  /** The services that a network reaches through endpoints, by the last part of their names (`ssm`, `s3`). */
  endpoints(vpc: string, signal: AbortSignal): Promise<string[]>
}

/** A pool of machines: a type in a subnet. */
export interface Pool {
  type: string
  subnet: string
  /** The root disk, where it differs from that of the template. */
  disk?: RootDisk | undefined
}

/** Speed of a gp3 disk. */
export interface DiskSpeed {
  mibPerSecond: number
  iops: number
}

export interface RootDisk {
  device: string
  sizeGiB: number
  /** Missing for the speed that every gp3 disk has. */
  speed?: DiskSpeed | undefined
}

export interface TemplateSpec {
  name: string
  image: string
  profile: string
  securityGroups: string[]
  rootDevice: string
  diskGiB: number
  userData: string
  /** Whether its machines never use a reservation. */
  avoidsReservations: boolean
  /** Whether spot requests of its launches get all tags of the template; only launches of spot machines may use it. */
  tagsSpotRequests: boolean
  tags: Record<string, string>
}

export interface FleetRequest {
  token: string
  capacityType: 'spot' | 'on-demand'
  templateName: string
  /** Best first. */
  pools: Pool[]
  /** Tags for the machine and everything created with it. */
  tags: Record<string, string>
}

/** Request for one machine in a reservation. */
export interface ReservedRequest {
  token: string
  templateName: string
  pool: Pool
  reservation: string
  isBlock: boolean
  /** Tags for the machine and everything created with it. */
  tags: Record<string, string>
}

/** The result of a fleet of one machine. With neither machines nor errors it says nothing. */
export interface FleetAnswer {
  fleetId?: string
  machines: {
    id: string
    pool?: Partial<Pool>
    /** The machine; present only if the answer has all of it. */
    machine?: Machine
  }[]
  /** Why a pool had no machine. */
  errors: { code: string; message: string; pool?: Partial<Pool> }[]
}

type MachineState = 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped'

export interface Machine {
  id: string
  state: MachineState
  type: string
  zone: string
  subnet?: string
  capacityType: 'spot' | 'on-demand' | 'reserved'
  launchedAtMs: number
  /** Reservation of the machine, or the one into which it was launched. */
  reservation?: string
  tags: Record<string, string>
  /** Code of the provider for the reason of its end. */
  reason?: { code: string; message: string }
  /** Time and requester of the last change of state: `User initiated (2026-11-21 10:00:00 GMT)`. */
  transition?: string
}

interface Volume {
  id: string
  state: string
  zone: string
  sizeGiB: number
  /** Missing for kinds of disks whose speed is not set. */
  speed?: DiskSpeed | undefined
  createdAtMs: number
  tags: Record<string, string>
}

/** A filter of a list refuses more values than this. */
export const FILTER_VALUES_MAX = 200

export interface MachinesApi {
  createFleet(request: FleetRequest, signal: AbortSignal): Promise<FleetAnswer>
  /** Returns the record of an instant fleet; `undefined` if it is not shown. */
  fleet(id: string, signal: AbortSignal): Promise<FleetAnswer | undefined>
  /** Launches a machine into a reservation, and nowhere else, or throws. */
  runReserved(request: ReservedRequest, signal: AbortSignal): Promise<Machine>
  /** Makes version 1 of a launch template. */
  createTemplate(spec: TemplateSpec, signal: AbortSignal): Promise<void>
  /** Returns the machines that the provider shows, of at most `FILTER_VALUES_MAX`. */
  byId(ids: string[], signal: AbortSignal): Promise<Machine[]>
  /** Machines whose tag has one of the values, at most `FILTER_VALUES_MAX`. */
  byTag(tag: { name: string; values: string[] }, signal: AbortSignal): Promise<Machine[]>
  /** One unknown id fails the whole call. */
  terminate(ids: string[], signal: AbortSignal, how?: { isAbrupt: boolean }): Promise<void>
  /** Volumes that are attached to no machine. */
  looseVolumes(tag: { name: string; value: string }, signal: AbortSignal): Promise<Volume[]>
  deleteVolume(id: string, signal: AbortSignal): Promise<void>
  /** Returns the text of the serial console, or `undefined` if it is empty. */
  console(id: string, signal: AbortSignal): Promise<string | undefined>
}
