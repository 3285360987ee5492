import { acceleratorsOf, type RegionalType, type MachineType } from '../../backends/ec2/capacity'
import type { Row } from './answer'

/** The columns of a machine type, with the names that existing scripts know. */
export const TYPE_COLUMNS = [
  'instance_type',
  'region',
  'availability_zones',
  'vcpus',
  'memory_mib',
  'architecture',
  'gpus',
  'gpu_model',
  'gpu_memory_mib',
  'network_performance',
  'efa_interfaces',
  'on_demand_price',
] as const

export function typeRow({ type, region, zones }: RegionalType, onDemandUsd?: number): Row {
  return {
    instance_type: type.name,
    region,
    availability_zones: zones,
    ...shapeRow(type),
    on_demand_price: onDemandUsd ?? null,
  }
}

export function shapeRow(type: MachineType): Row {
  const accelerators = acceleratorsOf(type)
  return {
    vcpus: type.cpus,
    memory_mib: type.memoryMiB,
    architecture: type.architectures.join('/'),
    gpus: accelerators?.count ?? 0,
    gpu_model: accelerators?.name ?? null,
    gpu_memory_mib: accelerators?.memoryMiB ?? null,
    network_performance: type.networkPerformance ?? null,
    efa_interfaces: type.efaInterfaces ?? 0,
  }
}

const MIB_PER_GIB = 1_024

/** `8x H100 80 GiB` */
export function acceleratorsInWords(type: MachineType): string {
  const accelerators = acceleratorsOf(type)
  if (accelerators === undefined) return '-'
  const { count, name, memoryMiB } = accelerators
  return `${count}x ${name} ${gib(memoryMiB)}`
}

export function gib(mib: number): string {
  return `${Number((mib / MIB_PER_GIB).toFixed(1))} GiB`
}

/** Dollars of a price list, which has more than cents: `$0.0843`, `$55.04`. */
export function usdPerHour(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return '-'
  return `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`
}

/** An instant to the minute, in UTC: `2027-01-15 11:30` */
export function minute(atMs: number | undefined): string {
  return !isInstant(atMs) ? '-' : new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
}

export function iso(atMs: number | undefined): string | null {
  return !isInstant(atMs) ? null : new Date(atMs).toISOString().replace(/\.000Z$/, 'Z')
}

/** A provider's answer may have a date that is none. */
function isInstant(atMs: number | undefined): atMs is number {
  return atMs !== undefined && !Number.isNaN(new Date(atMs).getTime())
}
