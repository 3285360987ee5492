/** The data that EC2 keeps for a region. */
import type { Role } from '../identity/identities'
import { stateOf, type StateChange as Change } from '../machines/history'
import type { MachineSpec } from '../machines/machine'
import type { Hosted } from '../machines/pool'
import type { CapacityType } from '../world/schema'
import type { MachineType } from '../world/types'
import type { RegionPlan, Zone } from '../world/world'
import type { Endpoint, Gateway, RouteTable, SecurityGroup, Subnet, Tags, Vpc } from './network-model'
import type { CapacityReservation } from './reservation-model'

export { stateAt, stateOf } from '../machines/history'
export type {
  Endpoint,
  Gateway,
  NetworkPart,
  RouteTable,
  Rule,
  SecurityGroup,
  Subnet,
  Tags,
  Vpc,
} from './network-model'

export type InstanceState = 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped'

export const STATE_CODES: Readonly<Record<InstanceState, number>> = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
}

/** The reason for an instance's state, in EC2's codes. */
export interface Reason {
  code: string
  message: string
}

type StateChange = Change<InstanceState, Reason>

export interface Image {
  id: string
  name: string
  description: string
  ownerAlias: string
  architecture: 'x86_64' | 'arm64'
  rootDevice: string
  rootGiB: number
  /** Public parameters that name this image. */
  parameters: string[]
  isDeprecated: boolean
}

export interface DiskSpeed {
  iops: number
  mibPerSecond: number
}

export interface Volume {
  id: string
  zone: Zone
  sizeGiB: number
  type: string
  /** Operations per second and MiB/s; missing for types of disks that this cloud does not model. */
  speed?: DiskSpeed
  createdAtMs: number
  device: string
  instanceId?: string
  isDeletedWithInstance: boolean
  isEncrypted: boolean
  tags: Tags
}

export interface SpotRequest {
  id: string
  createdAtMs: number
  state: 'active' | 'closed' | 'cancelled'
  status: { code: string; message: string; atMs: number }
  maxPrice: string
  instance: Instance
  tags: Tags
}

export interface MetadataOptions {
  httpTokens: 'optional' | 'required'
  httpEndpoint: 'enabled' | 'disabled'
  hopLimit: number
  instanceMetadataTags: 'enabled' | 'disabled'
}

export interface Instance extends Hosted {
  reservationId: string
  launchIndex: number
  region: string
  subnet: Subnet
  type: MachineType
  image: Image
  capacity: CapacityType
  /** The maximum spot price. */
  maxUsdPerHour?: number
  spotRequest?: SpotRequest
  fleetId?: string
  clientToken: string
  launchedAtMs: number
  /** Describe calls do not return it before this instant. */
  visibleAtMs: number
  privateIp: string
  publicIp?: string
  interfaceId: string
  macAddress: string
  groupIds: string[]
  keyName?: string
  role?: Role
  /** Base64, as the client sent it. */
  userData: string
  shutdownBehavior: 'stop' | 'terminate'
  isProtected: boolean
  metadataOptions: MetadataOptions
  volumes: Volume[]
  tags: Tags
  /** Oldest first; never empty. */
  history: StateChange[]
  /** The reservation that the instance is in; missing when it takes a place of the pool. */
  place?: CapacityReservation
  /** The reservation options of its launch. */
  reservationWish: ReservationChoice
  /** Time at which its place becomes free; missing while it is taken. */
  heldUntilMs?: number
  /** The provider has given an interruption notice. */
  isMarked: boolean
  metadata?: MachineSpec['metadata']
}

export interface TemplateVersion {
  number: number
  description?: string
  createdAtMs: number
  createdBy: string
  /** The fields of the request, under their wire names. */
  data: LaunchFields
}

export interface Template {
  id: string
  name: string
  createdAtMs: number
  createdBy: string
  visibleAtMs: number
  tags: Tags
  versions: TemplateVersion[]
}

export interface Fleet {
  id: string
  createdAtMs: number
  clientToken: string
  tags: Tags
  state: 'active' | 'deleted' | 'deleted-terminating'
  request: Readonly<Record<string, unknown>>
  answer: Readonly<Record<string, unknown>>
  instances: Instance[]
  /** The answer of `CreateFleet` contains neither instances nor errors; `isShown`: `DescribeFleets` contains them. */
  silence?: { isShown: boolean }
}

export interface Region {
  plan: RegionPlan
  vpcs: Vpc[]
  gateways: Gateway[]
  routeTables: RouteTable[]
  groups: SecurityGroup[]
  subnets: Subnet[]
  images: Image[]
  nat?: { id: string; subnet: Subnet; publicIp: string }
  endpoints: Endpoint[]
  instances: Map<string, Instance>
  volumes: Map<string, Volume>
  spotRequests: Map<string, SpotRequest>
  reservations: Map<string, CapacityReservation>
  templates: Map<string, Template>
  fleets: Map<string, Fleet>
  createdAtMs: number
}

/** The reservations that a launch may use. */
export interface ReservationChoice {
  preference: 'open' | 'none' | 'capacity-reservations-only'
  /** The id of the required reservation. */
  target?: string
}

/** The fields of a launch, in a call or a template, under their wire names. */
export interface LaunchFields {
  ImageId?: string | undefined
  InstanceType?: string | undefined
  KeyName?: string | undefined
  UserData?: string | undefined
  SecurityGroupId?: string[] | undefined
  SecurityGroup?: string[] | undefined
  IamInstanceProfile?: { Arn?: string | undefined; Name?: string | undefined } | undefined
  InstanceInitiatedShutdownBehavior?: 'stop' | 'terminate' | undefined
  DisableApiTermination?: boolean | undefined
  EbsOptimized?: boolean | undefined
  Monitoring?: { Enabled?: boolean | undefined } | undefined
  Placement?:
    | {
        AvailabilityZone?: string | undefined
        AvailabilityZoneId?: string | undefined
        Tenancy?: string | undefined
      }
    | undefined
  MetadataOptions?:
    | {
        HttpTokens?: 'optional' | 'required' | undefined
        HttpEndpoint?: 'enabled' | 'disabled' | undefined
        HttpPutResponseHopLimit?: number | undefined
        InstanceMetadataTags?: 'enabled' | 'disabled' | undefined
      }
    | undefined
  CapacityReservationSpecification?:
    | {
        CapacityReservationPreference?: ReservationChoice['preference'] | undefined
        CapacityReservationTarget?: { CapacityReservationId?: string | undefined } | undefined
      }
    | undefined
  InstanceMarketOptions?:
    | {
        MarketType?: string | undefined
        SpotOptions?:
          | {
              MaxPrice?: string | undefined
              SpotInstanceType?: string | undefined
              InstanceInterruptionBehavior?: string | undefined
            }
          | undefined
      }
    | undefined
  NetworkInterface?:
    | {
        DeviceIndex?: number | undefined
        SubnetId?: string | undefined
        AssociatePublicIpAddress?: boolean | undefined
        DeleteOnTermination?: boolean | undefined
        SecurityGroupId?: string[] | undefined
        Description?: string | undefined
      }[]
    | undefined
  BlockDeviceMapping?:
    | {
        DeviceName?: string | undefined
        Ebs?:
          | {
              DeleteOnTermination?: boolean | undefined
              VolumeSize?: number | undefined
              VolumeType?: string | undefined
              SnapshotId?: string | undefined
              Iops?: number | undefined
              Throughput?: number | undefined
              Encrypted?: boolean | undefined
            }
          | undefined
      }[]
    | undefined
  TagSpecification?: { ResourceType: string; Tag: { Key: string; Value: string }[] }[] | undefined
}

export const isAlive = (instance: Instance): boolean => ['pending', 'running'].includes(stateOf(instance))
