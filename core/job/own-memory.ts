import type { GpuUse } from '../beat-parts'

/** The GPU memory that an attempt used, kept in the store for later plans of the same code and command. */
export interface OwnMemory {
  jobId: string
  run: string
  bundleSha256: string
  gpus: number
  /** Memory of the GPU that used most, as its driver counts it: CUDA's own and the allocator's reserve included. */
  peakMiB: number
  /** The memory of that GPU. */
  totalMiB: number
}

/** The part of a measurement that a plan uses. */
export interface MeasuredMemory extends Pick<OwnMemory, 'jobId' | 'gpus'> {
  peakGiB: number
}

/** The use of the fullest GPU; `undefined` if none was measured. */
export function peakOf(
  gpus: readonly GpuUse[],
): Pick<OwnMemory, 'gpus' | 'peakMiB' | 'totalMiB'> | undefined {
  const [fullest] = [...gpus].sort((a, b) => (b.memoryPeakMiB ?? 0) - (a.memoryPeakMiB ?? 0))
  if (fullest?.memoryPeakMiB === undefined || fullest.memoryPeakMiB === 0) return undefined
  return { gpus: gpus.length, peakMiB: fullest.memoryPeakMiB, totalMiB: fullest.memoryTotalMiB }
}
