/** The fields of a launch, in a call or in a template. */
import { z } from 'zod'
import { flag, instant, integer, list, tagSpecification, text } from '../wire/query'
import type { LaunchFields } from './model'

const enabled = z.enum(['enabled', 'disabled'])

export const blockDevice = z.strictObject({
  DeviceName: text.optional(),
  Ebs: z
    .strictObject({
      DeleteOnTermination: flag.optional(),
      VolumeSize: integer.optional(),
      VolumeType: z.enum(['gp2', 'gp3', 'io1', 'io2', 'st1', 'sc1', 'standard']).optional(),
      SnapshotId: text.optional(),
      Iops: integer.optional(),
      Throughput: integer.optional(),
      Encrypted: flag.optional(),
    })
    .optional(),
})

const networkInterface = z.strictObject({
  DeviceIndex: integer.optional(),
  SubnetId: text.optional(),
  AssociatePublicIpAddress: flag.optional(),
  DeleteOnTermination: flag.optional(),
  SecurityGroupId: list(text).optional(),
  Description: text.optional(),
})

const marketOptions = z.strictObject({
  MarketType: z.enum(['spot', 'capacity-block']).optional(),
  SpotOptions: z
    .strictObject({
      MaxPrice: text.optional(),
      SpotInstanceType: z.enum(['one-time', 'persistent']).optional(),
      InstanceInterruptionBehavior: z.enum(['terminate', 'stop', 'hibernate']).optional(),
      ValidUntil: instant.optional(),
    })
    .optional(),
})

export const launchFields = {
  ImageId: text.optional(),
  InstanceType: text.optional(),
  KeyName: text.optional(),
  UserData: text.optional(),
  SecurityGroupId: list(text).optional(),
  SecurityGroup: list(text).optional(),
  IamInstanceProfile: z.strictObject({ Arn: text.optional(), Name: text.optional() }).optional(),
  InstanceInitiatedShutdownBehavior: z.enum(['stop', 'terminate']).optional(),
  DisableApiTermination: flag.optional(),
  EbsOptimized: flag.optional(),
  Monitoring: z.strictObject({ Enabled: flag.optional() }).optional(),
  Placement: z
    .strictObject({
      AvailabilityZone: text.optional(),
      AvailabilityZoneId: text.optional(),
      Tenancy: z.literal('default').optional(),
    })
    .optional(),
  MetadataOptions: z
    .strictObject({
      HttpTokens: z.enum(['optional', 'required']).optional(),
      HttpEndpoint: enabled.optional(),
      HttpPutResponseHopLimit: integer.pipe(z.int().min(1).max(64)).optional(),
      InstanceMetadataTags: enabled.optional(),
    })
    .optional(),
  InstanceMarketOptions: marketOptions.optional(),
  CapacityReservationSpecification: z
    .strictObject({
      CapacityReservationPreference: z.enum(['open', 'none', 'capacity-reservations-only']).optional(),
      CapacityReservationTarget: z.strictObject({ CapacityReservationId: text.optional() }).optional(),
    })
    .optional(),
  NetworkInterface: list(networkInterface).optional(),
  BlockDeviceMapping: list(blockDevice).optional(),
  TagSpecification: list(tagSpecification).optional(),
}

export const launchData = z.strictObject(launchFields)
export const templateSpecification = z.strictObject({
  LaunchTemplateId: text.optional(),
  LaunchTemplateName: text.optional(),
  Version: text.optional(),
})
export type TemplateSpecification = z.output<typeof templateSpecification>

/** Merges a launch request with its template: the request's fields win, and tags of both apply. */
export function merged(template: LaunchFields, own: LaunchFields): LaunchFields {
  const said = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return {
    ...template,
    ...said,
    TagSpecification: [...(template.TagSpecification ?? []), ...(own.TagSpecification ?? [])],
  }
}

/** The tags that a launch puts on one kind of resource; the later ones win. */
export function tagsFor(
  resourceType: string,
  fields: Pick<LaunchFields, 'TagSpecification'>,
): Map<string, string> {
  const specifications = (fields.TagSpecification ?? []).filter((each) => each.ResourceType === resourceType)
  return new Map(specifications.flatMap(({ Tag }) => Tag.map(({ Key, Value }) => [Key, Value] as const)))
}
