import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { CAPACITY_TYPES, type CapacityType, type Offer } from '../../core/offer'
import type { MachineShape, ResourceRequest } from '../../core/resources'
import type { CallContext } from '../backend'
import { hasCode } from './errors'
import type { Host } from './host'
import { chooseKind, needsOf, takenOn, whyFull, type GpuKind } from './slots'

/** The one type of machine: a group of processes. */
export const MACHINE_TYPE = 'process'

const GIB = 1024 ** 3

/** One offer for each capacity type, whether or not this host can hold the request. */
export async function offers(host: Host, request: ResourceRequest, ctx: CallContext): Promise<Offer[]> {
  const [{ gpus }, taken, users] = await Promise.all([
    host.gpus(ctx.signal),
    takenOn(host),
    host.jobUsers(ctx.signal),
  ])
  const disk = await diskOf(users.kind === 'on' ? users.folder : host.paths.root)
  // Where no GPU is what was asked for, the others are shown all the same: the planner says what they lack.
  const kind = chooseKind(gpus, request, taken) ?? chooseKind(gpus, {}, taken)
  const needs = needsOf(request)
  const whole = shapeOf(host, disk.totalGiB, kind)
  const shape = cutTo(request, whole)
  const note = whyFull(host, needs, { taken, kind }) ?? whyDiskFull(request, disk)
  return capacityTypesOf(host).map((capacityType) => ({
    backend: 'local',
    capacityType,
    type: MACHINE_TYPE,
    place: host.place,
    shape,
    priceMicroUsdPerHour: priceOf(host, capacityType),
    priceSource: { kind: 'configured', observedAtMs: host.deps.clock() },
    ...(note === undefined ? { availability: 'available' } : { availability: 'unavailable', note }),
  }))
}

export function capacityTypesOf(host: Host): CapacityType[] {
  return CAPACITY_TYPES.filter((type) => type === 'on-demand' || (type === 'spot' && host.config.hasSpot))
}

function priceOf({ config }: Host, capacityType: CapacityType): number {
  return capacityType === 'spot' ? config.spotPriceMicroUsdPerHour : config.priceMicroUsdPerHour
}

function shapeOf(host: Host, diskGiB: number, kind: GpuKind | undefined): MachineShape {
  const shape = { cpus: host.config.slots, memoryGiB: hostMemoryGiB(), diskGiB, gpus: kind?.all.length ?? 0 }
  return kind === undefined
    ? shape
    : { ...shape, accelerator: kind.accelerator, gpuMemoryGiB: kind.memoryGiB }
}

/** A machine is cut to size: of what there is in all, never more than the most that is asked for. */
function cutTo({ cpus, gpus, memoryGiB }: ResourceRequest, whole: MachineShape): MachineShape {
  return {
    ...whole,
    cpus: Math.min(whole.cpus, cpus?.max ?? Infinity),
    gpus: Math.min(whole.gpus, gpus?.max ?? Infinity),
    memoryGiB: Math.min(whole.memoryGiB, memoryGiB?.max ?? Infinity),
  }
}

/** The machine's memory, or what a control group leaves of it. */
function hostMemoryGiB(): number {
  const limit = process.constrainedMemory()
  return Math.min(totalmem(), limit > 0 ? limit : Infinity) / GIB
}

export interface Disk {
  totalGiB: number
  freeGiB: number
}

/** The disk that a directory is on, or will be on once it is made. */
export async function diskOf(directory: string): Promise<Disk> {
  try {
    const { blocks, bavail, bsize } = await statfs(directory)
    return { totalGiB: (blocks * bsize) / GIB, freeGiB: (bavail * bsize) / GIB }
  } catch (error) {
    const parent = dirname(directory)
    if (hasCode(error, 'ENOENT', 'ENOTDIR') && parent !== directory) return diskOf(parent)
    throw error
  }
}

function whyDiskFull(request: ResourceRequest, { freeGiB }: Disk): string | undefined {
  const neededGiB = request.diskGiB?.min ?? 0
  return neededGiB > freeGiB
    ? `${freeGiB.toFixed(1)} GiB of disk free, the job needs ${neededGiB}`
    : undefined
}
