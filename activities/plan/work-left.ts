import { COPIED_BY, type Manifest } from '../../core/job/checkpoint'
import { parseBeat } from '../../intake/documents'
import { ignoreBadDocument, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'

/** Number of attempts that are read. An attempt that ended before its program reported its total has no figure; an earlier one may. */
const ATTEMPTS_READ_MAX = 3
/** Least remaining share: a program whose last step is saved has still to end. */
const LEAST_SHARE = 0.01

/**
 * Share of a job's work that its newest checkpoint does not hold, from 0 to 1: by the step of the checkpoint and the total that an attempt
 * reported. 1 without a readable checkpoint; `undefined` if one of the figures is unknown.
 */
export async function leftShareOf(
  store: ObjectStore,
  { jobId, attempt }: { jobId: string; attempt: number },
  newest: Manifest | undefined,
): Promise<number | undefined> {
  if (newest === undefined) return 1
  // The steps of another job may count something different.
  if (!newest.isStepKnown || newest.attempt === COPIED_BY) return undefined
  for (let read = attempt - 1; read > 0 && read >= attempt - ATTEMPTS_READ_MAX; read -= 1) {
    const beat = await readDocument(store, layout.beat(jobId, read), parseBeat).catch(ignoreBadDocument)
    const stepsTotal = beat?.progress?.stepsTotal ?? 0
    if (stepsTotal > 0) return Math.min(1, Math.max(LEAST_SHARE, 1 - newest.step / stepsTotal))
  }
  return undefined
}
