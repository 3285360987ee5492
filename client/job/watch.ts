import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../core/defined'
import { isFinal } from '../../core/job/job'
import { SECOND_MS } from '../../core/time/time'
import type { Context } from '../context'
import { toCrucibleError } from '../errors'
import { StoreOutage } from '../store-outage'
import type { JobView } from './job-view'
import { JobViewCache, readView } from './read-view'

/** @public */
export interface WatchOptions {
  /** Pause between two polls. */
  everyMs?: number
  signal?: AbortSignal
}

const LOOK_EVERY_MS = SECOND_MS

/**
 * Yields the state of a job after every change, until it is over; the last one is its end. Waits while the store does not answer, which
 * it notes. A workflow that answers again at the next look was not silent.
 */
export async function* watchJob(
  context: Context,
  jobId: string,
  { everyMs = LOOK_EVERY_MS, signal }: WatchOptions = {},
): AsyncGenerator<JobView> {
  let shown = ''
  let isSilent = false
  const seenBefore = new JobViewCache()
  const outage = new StoreOutage(context)
  while (signal?.aborted !== true) {
    const look = readView(context, jobId, seenBefore)
    const view = await outage.during(look).catch((error: unknown) => {
      const known = toCrucibleError(error)
      if (shown === '' || known.kind !== 'unavailable') throw known
      outage.begin(known.message)
      return undefined
    })
    if (view !== undefined) outage.end()
    const wasSilent = isSilent
    isSilent = view?.isLive === false
    const isFirstSilence = isSilent && !wasSilent && shown !== ''
    const text = JSON.stringify(view)
    if (view !== undefined && !isFirstSilence && text !== shown) {
      shown = text
      yield view
      if (isFinal(view.state)) return
    }
    await sleep(everyMs, undefined, defined({ signal })).catch(() => undefined)
  }
}
