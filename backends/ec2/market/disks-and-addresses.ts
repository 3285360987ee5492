import { microUsd, type MicroUsd } from '../../../core/money'
import type { Subnet } from '../sdk/api'

/** A month of thirty days, by which EBS bills ("Amazon EBS pricing"): by the second, for a minute at least. */
const HOURS_PER_MONTH = 30 * 24
/** Of one public IPv4 address in use, in every Region ("Amazon VPC pricing", since February 2024): billed as disks are. */
const ADDRESS_USD_PER_HOUR = 0.005

/** What an hour of a machine costs beside the machine itself: its disk, and its public address where it gets one. */
export function besidePrice(
  { diskGiB, subnet }: { diskGiB: number; subnet: Pick<Subnet, 'givesPublicAddress'> | undefined },
  usdPerGiBMonth: number,
): MicroUsd {
  const address = subnet?.givesPublicAddress === true ? ADDRESS_USD_PER_HOUR : 0
  return diskPrice(diskGiB, usdPerGiBMonth) + microUsd(address)
}

/** Of an hour of a disk. */
export function diskPrice(sizeGiB: number, usdPerGiBMonth: number): MicroUsd {
  return microUsd((sizeGiB * usdPerGiBMonth) / HOURS_PER_MONTH)
}
