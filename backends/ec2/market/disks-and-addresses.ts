import { microUsd, type MicroUsd } from '../../../core/money/money'
import type { DiskRates, DiskSpeed, Subnet } from '../sdk/api'
import { HOURS_PER_MONTH, INCLUDED_SPEED } from './disk-speed'

/** Price of one public IPv4 address in use, in every Region ("Amazon VPC pricing", since February 2024), billed like disks. */
const ADDRESS_USD_PER_HOUR = 0.005

export interface Disk {
  sizeGiB: number
  /** Missing for the speed that every disk has. */
  speed?: DiskSpeed | undefined
}

/** Returns the hourly cost of a machine's disk, and of its public address if it gets one. */
export function besidePrice(
  { disk, subnet }: { disk: Disk; subnet: Pick<Subnet, 'givesPublicAddress'> | undefined },
  rates: DiskRates,
): MicroUsd {
  const address = subnet?.givesPublicAddress === true ? ADDRESS_USD_PER_HOUR : 0
  return diskPrice(disk, rates) + microUsd(address)
}

/** Price of an hour of a disk: its size, and its speed beyond what every disk has. */
export function diskPrice({ sizeGiB, speed = INCLUDED_SPEED }: Disk, rates: DiskRates): MicroUsd {
  const usdPerMonth =
    sizeGiB * rates.usdPerGiBMonth +
    (speed.mibPerSecond - INCLUDED_SPEED.mibPerSecond) * rates.usdPerMibpsMonth +
    (speed.iops - INCLUDED_SPEED.iops) * rates.usdPerIopsMonth
  return microUsd(usdPerMonth / HOURS_PER_MONTH)
}
