/** Volumes, mostly those that machines leave behind. */
import { z } from 'zod'
import { dryRun, filter, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { byId, page, select } from './filters'
import type { Volume } from './model'
import { tagWords } from './tags'

export function volumeActions(ec2: Ec2): Record<string, Action> {
  const find = (region: string, ids: readonly string[]): Volume[] => {
    const { volumes } = ec2.region(region)
    return byId(ids, (id) => volumes.get(id), { code: 'InvalidVolume.NotFound', what: 'volume' })
  }
  return {
    DescribeVolumes: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        VolumeId: list(text).default([]),
        Filter: list(filter).default([]),
      }),
      run({ VolumeId: ids, Filter, ...wish }, { region }) {
        const wanted = ids.length === 0 ? [...ec2.region(region).volumes.values()] : find(region, ids)
        const found = select(wanted, Filter, {
          'volume-id': ({ id }) => id,
          status: statusOf,
          'availability-zone': ({ zone }) => zone.name,
          'volume-type': ({ type }) => type,
          size: ({ sizeGiB }) => String(sizeGiB),
          'attachment.instance-id': ({ instanceId }) => instanceId,
          'attachment.delete-on-termination': ({ isDeletedWithInstance }) => String(isDeletedWithInstance),
        })
        const { items, nextToken } = page(found, wish, { most: 1000 })
        return { volumeSet: items.map(volumeWords), nextToken }
      },
    }),
    GetEbsDefaultKmsKeyId: action({
      input: z.strictObject({ ...dryRun }),
      run: () => ({ kmsKeyId: ec2.parts.world.diskKey ?? 'alias/aws/ebs' }),
    }),
    DeleteVolume: action({
      input: z.strictObject({ ...dryRun, VolumeId: text }),
      isMutating: true,
      check: ({ VolumeId }, { region }) => void free(find(region, [VolumeId])[0]!),
      run({ VolumeId }, { region }) {
        const volume = free(find(region, [VolumeId])[0]!)
        ec2.region(region).volumes.delete(volume.id)
        return { return: true }
      },
    }),
  }
}

function free(volume: Volume): Volume {
  if (volume.instanceId !== undefined)
    throw new ApiError('VolumeInUse', `Volume ${volume.id} is currently attached to ${volume.instanceId}`)
  return volume
}

function statusOf({ instanceId }: Volume): string {
  return instanceId === undefined ? 'available' : 'in-use'
}

function volumeWords(volume: Volume) {
  const { id, sizeGiB, zone, createdAtMs, type, speed, instanceId, device } = volume
  const { isDeletedWithInstance, isEncrypted, tags } = volume
  const attachment = {
    volumeId: id,
    instanceId,
    device,
    status: 'attached',
    attachTime: new Date(createdAtMs),
    deleteOnTermination: isDeletedWithInstance,
  }
  return {
    volumeId: id,
    size: sizeGiB,
    snapshotId: '',
    availabilityZone: zone.name,
    availabilityZoneId: zone.id,
    status: statusOf(volume),
    createTime: new Date(createdAtMs),
    attachmentSet: instanceId === undefined ? [] : [attachment],
    volumeType: type,
    iops: speed?.iops,
    throughput: speed?.mibPerSecond,
    encrypted: isEncrypted,
    multiAttachEnabled: false,
    tagSet: tagWords(tags),
  }
}
