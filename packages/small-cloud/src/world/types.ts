/** Machine types of a world. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { WorldPlan } from './schema'
import { typeDisks } from './type-disks'

export interface MachineType {
  name: string
  vcpus: number
  memoryGiB: number
  architecture: 'x86_64' | 'arm64'
  accelerator?: { name: string; manufacturer: string; count: number; memoryMiB: number }
  /** The on-demand price. */
  usdPerHour: number
  networkCards: number
  hasEfa: boolean
  /** The quotas that its vCPUs count against. */
  quota: QuotaFamily
  /** Most that the type exchanges with its EBS disks, always and for half an hour a day; missing where the cloud does not say. */
  ebs?: { mbPerSecond: [number, number]; iops: [number, number] }
  /** Gbit/s of a network card, always and for a while; missing where the cloud does not say. */
  networkGbps?: [number, number]
  /** NVMe disks of the machine itself, whose content ends with it. */
  localDisks?: { count: number; sizeGb: number }
}

export type QuotaFamily = 'standard' | 'g-vt' | 'p' | 'inf' | 'trn'

const accelerator = z.strictObject({
  name: z.string(),
  manufacturer: z.string(),
  count: z.int().positive(),
  memoryMiB: z.int().positive(),
})
const catalog = z.strictObject({
  about: z.record(z.string(), z.string()),
  types: z.record(
    z.string(),
    z.strictObject({
      vcpus: z.int().positive(),
      memoryGiB: z.number().positive(),
      usdPerHour: z.number().positive(),
      accelerator: accelerator.optional(),
      networkCards: z.int().positive().default(1),
      hasEfa: z.boolean().default(false),
      ...typeDisks,
    }),
  ),
})

/** Returns the cloud's built-in types, extended or overridden by those of the world. */
export function machineTypes(plan: WorldPlan): Map<string, MachineType> {
  const brought = catalog.parse(JSON.parse(readFileSync(join(__dirname, 'instance-types.json'), 'utf8')))
  const types = new Map<string, MachineType>()
  for (const [name, type] of Object.entries(brought.types))
    types.set(name, withoutUndefined({ ...type, name, architecture: 'x86_64', quota: quotaFamily(name) }))
  for (const [name, type] of Object.entries(plan.types))
    types.set(name, withoutUndefined({ ...type, name, quota: quotaFamily(name) }))
  return types
}

function withoutUndefined({
  accelerator: device,
  ebs,
  networkGbps,
  localDisks,
  ...type
}: Given): MachineType {
  return {
    ...type,
    ...(device === undefined ? {} : { accelerator: device }),
    ...(ebs === undefined ? {} : { ebs }),
    ...(networkGbps === undefined ? {} : { networkGbps }),
    ...(localDisks === undefined ? {} : { localDisks }),
  }
}

type Optional = 'accelerator' | 'ebs' | 'networkGbps' | 'localDisks'
type Given = Omit<MachineType, Optional> & { [Name in Optional]?: MachineType[Name] | undefined }

function quotaFamily(name: string): QuotaFamily {
  if (/^(g|vt)\d/.test(name)) return 'g-vt'
  if (/^p\d/.test(name)) return 'p'
  if (/^inf\d/.test(name)) return 'inf'
  return /^trn\d/.test(name) ? 'trn' : 'standard'
}

/** Types that AWS allows on the free plan, November 2026 (`describe-instance-types`, filter `free-tier-eligible`). */
const FREE_PLAN = ['t3.micro', 't3.small', 't4g.micro', 't4g.small', 'c7i-flex.large', 'm7i-flex.large']

export function isFreeTierEligible({ name }: Pick<MachineType, 'name'>): boolean {
  return FREE_PLAN.includes(name)
}
