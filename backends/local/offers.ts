import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { CAPACITY_TYPES, type CapacityType, type Offer } from '../../core/offer'
import type { MachineShape, ResourceRequest } from '../../core/resources'
import type { OffersContext } from '../backend'
import { hasCode } from './errors'
import type { Host } from './host'
import { isUserShared } from './job-users'
import { chooseKind, lackOf, needsOf, placesFor, SLOTS, takenOn, whyFull, type GpuKind } from './slots'

/** The one type of machine: a group of processes. */
const MACHINE_TYPE = 'process'

const GIB = 1024 ** 3

/**
 * Returns one offer per capacity type, whether or not this host can hold the request. A job that asks gets a place held; counting and
 * holding are one step, so that two jobs never see the same place.
 */
export async function offers(host: Host, request: ResourceRequest, ctx: OffersContext): Promise<Offer[]> {
  const { asker, signal } = ctx
  if (asker === undefined) return offersNow(host, request, ctx)
  return host.exclusive(SLOTS, signal, () => offersNow(host, request, ctx))
}

async function offersNow(host: Host, request: ResourceRequest, ctx: OffersContext): Promise<Offer[]> {
  const { asker } = ctx
  if (asker?.isGone === true) host.holds.forget(asker.jobId)
  const job = asker?.isGone === true ? undefined : asker
  const [{ gpus }, inUse, users] = await Promise.all([
    host.gpus(ctx.signal),
    takenOn(host),
    host.jobUsers(ctx.signal),
  ])
  const taken = host.holds.seenBy(job, inUse, gpus)
  const disk = await diskOf(users.kind === 'on' ? users.folder : host.paths.root)
  // If no GPU matches, the others are still offered, and the planner explains what they lack.
  const kind = chooseKind(gpus, request, taken) ?? chooseKind(gpus, {}, taken)
  const needs = needsOf(request)
  const whole = shapeOf(host, disk.totalGiB, kind)
  const shape = cutTo(request, whole)
  const freePlaces = placesFor(host, needs, { taken, kind })
  const diskFull = whyDiskFull(request, disk)
  const full =
    whyFull(host, needs, { taken, kind }) ?? whyForOthers(freePlaces, host.holds.withoutPlace(job, inUse))
  const note = full ?? diskFull
  if (job !== undefined) {
    const gpus = kind?.free.slice(0, needs.gpus).map(({ index }) => index) ?? []
    if (note === undefined) host.holds.hold(job, { slots: needs.slots, gpus })
    else host.holds.noteShortage(job, { request, lacks: lackOf(host, needs, { taken, kind }) })
  }
  return capacityTypesOf(host).map((capacityType) => ({
    backend: 'local',
    capacityType,
    type: MACHINE_TYPE,
    place: host.place,
    shape,
    priceMicroUsdPerHour: priceOf(host, capacityType),
    priceSource: { kind: 'configured', observedAtMs: host.deps.clock() },
    freePlaces,
    ...(isUserShared(users) && { sharesUser: true }),
    ...(note === undefined ? { availability: 'available' } : { availability: 'unavailable', note }),
  }))
}

/** Why a free place is not for this job. */
function whyForOthers(freePlaces: number, ahead: number): string | undefined {
  return freePlaces > ahead ? undefined : `${freePlaces} free, kept for ${ahead} older waiting jobs`
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

/** A machine is cut to size: out of the total, never more than the requested maximum. */
function cutTo({ cpus, gpus, memoryGiB }: ResourceRequest, whole: MachineShape): MachineShape {
  return {
    ...whole,
    cpus: Math.min(whole.cpus, cpus?.max ?? Infinity),
    gpus: Math.min(whole.gpus, gpus?.max ?? Infinity),
    memoryGiB: Math.min(whole.memoryGiB, memoryGiB?.max ?? Infinity),
  }
}

/** The machine's memory, or the limit of a control group. */
function hostMemoryGiB(): number {
  const limit = process.constrainedMemory()
  return Math.min(totalmem(), limit > 0 ? limit : Infinity) / GIB
}

export interface Disk {
  totalGiB: number
  freeGiB: number
}

/** Returns the disk of a directory, which may not exist yet. */
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
