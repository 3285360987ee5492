import { acceleratorByMemory, findAccelerator } from '../../../core/accelerators'
import type { MachineShape, ResourceRequest } from '../../../core/resources'
import { fitting, hasWantedAccelerator } from '../../fitting'
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
    gpuMemoryGiB: Math.round(memoryGiBOf(gpu) * 100) / 100,
  }
}

/** EC2 describes a Trainium2 chip with 512 GiB; by its data sheet it has 96. */
function memoryGiBOf({ name, manufacturer, memoryMiB }: Gpu): number {
  const described = memoryMiB / MIB_PER_GIB
  const known = manufacturer === 'AWS' ? findAccelerator(name)?.memoryGb : undefined
  return Math.min(described, known ?? described)
}

function acceleratorOf({ name, memoryMiB, part }: Gpu): string {
  const spelling = findAccelerator(name) === undefined ? name.replace(/\bServer\b/, '') : name
  const found = acceleratorByMemory(spelling, ((memoryMiB / part) * MIB_PER_GIB ** 2) / 1e9)
  return found === spelling ? name : found
}

/** Disk sizes; few, because each needs a separate launch template. */
const DISK_STEPS_GIB = [
  20, 50, 100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000,
]

/** Returns the disk size for a request: at least the requested size, the configured minimum, and the size of the image. */
export function diskFor(request: ResourceRequest, atLeastGiB: number[]): number {
  const neededGiB = Math.max(request.diskGiB?.min ?? 0, ...atLeastGiB)
  return DISK_STEPS_GIB.find((step) => step >= neededGiB) ?? DISK_MAX_GIB
}

/** The types that could hold a request, larger ones too; if none can, the largest. */
export function holding(types: MachineType[], request: ResourceRequest): MachineType[] {
  return fitting(types, (type) => shapeOf(type, 0), request)
}

export function isWanted(type: MachineType, request: ResourceRequest): boolean {
  return hasWantedAccelerator(shapeOf(type, 0), request)
}

export interface QuotaCodes {
  'on-demand': string
  spot: string
  /** Description for people. */
  words: string
}

/** The quotas that count vCPUs, by the first letters of a type (Service Quotas, service `ec2`; codes as several public tables have them). */
export const QUOTAS: readonly [RegExp, QuotaCodes][] = [
  [/^p\d/, { 'on-demand': 'L-417A185B', spot: 'L-7212CCBC', words: 'P' }],
  [/^(?:g\d|gr\d|vt\d)/, { 'on-demand': 'L-DB2E81BA', spot: 'L-3819A6DF', words: 'G and VT' }],
  [/^[acdhimrtz]\d/, { 'on-demand': 'L-1216C47A', spot: 'L-34B43A08', words: 'standard' }],
  [/^trn\d/, { 'on-demand': 'L-2C3B7624', spot: 'L-6B0D517C', words: 'Trn' }],
  [/^inf\d/, { 'on-demand': 'L-1945791B', spot: 'L-B5D1601B', words: 'Inf' }],
  [/^dl\d/, { 'on-demand': 'L-6E869C2A', spot: 'L-85EED4F7', words: 'DL' }],
  [/^f\d/, { 'on-demand': 'L-74FC7D96', spot: 'L-88CF9481', words: 'F' }],
  [/^x\d/, { 'on-demand': 'L-7295265B', spot: 'L-E3A00192', words: 'X' }],
]

/** Returns the quota that a type counts against, or `undefined` if it is unknown. */
export function quotaOf(type: string): QuotaCodes | undefined {
  return QUOTAS.find(([pattern]) => pattern.test(type))?.[1]
}
