import { Items, type Xml } from '../wire/xml'
import type { LaunchFields } from './model'

/** The content of a launch template, under the names of the answer. */
export function templateDataWords(data: LaunchFields): Xml {
  const {
    IamInstanceProfile: profile,
    MetadataOptions: metadata,
    InstanceMarketOptions: market,
    Placement: place,
  } = data
  return {
    imageId: data.ImageId,
    instanceType: data.InstanceType,
    keyName: data.KeyName,
    userData: data.UserData,
    ebsOptimized: data.EbsOptimized,
    disableApiTermination: data.DisableApiTermination,
    instanceInitiatedShutdownBehavior: data.InstanceInitiatedShutdownBehavior,
    securityGroupIdSet: data.SecurityGroupId,
    securityGroupSet: data.SecurityGroup,
    iamInstanceProfile: profile && { arn: profile.Arn, name: profile.Name },
    monitoring: data.Monitoring && { enabled: data.Monitoring.Enabled },
    placement: place && {
      availabilityZone: place.AvailabilityZone,
      availabilityZoneId: place.AvailabilityZoneId,
      tenancy: place.Tenancy,
    },
    metadataOptions: metadata && {
      httpTokens: metadata.HttpTokens,
      httpPutResponseHopLimit: metadata.HttpPutResponseHopLimit,
      httpEndpoint: metadata.HttpEndpoint,
      instanceMetadataTags: metadata.InstanceMetadataTags,
    },
    instanceMarketOptions: market && {
      marketType: market.MarketType,
      spotOptions: market.SpotOptions && {
        maxPrice: market.SpotOptions.MaxPrice,
        spotInstanceType: market.SpotOptions.SpotInstanceType,
        instanceInterruptionBehavior: market.SpotOptions.InstanceInterruptionBehavior,
      },
    },
    capacityReservationSpecification:
      data.CapacityReservationSpecification && choiceWords(data.CapacityReservationSpecification),
    networkInterfaceSet: data.NetworkInterface?.map((each) => ({
      associatePublicIpAddress: each.AssociatePublicIpAddress,
      deleteOnTermination: each.DeleteOnTermination,
      description: each.Description,
      deviceIndex: each.DeviceIndex,
      subnetId: each.SubnetId,
      groupSet: each.SecurityGroupId && new Items('groupId', each.SecurityGroupId),
    })),
    blockDeviceMappingSet: data.BlockDeviceMapping?.map(deviceWords),
    tagSpecificationSet: data.TagSpecification?.map(({ ResourceType, Tag }) => ({
      resourceType: ResourceType,
      tagSet: Tag.map(({ Key, Value }) => ({ key: Key, value: Value })),
    })),
  }
}

export function deviceWords({ DeviceName, Ebs }: Device): Xml {
  return {
    deviceName: DeviceName,
    ebs: Ebs && {
      deleteOnTermination: Ebs.DeleteOnTermination,
      volumeSize: Ebs.VolumeSize,
      volumeType: Ebs.VolumeType,
      snapshotId: Ebs.SnapshotId,
      iops: Ebs.Iops,
      throughput: Ebs.Throughput,
      encrypted: Ebs.Encrypted,
    },
  }
}

type Device = NonNullable<LaunchFields['BlockDeviceMapping']>[number]

function choiceWords({
  CapacityReservationPreference: preference,
  CapacityReservationTarget: target,
}: NonNullable<LaunchFields['CapacityReservationSpecification']>): Xml {
  return {
    capacityReservationPreference: preference,
    capacityReservationTarget: target && { capacityReservationId: target.CapacityReservationId },
  }
}
