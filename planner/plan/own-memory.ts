import { codeDigest, type BundleRef } from '../../core/job/job'
import type { MeasuredMemory, OwnMemory } from '../../core/job/own-memory'

/** JAX reserves 75 % of a GPU when it starts, and TensorFlow nearly all: above this share, the use does not show the need. */
const RESERVED_FLOOR = 0.7

/** Memory that the newest attempt of the same code and command used; `undefined` if no attempt shows the need. */
export function measuredMemory(
  all: readonly OwnMemory[],
  { run, bundle }: { run: string; bundle: Pick<BundleRef, 'sha256' | 'contentSha256'> | null },
): MeasuredMemory | undefined {
  if (bundle === null) return undefined
  const code = codeDigest(bundle)
  const found = all.find(
    (one) => one.run === run && one.bundleSha256 === code && one.peakMiB < RESERVED_FLOOR * one.totalMiB,
  )
  return found && { jobId: found.jobId, gpus: found.gpus, peakGiB: found.peakMiB / 1024 }
}
