import { reachesGpuMemory } from '../../core/gpu-memory'
import { wantsGpu, type ResourceRequest } from '../../core/resources'
import { hasWantedAccelerator } from '../fitting'
import type { Gpu } from './gpus'
import type { Host } from './host'
import { scanAll } from './scan'

/** Key of the slot count; not a valid machine name. */
export const SLOTS = '/slots'

/** A job's use of this host. */
export interface Needs {
  slots: number
  gpus: number
}

export function needsOf(request: ResourceRequest): Needs {
  return {
    slots: Math.max(1, Math.ceil(request.cpus?.min ?? 1)),
    gpus: wantsGpu(request) ? Math.max(1, request.gpus?.min ?? 1) : 0,
  }
}

/** Use by the existing machines; one that was never started keeps its share, one whose program has ended does not. */
export interface Taken {
  slots: number
  gpus: Set<number>
  /** Owners of the machines. */
  jobIds: Set<string>
  uids: Set<number>
}

export async function takenOn(host: Host): Promise<Taken> {
  const views = (await scanAll(host)).filter((view) => view.state !== 'gone')
  const machines = views.map(({ machine }) => machine)
  const atWork = views.filter(({ hasProgramEnded }) => !hasProgramEnded).map(({ machine }) => machine)
  return {
    slots: atWork.reduce((sum, machine) => sum + machine.slots, 0),
    gpus: new Set(atWork.flatMap((machine) => machine.gpus)),
    jobIds: new Set(machines.map(({ owner }) => owner.jobId)),
    uids: new Set(machines.flatMap(({ user }) => (user === undefined ? [] : [user.uid]))),
  }
}

/** Identical GPUs; one job may get several of them, but never two kinds. */
export interface GpuKind {
  accelerator: string
  memoryGiB: number
  all: Gpu[]
  free: Gpu[]
}

/** The best kind of GPU for a request: one with enough free GPUs if possible, otherwise the most numerous. */
export function chooseKind(gpus: Gpu[], request: ResourceRequest, taken: Taken): GpuKind | undefined {
  const needed = needsOf(request).gpus
  const fitting = gpus.filter(
    (gpu) =>
      hasWantedAccelerator(gpu, request) &&
      // A larger one fits, so only the lower bound applies here.
      reachesGpuMemory({ accelerator: gpu.accelerator, gpuMemoryGiB: gpu.memoryGiB }, request),
  )
  const kinds = new Map<string, GpuKind>()
  for (const gpu of fitting) {
    const name = `${gpu.accelerator} ${gpu.memoryGiB}`
    const { accelerator, memoryGiB } = gpu
    const kind = kinds.get(name) ?? { accelerator, memoryGiB, all: [], free: [] }
    kinds.set(name, kind)
    kind.all.push(gpu)
    if (!taken.gpus.has(gpu.index)) kind.free.push(gpu)
  }
  const rank = (kind: GpuKind): number => (kind.free.length >= needed ? gpus.length : 0) + kind.all.length
  return [...kinds.values()].sort((a, b) => rank(b) - rank(a))[0]
}

/**
 * Returns what a job could have if other jobs did not use it now; `undefined` if it lacks nothing, or something that this host does not
 * have.
 */
export function lackOf(
  host: Host,
  { slots, gpus }: Needs,
  { taken, kind }: { taken: Taken; kind: GpuKind | undefined },
): 'slots' | 'gpus' | undefined {
  if (slots > host.config.slots || gpus > (kind?.all.length ?? 0)) return undefined
  if (slots > host.config.slots - taken.slots) return 'slots'
  return gpus > (kind?.free.length ?? 0) ? 'gpus' : undefined
}

/** Returns how many jobs with these needs fit into the free part of this host. */
export function placesFor(
  host: Host,
  needs: Needs,
  { taken, kind }: { taken: Taken; kind: GpuKind | undefined },
): number {
  const bySlots = Math.floor(Math.max(0, host.config.slots - taken.slots) / needs.slots)
  return needs.gpus === 0 ? bySlots : Math.min(bySlots, Math.floor((kind?.free.length ?? 0) / needs.gpus))
}

/** Why the free part of this host cannot hold a job now, as a sentence, or `undefined` if it can. */
export function whyFull(
  host: Host,
  { slots, gpus }: Needs,
  { taken, kind }: { taken: Taken; kind: GpuKind | undefined },
): string | undefined {
  const free = Math.max(0, host.config.slots - taken.slots)
  if (slots > free) return `${free} of ${host.config.slots} slots free, the job takes ${slots}`
  const freeGpus = kind?.free.length ?? 0
  if (gpus > freeGpus) return `${freeGpus} of ${kind?.all.length ?? 0} GPUs free, the job takes ${gpus}`
  return undefined
}
