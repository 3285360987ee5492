/** A lower and an upper bound, both included. A missing bound is open. `16+` is `{min: 16}`. */
export interface Range {
  min?: number
  max?: number
}

/** A job's request for one machine. A missing field accepts anything. */
export interface ResourceRequest {
  /** Number of GPUs. Asking for GPU memory or an accelerator by name means at least one. */
  gpus?: Range
  /** Memory of each GPU, in GB as on the card's label (`gpu-memory.ts`). */
  gpuMemoryGb?: Range
  /** Memory of each GPU, in GiB as the driver reports it. */
  gpuMemoryGiB?: Range
  /** Acceptable accelerators by canonical name (`accelerators.ts`); empty or missing means any. */
  accelerators?: string[]
  cpus?: Range
  memoryGiB?: Range
  diskGiB?: Range
  /** Acceptable types of machines, as their providers name them (`Offer.type`); missing means any. */
  instanceTypes?: string[]
  /** Throughput of the disk, where the provider sells it by the MiB/s; missing for a backend's own choice, like `diskIops`. */
  diskMibPerSecond?: number
  /** Operations per second of the disk. */
  diskIops?: number
  /**
   * Expected traffic of the disk in MiB per hour, for a backend that chooses its speed. Set by the plan, never by a job; missing means
   * unknown.
   */
  diskLoadMibPerHour?: number
  /** Shared memory (`/dev/shm`) for the container, in GiB. */
  shmGiB?: number
}

/** Hardware of a machine. */
export interface MachineShape {
  cpus: number
  memoryGiB: number
  diskGiB?: number
  /** Throughput of the disk with the job's data; missing if it is unknown. */
  diskMibPerSecond?: number
  gpus: number
  /** Canonical accelerator name when `gpus > 0`. */
  accelerator?: string
  gpuMemoryGiB?: number
  /** Multiplies the training speed that is known of its accelerator; only in decisions on changed inputs (`core/job/what-if.ts`). */
  speedFactor?: number
}

export function isWithin(value: number, range: Range | undefined): boolean {
  if (range === undefined) return true
  return value >= (range.min ?? -Infinity) && value <= (range.max ?? Infinity)
}

/** Formats a range as the job file accepts it: `24..80`, `16+`, `..8`, `4`. */
export function formatRange(range: Range, unit = ''): string {
  const { min, max } = range
  if (min !== undefined && min === max) return `${min}${unit}`
  if (min !== undefined && max === undefined) return `${min}${unit}+`
  return `${min === undefined ? '' : `${min}${unit}`}..${max === undefined ? '' : `${max}${unit}`}`
}

/** True when the request needs a GPU at all. */
export function wantsGpu(request: ResourceRequest): boolean {
  if (request.gpus !== undefined) return (request.gpus.min ?? 0) > 0
  const { gpuMemoryGb, gpuMemoryGiB, accelerators = [] } = request
  return gpuMemoryGb !== undefined || gpuMemoryGiB !== undefined || accelerators.length > 0
}

/** Describes a machine in one line: `1x V100 16 GiB, 8 cpus, 61 GiB`. GPUs come first, because a narrow table cuts the rest. */
export function formatShape(shape: MachineShape): string {
  const parts = [`${shape.cpus} cpu${shape.cpus === 1 ? '' : 's'}`, `${round1(shape.memoryGiB)} GiB`]
  if (shape.gpus > 0) {
    const memory = shape.gpuMemoryGiB === undefined ? '' : ` ${round1(shape.gpuMemoryGiB)} GiB`
    parts.unshift(`${shape.gpus}x ${shape.accelerator ?? 'GPU'}${memory}`)
  }
  return parts.join(', ')
}

function round1(value: number): number {
  return Math.round(value * 10) / 10
}

/** `1.5 MB` */
export function formatBytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3))
  return `${Number((count / 1000 ** power).toFixed(1))} ${units[power]}`
}
