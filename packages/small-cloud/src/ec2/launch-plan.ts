/** Converts a launch request into a plan; all errors of the request are found here. */
import type { Role } from '../identity/identities'
import { ApiError } from '../wire/errors'
import type { Call } from '../wire/service'
import type { CapacityType } from '../world/schema'
import { isFreeTierEligible, type MachineType } from '../world/types'
import { checkDisk } from './disks'
import type { Ec2 } from './ec2'
import type { Image, LaunchFields, MetadataOptions, Region, ReservationChoice, Subnet } from './model'
import { reservationWishOf } from './reserved-room'

/** A launch without its location. */
export interface LaunchPlan {
  region: Region
  type: MachineType
  image: Image
  capacity: CapacityType
  maxUsdPerHour?: number
  reservationWish: ReservationChoice
  /** Empty for the network's default group. */
  groupIds: string[]
  role?: Role
  userData: string
  shutdownBehavior: 'stop' | 'terminate'
  isProtected: boolean
  /** Whether the caller may not use the key of the disks: EC2 accepts the launch, and ends the machine at once. */
  isKeyRefused: boolean
  metadataOptions: MetadataOptions
  hasPublicIp?: boolean
  /** The template of the launch. */
  template?: { id: string; version: number }
  fields: LaunchFields
}

/** Maximum size of user data before it is encoded. */
const USER_DATA_BYTES_MAX = 16_384
const TAGS_MAX = 50

export function planLaunch(ec2: Ec2, call: Call, fields: LaunchFields): LaunchPlan {
  const region = ec2.region(call.region)
  const { InstanceMarketOptions: market, NetworkInterface: interfaces = [] } = fields
  if (fields.KeyName !== undefined)
    throw new ApiError('InvalidKeyPair.NotFound', `The key pair '${fields.KeyName}' does not exist`)
  if (interfaces.length > 1)
    throw new ApiError(
      'InvalidParameterCombination',
      'This small cloud gives a machine one network interface',
    )
  if (interfaces.length > 0 && (fields.SecurityGroupId ?? []).length > 0)
    throw new ApiError(
      'InvalidParameterCombination',
      'Network interfaces and an instance-level security groups may not be specified on the same request',
    )
  checkTags(fields)
  const type = typeOf(ec2, fields)
  if (ec2.parts.world.plan === 'free' && !isFreeTierEligible(type))
    throw new ApiError(
      'InvalidParameterCombination',
      "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run 'describe-instance-types' with the filter 'free-tier-eligible=true'.",
    )
  const image = imageOf(region, fields)
  checkDisks(image, fields)
  const role = roleOf(ec2, call, fields)
  const capacity = capacityOf(market)
  const maxPrice = market?.SpotOptions?.MaxPrice
  return {
    region,
    type,
    image,
    capacity,
    ...(maxPrice === undefined ? {} : { maxUsdPerHour: priceOf(maxPrice) }),
    reservationWish: reservationWishOf(region, fields),
    groupIds: groupsOf(region, fields),
    ...(role === undefined ? {} : { role }),
    userData: userDataOf(fields),
    shutdownBehavior: fields.InstanceInitiatedShutdownBehavior ?? 'stop',
    isProtected: fields.DisableApiTermination ?? false,
    isKeyRefused: isKeyRefused(ec2, call, fields),
    metadataOptions: {
      httpTokens: fields.MetadataOptions?.HttpTokens ?? 'optional',
      httpEndpoint: fields.MetadataOptions?.HttpEndpoint ?? 'enabled',
      hopLimit: fields.MetadataOptions?.HttpPutResponseHopLimit ?? 1,
      instanceMetadataTags: fields.MetadataOptions?.InstanceMetadataTags ?? 'disabled',
    },
    ...(interfaces[0]?.AssociatePublicIpAddress === undefined
      ? {}
      : { hasPublicIp: interfaces[0].AssociatePublicIpAddress }),
    fields,
  }
}

function isKeyRefused(
  { parts: { world, identities } }: Ec2,
  { principal }: Call,
  { BlockDeviceMapping: disks = [] }: LaunchFields,
): boolean {
  const { diskKey: resource } = world
  if (resource === undefined || !disks.some((disk) => 'Ebs' in disk && disk.Ebs?.Encrypted === true))
    return false
  const context = { 'kms:GrantIsForAWSResource': 'true' }
  return identities.judge(principal, { action: 'kms:CreateGrant', resource, context }) !== 'allowed'
}

export function typeOf(ec2: Ec2, { InstanceType: name = 'm5.large' }: LaunchFields): MachineType {
  const type = ec2.parts.world.types.get(name)
  if (type === undefined)
    throw new ApiError('InvalidParameterValue', `Invalid value '${name}' for InstanceType.`)
  return type
}

function imageOf(region: Region, { ImageId: id }: LaunchFields): Image {
  if (id === undefined)
    throw new ApiError('MissingParameter', 'The request must contain the parameter ImageId')
  const alias = id.startsWith('resolve:ssm:') ? id.slice('resolve:ssm:'.length) : undefined
  if (alias === undefined && !/^ami-[0-9a-f]{8}([0-9a-f]{9})?$/.test(id))
    throw new ApiError('InvalidAMIID.Malformed', `Invalid id: "${id}" (expecting "ami-...")`)
  const image = region.images.find(
    (each) => each.id === id || (alias !== undefined && each.parameters.includes(alias)),
  )
  if (image === undefined)
    throw new ApiError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`)
  return image
}

function checkDisks(
  { rootDevice, rootGiB }: Image,
  { BlockDeviceMapping: devices = [] }: LaunchFields,
): void {
  for (const { DeviceName, Ebs: ebs } of devices) {
    if (ebs === undefined) continue
    const imageGiB = DeviceName === rootDevice ? rootGiB : 0
    checkDisk(ebs, { sizeGiB: ebs.VolumeSize ?? rootGiB, imageGiB })
  }
}

function groupsOf(region: Region, fields: LaunchFields): string[] {
  const ids = fields.NetworkInterface?.[0]?.SecurityGroupId ?? fields.SecurityGroupId ?? []
  const names = fields.SecurityGroup ?? []
  const found = [
    ...ids.map((id) => [id, region.groups.find((group) => group.id === id)] as const),
    ...names.map((name) => [name, region.groups.find((group) => group.name === name)] as const),
  ]
  const missing = found.find(([, group]) => group === undefined)
  if (missing !== undefined)
    throw new ApiError('InvalidGroup.NotFound', `The security group '${missing[0]}' does not exist`)
  return found.map(([, group]) => group!.id)
}

function roleOf(
  ec2: Ec2,
  { principal }: Call,
  { IamInstanceProfile: profile }: LaunchFields,
): Role | undefined {
  if (profile === undefined) return undefined
  if (profile.Name !== undefined && profile.Arn !== undefined)
    throw new ApiError(
      'InvalidParameterCombination',
      "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'",
    )
  const name = profile.Name ?? profile.Arn?.split('/').at(-1) ?? ''
  const known = ec2.parts.identities.profiles.get(name)
  const role = known !== undefined && known.visibleAtMs <= ec2.nowMs ? known.role : undefined
  if (role === undefined) {
    const words = profile.Name === undefined ? `ARN (${profile.Arn})` : `name (${name})`
    throw new ApiError(
      'InvalidParameterValue',
      `Value (${name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile ${words}`,
    )
  }
  const context = { 'iam:PassedToService': 'ec2.amazonaws.com' }
  if (
    ec2.parts.identities.judge(principal, { action: 'iam:PassRole', resource: role.arn, context }) !==
    'allowed'
  )
    throw new ApiError(
      'UnauthorizedOperation',
      `You are not authorized to perform this operation. User: ${principal.arn} is not authorized to perform: iam:PassRole on resource: ${role.arn}`,
      403,
    )
  return role
}

function capacityOf(market: LaunchFields['InstanceMarketOptions']): CapacityType {
  // A Capacity Block is identified by its reservation.
  if (market?.MarketType !== 'spot') return 'on-demand'
  const { SpotInstanceType: kind = 'one-time', InstanceInterruptionBehavior: behavior = 'terminate' } =
    market.SpotOptions ?? {}
  if (kind !== 'one-time' || behavior !== 'terminate')
    throw new ApiError(
      'UnsupportedOperation',
      'This small cloud has one-time spot machines that end when they are interrupted',
    )
  return 'spot'
}

/** Parses a maximum price in USD per hour. */
export function priceOf(text: string): number {
  const usd = Number(text)
  if (!(usd > 0.001))
    throw new ApiError(
      'InvalidParameterValue',
      `Invalid value '${text}' for SpotPrice. It must be more than 0.001.`,
    )
  return usd
}

function userDataOf({ UserData: encoded = '' }: LaunchFields): string {
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64').replace(/=/g, '') !== encoded.replace(/[\s=]/g, ''))
    throw new ApiError('InvalidParameterValue', 'Invalid BASE64 encoding of user data.')
  if (bytes.length > USER_DATA_BYTES_MAX)
    throw new ApiError('InvalidParameterValue', `User data is limited to ${USER_DATA_BYTES_MAX} bytes`)
  return encoded
}

const TAGGABLE = ['instance', 'volume', 'network-interface', 'spot-instances-request']

function checkTags({ TagSpecification: specifications = [] }: LaunchFields): void {
  for (const { ResourceType, Tag } of specifications) {
    if (!TAGGABLE.includes(ResourceType))
      throw new ApiError(
        'InvalidParameterValue',
        `'${ResourceType}' is not a valid taggable resource type for this operation.`,
      )
    checkTagList(Tag)
  }
}

/** EC2 refuses tags for a spot request that a launch does not create. */
export function spotTagProblem({ fields }: LaunchPlan, capacity: CapacityType): ApiError | undefined {
  const isTagged = (fields.TagSpecification ?? []).some(
    ({ ResourceType, Tag }) => ResourceType === 'spot-instances-request' && Tag.length > 0,
  )
  if (!isTagged || capacity === 'spot') return undefined
  return new ApiError(
    'InvalidParameterValue',
    'You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.',
  )
}

export function checkTagList(tags: readonly { Key: string; Value: string }[]): void {
  if (tags.length > TAGS_MAX)
    throw new ApiError('TagLimitExceeded', 'The maximum number of Tags for a resource has been reached.')
  for (const { Key, Value } of tags) {
    if (Key === '' || Key.length > 127)
      throw new ApiError('InvalidParameterValue', `Tag key '${Key}' must be 1 to 127 characters long.`)
    if (/^aws:/i.test(Key))
      throw new ApiError(
        'InvalidParameterValue',
        "Tag keys starting with 'aws:' are reserved for internal use",
      )
    if (Value.length > 255)
      throw new ApiError('InvalidParameterValue', `Tag value exceeds the maximum length of 255 characters`)
  }
}

/** Returns the subnets for a launch: the one that it names, or one in its zone, otherwise any default subnet. */
export function subnetsFor(
  region: Region,
  fields: LaunchFields & { SubnetId?: string | undefined },
): { subnets: Subnet[]; isZonal: boolean } {
  const id = fields.SubnetId ?? fields.NetworkInterface?.[0]?.SubnetId
  const zone = fields.Placement?.AvailabilityZone
  const zoneId = fields.Placement?.AvailabilityZoneId
  if (id !== undefined) {
    const subnet = region.subnets.find((each) => each.id === id)
    if (subnet === undefined)
      throw new ApiError('InvalidSubnetID.NotFound', `The subnet ID '${id}' does not exist`)
    if (zone !== undefined && subnet.zone.name !== zone)
      throw new ApiError(
        'InvalidParameterCombination',
        `The availability zone of the subnet '${id}' is not ${zone}`,
      )
    return { subnets: [subnet], isZonal: true }
  }
  const isThere = ({ zone: each }: Subnet): boolean =>
    (zone ?? each.name) === each.name && (zoneId ?? each.id) === each.id
  const known = region.plan.zones.some(
    (each) => (zone ?? each.name) === each.name && (zoneId ?? each.id) === each.id,
  )
  if (!known) throw new ApiError('InvalidParameterValue', `Invalid availability zone: [${zone ?? zoneId}]`)
  const subnets = region.subnets.filter((subnet) => subnet.isDefault && isThere(subnet))
  if (subnets.length === 0)
    throw region.vpcs.some(({ isDefault }) => isDefault)
      ? new ApiError('MissingInput', 'No default subnet for this zone: name a subnet')
      : new ApiError('VPCIdNotSpecified', 'No default VPC for this user')
  return { subnets, isZonal: zone !== undefined || zoneId !== undefined }
}
