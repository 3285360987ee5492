/** Computes whether a checkpoint can be saved between a provider's notice and the end of the machine. */
import type { Manifest } from './checkpoint'
import type { JobSpec } from './job'
import { formatBytes } from '../resources'
import { formatDuration, MINUTE_MS, SECOND_MS } from '../time/time'

/** An earlier checkpoint: its size, and how long writing and uploading it took, if a runner has measured that. */
export interface SavedBefore extends Pick<Manifest, 'totalBytes' | 'uploadMs' | 'saveMs'> {
  /** Size of the older checkpoints that the program still kept: a restore brings them too; missing without any. */
  olderBytes?: number
}

/** The expected effort of saving a checkpoint. */
export interface Saving {
  sizeBytes: number
  /** What a restore downloads: the checkpoint with the older ones that the program still kept. */
  restoredBytes: number
  /** Duration of the upload. */
  durationMs: number
  /** The program's writing time beyond what `SAVED_WITHIN_MS` allows; 0 if unknown. */
  writeMs: number
  /** Whether a runner measured the rate, or it is assumed. */
  isMeasured: boolean
}

/**
 * Time for the upload within a provider's notice of two minutes: a second passes until it is read, some until the workload has written its
 * checkpoint, and the end is reserved for the result.
 */
export const SAVED_WITHIN_MS = 1.5 * MINUTE_MS
/** The remaining time of a notice, for the program to write its checkpoint. */
const WRITTEN_WITHIN_MS = 20 * SECOND_MS

/** Assumed without a measurement: four threads of the runner reach 134 MiB/s and more on a fast store (docs/design/benchmarks.md). */
export const ASSUMED_UPLOAD_BYTES_PER_SECOND = 100 * 2 ** 20

/** Smaller transfers measure the store's latency, not its rate. */
const TELLING_BYTES = 64 * 2 ** 20

/** The effort of saving by the spec's estimated size, otherwise by the last checkpoint; `undefined` if neither is known. */
export function savingOf({ checkpoint }: JobSpec, before: SavedBefore | undefined): Saving | undefined {
  const sizeBytes = checkpoint.sizeBytes ?? before?.totalBytes
  if (sizeBytes === undefined) return undefined
  const { totalBytes = 0, uploadMs = 0, saveMs = 0 } = before ?? {}
  const isMeasured = uploadMs > 0 && (totalBytes >= TELLING_BYTES || totalBytes === sizeBytes)
  const bytesPerMs = isMeasured ? totalBytes / uploadMs : ASSUMED_UPLOAD_BYTES_PER_SECOND / SECOND_MS
  const writeMs = Math.max(0, saveMs - WRITTEN_WITHIN_MS)
  const restoredBytes = sizeBytes + (before?.olderBytes ?? 0)
  return { sizeBytes, restoredBytes, durationMs: Math.ceil(sizeBytes / bytesPerMs), writeMs, isMeasured }
}

/** Describes the loss despite a notice as part of a sentence; returns nothing if the checkpoint can be saved in time. */
export function lossDespiteNotice(
  { sizeBytes, durationMs, writeMs, isMeasured }: Omit<Saving, 'restoredBytes'>,
  everyMs: number | undefined,
): string | undefined {
  if (durationMs + writeMs <= SAVED_WITHIN_MS) return undefined
  const rate = `${isMeasured ? 'a measured' : 'an assumed'} ${formatBytes((sizeBytes / durationMs) * SECOND_MS)}/s`
  const left = `${formatDuration(SAVED_WITHIN_MS)} that a notice leaves`
  const lost =
    everyMs === undefined ? 'all work since the last one' : `up to ${formatDuration(everyMs)} of work`
  const written =
    writeMs === 0 ? '' : `, after ${formatDuration(writeMs + WRITTEN_WITHIN_MS)} in which it is written`
  return `saving a checkpoint of ${formatBytes(sizeBytes)} takes ${formatDuration(durationMs)} at ${rate}${written}, more than the ${left}: ${lost} is done again`
}
