import { isAcceptable } from '../core/accelerators'
import { reachesGpuMemory } from '../core/gpu-memory'
import { wantsGpu, type MachineShape, type ResourceRequest } from '../core/resources'

const NEAREST_MAX = 10

/**
 * Returns the machine types that could hold a request, including larger ones; if none could, those that lack only the accelerator;
 * otherwise the largest.
 */
export function fitting<T>(
  types: readonly T[],
  shapeOf: (type: T) => MachineShape,
  request: ResourceRequest,
): T[] {
  const large = types.filter((type) => isEnough(shapeOf(type), request))
  const wanted = large.filter((type) => hasWantedAccelerator(shapeOf(type), request))
  if (wanted.length > 0) return wanted
  return large.length > 0 ? large : largest(types, shapeOf)
}

function largest<T>(types: readonly T[], shapeOf: (type: T) => MachineShape): T[] {
  const size = (type: T): number => {
    const { gpus, cpus, memoryGiB } = shapeOf(type)
    return gpus * 1e9 + cpus * 1e6 + memoryGiB
  }
  return [...types].sort((a, b) => size(b) - size(a)).slice(0, NEAREST_MAX)
}

function isEnough(shape: MachineShape, request: ResourceRequest): boolean {
  const gpusMin = request.gpus?.min ?? (wantsGpu(request) ? 1 : 0)
  return (
    shape.cpus >= (request.cpus?.min ?? 0) &&
    shape.memoryGiB >= (request.memoryGiB?.min ?? 0) &&
    shape.gpus >= gpusMin &&
    reachesGpuMemory(shape, request)
  )
}

/** Whether a type has an accelerator that the request accepts. */
export function hasWantedAccelerator(
  { accelerator }: Pick<MachineShape, 'accelerator'>,
  { accelerators }: ResourceRequest,
): boolean {
  return isAcceptable(accelerator, accelerators)
}
