import type { CommandsApi } from './api-commands'
import type { LeftoversApi } from './api-leftovers'
import type { MarketApi } from './api-market'

export type * from './api-market'

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
