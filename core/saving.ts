/** Whether a checkpoint can be saved between a provider's notice and its end of the machine. The only arithmetic of that. */
import type { Manifest } from './checkpoint'
import type { JobSpec } from './job'
import { formatBytes } from './resources'
import { formatDuration, MINUTE_MS, SECOND_MS } from './time'

/** A checkpoint that was saved before: how big it was, and how long it took, where its runner has told. */
export type SavedBefore = Pick<Manifest, 'totalBytes' | 'uploadMs'>

/** What saving a checkpoint is expected to take. */
export interface Saving {
  sizeBytes: number
  durationMs: number
  /** Whether a runner has measured the rate, or it is the assumed one. */
  isMeasured: boolean
}

/**
 * Of the two minutes that a provider's notice leaves, what is there for the upload: a second goes until it is read, some until
 * the workload has written its checkpoint, and the last belong to the result.
 */
export const SAVED_WITHIN_MS = 1.5 * MINUTE_MS

/** Assumed where nobody has measured: four threads of the runner reach 134 MiB/s and more on a fast store (docs/benchmarks.md). */
export const ASSUMED_UPLOAD_BYTES_PER_SECOND = 100 * 2 ** 20

/** What is smaller tells of the store's answers, not of its rate. */
const TELLING_BYTES = 64 * 2 ** 20

/** What saving takes, by what the spec says of the size, else by the last checkpoint; `undefined` where neither is known. */
export function savingOf({ checkpoint }: JobSpec, before: SavedBefore | undefined): Saving | undefined {
  const sizeBytes = checkpoint.sizeBytes ?? before?.totalBytes
  if (sizeBytes === undefined) return undefined
  const { totalBytes = 0, uploadMs = 0 } = before ?? {}
  const isMeasured = uploadMs > 0 && (totalBytes >= TELLING_BYTES || totalBytes === sizeBytes)
  const bytesPerMs = isMeasured ? totalBytes / uploadMs : ASSUMED_UPLOAD_BYTES_PER_SECOND / SECOND_MS
  return { sizeBytes, durationMs: Math.ceil(sizeBytes / bytesPerMs), isMeasured }
}

/** What a notice does not save, as part of a sentence; nothing where the checkpoint can be saved in time. */
export function lossDespiteNotice(
  { sizeBytes, durationMs, isMeasured }: Saving,
  everyMs: number | undefined,
): string | undefined {
  if (durationMs <= SAVED_WITHIN_MS) return undefined
  const rate = `${isMeasured ? 'a measured' : 'an assumed'} ${formatBytes((sizeBytes / durationMs) * SECOND_MS)}/s`
  const left = `${formatDuration(SAVED_WITHIN_MS)} that a notice leaves`
  const lost =
    everyMs === undefined ? 'all work since the last one' : `up to ${formatDuration(everyMs)} of work`
  return `saving a checkpoint of ${formatBytes(sizeBytes)} takes ${formatDuration(durationMs)} at ${rate}, more than the ${left}: ${lost} is done again`
}
