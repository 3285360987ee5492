import type {
  Image,
  MachineType,
  Reservation,
  SecurityGroup,
  SpotPrice,
  Subnet,
} from '../../../backends/ec2/sdk/api'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'

const VPC = 'vpc-1'
const BOTH = ['on-demand', 'spot']

const subnet = (id: string, zone: string): Subnet => ({
  id,
  zone,
  vpc: VPC,
  freeAddresses: 200,
  givesPublicAddress: true,
})

export const SUBNETS: Subnet[] = [subnet('subnet-a', 'us-east-1a'), subnet('subnet-b', 'us-east-1b')]

export const GROUPS: SecurityGroup[] = [
  { id: 'sg-1', name: 'crucible-machine', vpc: VPC, inboundRules: 0, letsOut: true },
]

export const IMAGES: Image[] = [
  { id: 'ami-0aaaaaaaaaaaaaaaa', architecture: 'x86_64', rootDevice: '/dev/sda1', diskGiB: 60 },
  { id: 'ami-0bbbbbbbbbbbbbbbb', architecture: 'arm64', rootDevice: '/dev/sda1', diskGiB: 60 },
]

const nvidia = (name: string, count: number, memoryMiB: number): MachineType['gpus'] => [
  { name, manufacturer: 'NVIDIA', count, memoryMiB, part: 1 },
]

const type = (
  name: string,
  cpus: number,
  memoryGiB: number,
  gpus: MachineType['gpus'] = [],
): MachineType => ({
  name,
  cpus,
  gpus,
  memoryMiB: memoryGiB * 1024,
  architectures: ['x86_64'],
  hasOtherChips: false,
  usageClasses: BOTH,
  isFreeTier: false,
  isBareMetal: false,
})

export const TYPES: MachineType[] = [
  type('m7i.xlarge', 4, 16),
  type('g4dn.xlarge', 4, 16, nvidia('T4', 1, 15360)),
  type('g5.xlarge', 4, 16, nvidia('A10G', 1, 22888)),
  type('p4d.24xlarge', 96, 1152, nvidia('A100', 8, 40960)),
  type('p4de.24xlarge', 96, 1152, nvidia('A100', 8, 81920)),
  { ...type('g5g.xlarge', 4, 8, nvidia('T4g', 1, 15360)), architectures: ['arm64'] },
  { ...type('trn1.2xlarge', 8, 32), hasOtherChips: true },
  type('g4ad.xlarge', 4, 16, [
    { name: 'Radeon Pro V520', manufacturer: 'AMD', count: 1, memoryMiB: 8192, part: 1 },
  ]),
  {
    ...type('p5.48xlarge', 192, 2048, nvidia('H100', 8, 81920)),
    usageClasses: ['on-demand', 'capacity-block'],
  },
]

export const ON_DEMAND_USD: ReadonlyMap<string, string> = new Map([
  ['m7i.xlarge', '0.2016000000'],
  ['g4dn.xlarge', '0.5260000000'],
  ['g5.xlarge', '1.0060000000'],
  ['g5g.xlarge', '0.4200000000'],
  ['p4d.24xlarge', '21.9576420000'],
  ['p4de.24xlarge', '27.4470500000'],
  ['p5.48xlarge', '55.0400000000'],
])

export const SPOT_USD: SpotPrice[] = [...ON_DEMAND_USD].flatMap(([name, usd]) =>
  SUBNETS.map(({ zone }, at) => ({
    type: name,
    zone,
    usdPerHour: (Number(usd) * (0.3 + at / 10)).toFixed(6),
  })),
)

const reserved = (id: string, type: string, zone: string): Reservation => ({
  id,
  type,
  zone,
  total: 4,
  free: 4,
  state: 'active',
  platform: 'Linux/UNIX',
  tenancy: 'default',
  isBlock: false,
  isUltraServer: false,
  isInterruptible: false,
})

const ON_DEMAND_RESERVATION = 'cr-0aaaaaaaaaaaaaaaa'
const BLOCK = 'cr-0bbbbbbbbbbbbbbbb'

/** One on demand, and one block that has begun. */
export function reservations(nowMs: number): Reservation[] {
  const block = reserved(BLOCK, 'p5.48xlarge', 'us-east-1a')
  return [
    { ...reserved(ON_DEMAND_RESERVATION, 'g5.xlarge', 'us-east-1b'), startsAtMs: nowMs - HOUR_MS },
    { ...block, isBlock: true, startsAtMs: nowMs - HOUR_MS, endsAtMs: nowMs + DAY_MS },
  ]
}
