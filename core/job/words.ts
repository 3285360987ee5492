import { formatGpuMemory } from '../gpu-memory'
import type { JobSpec } from './job'
import { formatRange, type ResourceRequest } from '../resources'
import { formatDuration } from '../time/time'

/** `10h on A100` */
export function trainingTimeInWords({
  durationMs,
  durationOn,
}: Pick<JobSpec, 'durationMs' | 'durationOn'>): string | undefined {
  if (durationMs === undefined) return undefined
  return [formatDuration(durationMs), durationOn].filter((word) => word !== undefined).join(' on ')
}

/** `2 GPUs, H100, 8+ cpus`; empty without a request. */
export function resourcesInWords(request: ResourceRequest): string | undefined {
  const { gpus, accelerators, instanceTypes, cpus, memoryGiB, diskGiB, diskMibPerSecond, diskIops, shmGiB } =
    request
  const gpuMemory = formatGpuMemory(request)
  const words = [
    gpus && `${formatRange(gpus)} ${gpus.min === 1 && gpus.max === 1 ? 'GPU' : 'GPUs'}`,
    accelerators && accelerators.length > 0 && accelerators.join(' or '),
    instanceTypes && `type ${instanceTypes.join(' or ')}`,
    gpuMemory && `GPU memory ${gpuMemory}`,
    cpus && `${formatRange(cpus)} cpus`,
    memoryGiB && `memory ${formatRange(memoryGiB, ' GiB')}`,
    diskGiB && `disk ${formatRange(diskGiB, ' GiB')}`,
    diskMibPerSecond && `disk throughput ${diskMibPerSecond} MiB/s`,
    diskIops && `disk ${diskIops} IOPS`,
    shmGiB !== undefined && `shared memory ${shmGiB} GiB`,
  ].filter((word) => typeof word === 'string')
  return words.length === 0 ? undefined : words.join(', ')
}
