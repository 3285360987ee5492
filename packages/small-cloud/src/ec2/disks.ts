/** The disks that a launch asks for: what EC2 accepts, and what they are. */
import { ApiError } from '../wire/errors'
import type { DiskSpeed, LaunchFields } from './model'

type Ebs = NonNullable<NonNullable<NonNullable<LaunchFields['BlockDeviceMapping']>[number]>['Ebs']>

/** Limits of gp3 volumes (EBS user guide, "General Purpose SSD volumes", 2026). */
const GIB = { least: 1, most: 65_536 }
const IOPS = { least: 3_000, most: 80_000, perGiB: 500 }
const MIB_PER_SECOND = { least: 125, most: 2_000, perIops: 0.25 }

/** The content of a disk of an image takes this much. */
export function checkDisk(ebs: Ebs, { sizeGiB, imageGiB }: { sizeGiB: number; imageGiB: number }): void {
  if (sizeGiB < imageGiB)
    throw new ApiError(
      'InvalidBlockDeviceMapping',
      `Volume of size ${sizeGiB}GB is smaller than snapshot 'snap-0aaaaaaaaaaaaaaaa', expect size>= ${imageGiB}GB`,
    )
  const { VolumeType: type = 'gp3', Throughput: mibPerSecond, Iops: iops } = ebs
  if (type !== 'gp3') {
    if (mibPerSecond !== undefined)
      throw combination(`The parameter Throughput is not supported for ${type} volumes.`)
    return
  }
  within('size', sizeGiB, GIB)
  if (iops !== undefined) within('iops', iops, IOPS)
  if (mibPerSecond !== undefined) within('throughput', mibPerSecond, MIB_PER_SECOND)
  const speed = speedOf(ebs)!
  // The operations that are included may be more than 500 for each GiB of a small disk.
  if (iops !== undefined && iops > IOPS.least && iops > sizeGiB * IOPS.perGiB)
    throw value(
      `Iops to volume size ratio of ${(iops / sizeGiB).toFixed(6)} is too high; maximum is ${IOPS.perGiB}`,
    )
  const ratio = speed.mibPerSecond / speed.iops
  if (ratio > MIB_PER_SECOND.perIops)
    throw value(
      `Throughput (MiBps) to iops ratio of ${ratio.toFixed(6)} is too high; maximum is ${MIB_PER_SECOND.perIops.toFixed(6)} MiBps per iops`,
    )
}

/** The speed of a gp3 volume: what is included unless more was asked for. */
export function speedOf({
  VolumeType: type = 'gp3',
  Iops: iops,
  Throughput: mibPerSecond,
}: Ebs): DiskSpeed | undefined {
  if (type !== 'gp3') return undefined
  return { iops: iops ?? IOPS.least, mibPerSecond: mibPerSecond ?? MIB_PER_SECOND.least }
}

/** Returns the part of a disk's speed that is billed in addition to its size. */
export function billedSpeed(speed: DiskSpeed | undefined): DiskSpeed {
  return {
    iops: Math.max(0, (speed?.iops ?? 0) - IOPS.least),
    mibPerSecond: Math.max(0, (speed?.mibPerSecond ?? 0) - MIB_PER_SECOND.least),
  }
}

function within(what: string, given: number, { least, most }: { least: number; most: number }): void {
  if (given < least) throw value(`Volume ${what} of ${given} is too low; minimum is ${least}.`)
  if (given > most) throw value(`Volume ${what} of ${given} is too high; maximum is ${most}.`)
}

function value(message: string): ApiError {
  return new ApiError('InvalidParameterValue', message)
}

function combination(message: string): ApiError {
  return new ApiError('InvalidParameterCombination', message)
}
