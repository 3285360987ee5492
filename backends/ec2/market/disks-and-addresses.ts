import { microUsd, type MicroUsd } from '../../../core/money/money'
import type { Subnet } from '../sdk/api'

/** A month of thirty days, as EBS bills ("Amazon EBS pricing"): by the second, for a minute at least. */
const HOURS_PER_MONTH = 30 * 24
/** Price of one public IPv4 address in use, in every Region ("Amazon VPC pricing", since February 2024), billed like disks. */
const ADDRESS_USD_PER_HOUR = 0.005

/** Returns the hourly cost of a machine's disk, and of its public address if it gets one. */
export function besidePrice(
  { diskGiB, subnet }: { diskGiB: number; subnet: Pick<Subnet, 'givesPublicAddress'> | undefined },
  usdPerGiBMonth: number,
): MicroUsd {
  const address = subnet?.givesPublicAddress === true ? ADDRESS_USD_PER_HOUR : 0
  return diskPrice(diskGiB, usdPerGiBMonth) + microUsd(address)
}

/** Price of an hour of a disk. */
export function diskPrice(sizeGiB: number, usdPerGiBMonth: number): MicroUsd {
  return microUsd((sizeGiB * usdPerGiBMonth) / HOURS_PER_MONTH)
}
