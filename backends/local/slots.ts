import { reachesGpuMemory } from '../../core/gpu-memory'
import { wantsGpu, type ResourceRequest } from '../../core/resources'
import type { Gpu } from './gpus'
import type { Host } from './host'
import { lookAtAll } from './look'

/** Key of the counting of slots; no machine can have this name. */
export const SLOTS = '/slots'

/** What a job takes of this host. */
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

/** What the machines that are not gone have taken; one that was never started keeps what it took. */
export interface Taken {
  slots: number
  gpus: Set<number>
  /** Whose they are. */
  jobIds: Set<string>
  uids: Set<number>
}

export async function takenOn(host: Host): Promise<Taken> {
  const machines = (await lookAtAll(host)).filter((view) => view.state !== 'gone').map((view) => view.machine)
  return {
    slots: machines.reduce((sum, machine) => sum + machine.slots, 0),
    gpus: new Set(machines.flatMap((machine) => machine.gpus)),
    jobIds: new Set(machines.map(({ owner }) => owner.jobId)),
    uids: new Set(machines.flatMap(({ user }) => (user === undefined ? [] : [user.uid]))),
  }
}

/** Equal GPUs of which a job can have several: a job never gets two kinds. */
export interface GpuKind {
  accelerator: string
  memoryGiB: number
  all: Gpu[]
  free: Gpu[]
}

/** The kind of GPU that a request is best served with: one with enough free ones if there is such, else the most numerous. */
export function chooseKind(gpus: Gpu[], request: ResourceRequest, taken: Taken): GpuKind | undefined {
  const needed = needsOf(request).gpus
  const fitting = gpus.filter(
    (gpu) =>
      (request.accelerators === undefined ||
        request.accelerators.length === 0 ||
        request.accelerators.includes(gpu.accelerator)) &&
      // A larger one is a fit, so only the lower bound holds here.
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

/** What a job could have, but for others that have it now; `undefined` when it lacks nothing, or what this host does not have at all. */
export function lackOf(
  host: Host,
  { slots, gpus }: Needs,
  { taken, kind }: { taken: Taken; kind: GpuKind | undefined },
): 'slots' | 'gpus' | undefined {
  if (slots > host.config.slots || gpus > (kind?.all.length ?? 0)) return undefined
  if (slots > host.config.slots - taken.slots) return 'slots'
  return gpus > (kind?.free.length ?? 0) ? 'gpus' : undefined
}

/** How many jobs of these needs the free part of this host holds. */
export function placesFor(
  host: Host,
  needs: Needs,
  { taken, kind }: { taken: Taken; kind: GpuKind | undefined },
): number {
  const bySlots = Math.floor(Math.max(0, host.config.slots - taken.slots) / needs.slots)
  return needs.gpus === 0 ? bySlots : Math.min(bySlots, Math.floor((kind?.free.length ?? 0) / needs.gpus))
}

/** Why the free part of this host does not hold a job now, as a sentence, or `undefined` when it does. */
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
