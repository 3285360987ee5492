import type { JobSpec } from '../../core/job/job'
import { savingOf, type SavedBefore } from '../../core/job/saving'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { ASSUMED_CHECKPOINT_EVERY_MS, ASSUMED_DISK_LOAD_GIB, ASSUMED_DURATION_MS } from './assumptions'
import { isResumable } from './run-limit'

const MIB_PER_GIB = 1024
const BYTES_PER_MIB = 2 ** 20

/**
 * Returns how much a job is expected to move through its disk, in MiB per hour: the size that it asks for once, and its checkpoints. Rounded
 * to a power of two, so that similar jobs share the answers of backends.
 */
export function diskLoadOf(spec: JobSpec, savedBefore: SavedBefore | undefined): number {
  const { durationMs = ASSUMED_DURATION_MS, resources, checkpoint } = spec
  const onceMib = (resources.diskGiB?.min ?? ASSUMED_DISK_LOAD_GIB) * MIB_PER_GIB
  const savedMib = isResumable(spec) ? (savingOf(spec, savedBefore)?.sizeBytes ?? 0) / BYTES_PER_MIB : 0
  // An interval of zero means every checkpoint, at the pace of the program.
  const saves = HOUR_MS / Math.max(MINUTE_MS, checkpoint.everyMs || ASSUMED_CHECKPOINT_EVERY_MS)
  // A job of minutes would pay for a speed at which it moves little.
  const mibPerHour = (onceMib * HOUR_MS) / Math.max(HOUR_MS, durationMs) + savedMib * saves
  return 2 ** Math.round(Math.log2(Math.max(1, mibPerHour)))
}
