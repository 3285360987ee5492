import { ACCELERATORS, findAccelerator } from '../../../core/accelerators'
import { reachesGpuMemory } from '../../../core/gpu-memory'
import { wantsGpu, type MachineShape, type ResourceRequest } from '../../../core/resources'
import type { Gpu, MachineType } from '../sdk/api'
import { DISK_MAX_GIB } from '../config'
import { partInWords } from './usable'

const MIB_PER_GIB = 1024

/** Resources of a type, with a disk of this size. */
export function shapeOf(type: MachineType, diskGiB: number): MachineShape {
  const shape = { cpus: type.cpus, memoryGiB: type.memoryMiB / MIB_PER_GIB, diskGiB }
  const [gpu] = type.gpus
  if (gpu === undefined) return { ...shape, gpus: 0 }
  return {
    ...shape,
    gpus: type.gpus.reduce((sum, { count }) => sum + count, 0),
    accelerator: gpu.part < 1 ? `${acceleratorOf(gpu)} (${partInWords(gpu.part)})` : acceleratorOf(gpu),
    gpuMemoryGiB: Math.round((gpu.memoryMiB / MIB_PER_GIB) * 100) / 100,
  }
}

/** The provider names a chip without its memory, and some come with two sizes: the nearest one is chosen. */
function acceleratorOf({ name, memoryMiB: ownMiB, part }: Gpu): string {
  const memoryMiB = ownMiB / part
  const named = findAccelerator(name) ?? findAccelerator(name.replace(/\bServer\b/, ''))
  const memoryGb = (memoryMiB * MIB_PER_GIB ** 2) / 1e9
  const known = ACCELERATORS.filter(
    (one) => one.name === (named?.name ?? name) || one.name.startsWith(`${named?.name ?? name}-`),
  )
  const [nearest] = known.sort((a, b) => Math.abs(a.memoryGb - memoryGb) - Math.abs(b.memoryGb - memoryGb))
  return nearest?.name ?? name
}

/** Disk sizes: few, because each needs its own launch template. */
const DISK_STEPS_GIB = [
  20, 50, 100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000,
]

/** The disk for a request: at least the requested size, the configured minimum, and what the image needs. */
export function diskFor(request: ResourceRequest, atLeastGiB: number[]): number {
  const neededGiB = Math.max(request.diskGiB?.min ?? 0, ...atLeastGiB)
  return DISK_STEPS_GIB.find((step) => step >= neededGiB) ?? DISK_MAX_GIB
}

/** The types that could hold a request, larger ones too; if none can, the largest. */
export function holding(types: MachineType[], request: ResourceRequest): MachineType[] {
  const fitting = types.filter((type) => isEnough(type, request) && isWanted(type, request))
  if (fitting.length > 0) return fitting
  const large = types.filter((type) => isEnough(type, request))
  return large.length > 0 ? large : largest(types)
}

const SHOWN_MAX = 10

function largest(types: MachineType[]): MachineType[] {
  const size = (type: MachineType): number =>
    shapeOf(type, 0).gpus * 1e9 + type.cpus * 1e6 + type.memoryMiB / 1e3
  return [...types].sort((a, b) => size(b) - size(a)).slice(0, SHOWN_MAX)
}

function isEnough(type: MachineType, request: ResourceRequest): boolean {
  const shape = shapeOf(type, 0)
  const gpusMin = request.gpus?.min ?? (wantsGpu(request) ? 1 : 0)
  return (
    shape.cpus >= (request.cpus?.min ?? 0) &&
    shape.memoryGiB >= (request.memoryGiB?.min ?? 0) &&
    shape.gpus >= gpusMin &&
    reachesGpuMemory(shape, request)
  )
}

export function isWanted(type: MachineType, { accelerators = [] }: ResourceRequest): boolean {
  const has = shapeOf(type, 0).accelerator
  return (
    accelerators.length === 0 || accelerators.some((name) => (findAccelerator(name)?.name ?? name) === has)
  )
}

interface QuotaCodes {
  'on-demand': string
  spot: string
  /** For people. */
  words: string
}

/** The quotas that count vCPUs, by the first letters of a type (Service Quotas, service `ec2`). */
const QUOTAS: readonly [RegExp, QuotaCodes][] = [
  [/^p\d/, { 'on-demand': 'L-417A185B', spot: 'L-7212CCBC', words: 'P' }],
  [/^(?:g\d|gr\d|vt\d)/, { 'on-demand': 'L-DB2E81BA', spot: 'L-3819A6DF', words: 'G and VT' }],
  [/^[acdhimrtz]\d/, { 'on-demand': 'L-1216C47A', spot: 'L-34B43A08', words: 'standard' }],
]

/** The quota that a type counts against, or `undefined` if it is unknown. */
export function quotaOf(type: string): QuotaCodes | undefined {
  return QUOTAS.find(([pattern]) => pattern.test(type))?.[1]
}
