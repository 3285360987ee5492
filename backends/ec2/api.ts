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
  identity(signal: AbortSignal): Promise<{ account: string; arn: string }>
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
  profile(name: string, signal: AbortSignal): Promise<{ roleName?: string; policies: string[] } | undefined>
  /** A public or own parameter's value. */
  parameter(name: string, signal: AbortSignal): Promise<string>
  /** Region of a bucket, or `undefined` when there is no such bucket. */
  bucketRegion(bucket: Bucket, signal: AbortSignal): Promise<string | undefined>
  /** Puts an object unless there is one; false, and nothing changed, when there is. */
  putIfAbsent(bucket: Bucket, key: string, signal: AbortSignal): Promise<boolean>
  deleteObject(bucket: Bucket, key: string, signal: AbortSignal): Promise<void>
}

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
  gpus: { name: string; manufacturer: string; count: number; memoryMiB: number }[]
  /** It has chips for learning that are no GPUs, or other special hardware. */
  hasOtherChips: boolean
  /** `on-demand`, `spot`, `capacity-block`. */
  usageClasses: string[]
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

export interface MarketApi {
  /** The types whose names match patterns with `*`. */
  types(patterns: string[], signal: AbortSignal): Promise<MachineType[]>
  /** Where each type is to be had at all, stock or not. */
  typeZones(patterns: string[], signal: AbortSignal): Promise<{ type: string; zone: string }[]>
  /** Dollars per hour of Linux on shared hardware, by type, of a whole Region. */
  onDemandPrices(region: string, signal: AbortSignal): Promise<Map<string, string>>
  /** The prices in force now. */
  spotPrices(types: string[], signal: AbortSignal): Promise<SpotPrice[]>
  image(id: string, signal: AbortSignal): Promise<Image | undefined>
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

/** What came of a fleet of one machine. */
export interface FleetAnswer {
  machines: { id: string; pool?: Partial<Pool> }[]
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
  tags: Record<string, string>
  /** Why it is in its state, by the provider's own code, when it is ending or has ended. */
  reason?: { code: string; message: string }
  /** When and by whose wish it left its former state: `User initiated (2026-11-21 10:00:00 GMT)`. */
  transition?: string
}

export interface Volume {
  id: string
  state: string
  createdAtMs: number
  tags: Record<string, string>
}

export interface MachinesApi {
  createFleet(request: FleetRequest, signal: AbortSignal): Promise<FleetAnswer>
  /** Makes version 1 of a launch template. */
  createTemplate(spec: TemplateSpec, signal: AbortSignal): Promise<void>
  /** Those of these that the provider shows. */
  byId(ids: string[], signal: AbortSignal): Promise<Machine[]>
  byTag(tag: { name: string; value: string }, signal: AbortSignal): Promise<Machine[]>
  terminate(id: string, signal: AbortSignal): Promise<void>
  /** Volumes that no machine uses. */
  looseVolumes(tag: { name: string; value: string }, signal: AbortSignal): Promise<Volume[]>
  deleteVolume(id: string, signal: AbortSignal): Promise<void>
  /** The serial console's text, or `undefined` while there is none. */
  console(id: string, signal: AbortSignal): Promise<string | undefined>
}

/** A command on a machine, as the provider's agent tells of it. */
export interface Invocation {
  commandId: string
  comment: string
  requestedAtMs: number
  /** `Pending`, `InProgress`, `Success`, `Failed`, ... */
  status: string
}

export interface InvocationResult {
  status: string
  /** More exactly: `DeliveryTimedOut`, ... */
  details: string
  exitCode: number
  stdout: string
  stderr: string
}

export interface CommandRequest {
  machineId: string
  comment: string
  lines: string[]
  /** How long the machine may take to fetch it. */
  deliveryTimeoutMs: number
  /** How long it may run there. */
  runTimeoutMs: number
}

export interface CommandsApi {
  /** What is known of a machine's agent: `undefined` when it has never registered. */
  agent(machineId: string, signal: AbortSignal): Promise<{ isOnline: boolean } | undefined>
  /** Answers the command's id. */
  send(request: CommandRequest, signal: AbortSignal): Promise<string>
  /** The commands of one machine, newest first. */
  invocations(machineId: string, signal: AbortSignal): Promise<Invocation[]>
  /** `undefined` while the provider does not show it yet. */
  result(commandId: string, machineId: string, signal: AbortSignal): Promise<InvocationResult | undefined>
}
