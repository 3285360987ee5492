import {
  DISK_IOPS,
  DISK_MIB_PER_SECOND,
  IOPS_PER_GIB,
  IOPS_PER_MIB_PER_SECOND,
} from '../../../core/disk-speed'
import type { ResourceRequest } from '../../../core/resources'
import type { DiskSpeed, MachineType } from '../sdk/api'

/** The speed that is part of the price of every gp3 disk. */
export const INCLUDED_SPEED: DiskSpeed = { mibPerSecond: DISK_MIB_PER_SECOND.min, iops: DISK_IOPS.min }

/** The throughputs that are chosen here: few, so that a small change of a price changes no disk. */
const STEPS_MIB_PER_SECOND = [DISK_MIB_PER_SECOND.min, 250, 500, 1_000, DISK_MIB_PER_SECOND.max]
const BYTES_PER_MIB = 2 ** 20
const BYTES_PER_MB = 1e6
const BYTES_PER_GIB = 2 ** 30
const BYTES_PER_GB = 1e9
const SECONDS_PER_HOUR = 3_600
/** A month of thirty days, as EBS bills ("Amazon EBS pricing"): by the second, for a minute at least. */
export const HOURS_PER_MONTH = 30 * 24

/** Part of the load that stays on the root disk of a machine whose local disks hold the job: what boot and `setup` read and write. */
const ROOT_SHARE = 1 / 8

interface Worth {
  diskGiB: number
  /** Price of an hour of the machine; undefined counts as high: the types without a listed price are sold in blocks only. */
  usdPerHour: number | undefined
  usdPerMibpsMonth: number
}

/**
 * Returns the speed of a root disk: what the job sets, otherwise the throughput at which the disk, and the machine's time while it waits for
 * the disk, cost least together, within what the type can use. Moving L MiB an hour at T MiB/s takes L / T seconds of a machine of P dollars
 * an hour, and T costs u dollars a month each; the sum is least at the root of P L / u, times hours of a month per seconds of an hour.
 */
export function diskSpeedOf(type: MachineType, request: ResourceRequest, worth: Worth): DiskSpeed {
  const { diskMibPerSecond: asked, diskIops } = request
  const most = diskIops === undefined ? Infinity : diskIops / IOPS_PER_MIB_PER_SECOND
  const mibPerSecond = asked ?? Math.min(most, chosenSpeed(type, request, worth))
  return {
    mibPerSecond,
    iops: diskIops ?? Math.max(INCLUDED_SPEED.iops, mibPerSecond * IOPS_PER_MIB_PER_SECOND),
  }
}

function chosenSpeed(
  type: MachineType,
  { diskLoadMibPerHour = 0 }: ResourceRequest,
  { diskGiB, usdPerHour = Infinity, usdPerMibpsMonth }: Worth,
): number {
  const usable = usableOf(type) ?? INCLUDED_SPEED.mibPerSecond
  const load = diskLoadMibPerHour * (hasLocalDiskFor(type, diskGiB) ? ROOT_SHARE : 1)
  const cheapest =
    load === 0 ? 0 : Math.sqrt((usdPerHour * load * HOURS_PER_MONTH) / (SECONDS_PER_HOUR * usdPerMibpsMonth))
  return nearestStep(Math.min(cheapest, usable))
}

/** Whether a machine puts the job on its local disks (`machine/local_disks.py`): they are as large as its root disk. */
export function hasLocalDiskFor({ localDiskGb = 0 }: MachineType, diskGiB: number): boolean {
  return localDiskGb * BYTES_PER_GB >= diskGiB * BYTES_PER_GIB
}

/** Most MiB/s that a type exchanges with its disks, for half an hour a day at least; undefined if EC2 does not say. */
function usableOf({ diskMbPerSecond }: MachineType): number | undefined {
  return diskMbPerSecond === undefined ? undefined : (diskMbPerSecond * BYTES_PER_MB) / BYTES_PER_MIB
}

function nearestStep(mibPerSecond: number): number {
  const far = (step: number): number => Math.abs(Math.log(step / Math.max(1, mibPerSecond)))
  return STEPS_MIB_PER_SECOND.reduce((best, step) => (far(step) < far(best) ? step : best))
}

/** Least GiB of a disk with the operations per second that a job sets. */
export function leastGiBFor({ diskIops = 0 }: ResourceRequest): number {
  return diskIops <= INCLUDED_SPEED.iops ? 0 : Math.ceil(diskIops / IOPS_PER_GIB)
}

/** Says that a job pays for a throughput that the type cannot use. */
export function unusableSpeedNote(
  type: MachineType,
  { diskMibPerSecond: asked = 0 }: ResourceRequest,
): string | undefined {
  const usable = usableOf(type)
  if (usable === undefined || asked <= usable) return undefined
  return `its disk gets ${asked} MiB/s, and this type uses at most ${Math.floor(usable)}`
}

/** The speed as data of an offer; empty for what every disk has, which launches leave out. */
export function speedData({ mibPerSecond, iops }: DiskSpeed): Record<string, string> {
  if (mibPerSecond === INCLUDED_SPEED.mibPerSecond && iops === INCLUDED_SPEED.iops) return {}
  return { diskMibPerSecond: String(mibPerSecond), diskIops: String(iops) }
}
