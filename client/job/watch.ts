import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../core/defined'
import { isFinal } from '../../core/job/job'
import { SECOND_MS } from '../../core/time/time'
import type { Context } from '../context'
import { toCrucibleError } from '../errors'
import type { JobView } from './job-view'
import { JobViewCache, readView } from './read-view'

/** @public */
export interface WatchOptions {
  /** Pause between two polls. */
  everyMs?: number
  signal?: AbortSignal
}

const LOOK_EVERY_MS = SECOND_MS

/** Yields the state of a job after every change, until it is over; the last one is its end. Waits while the store does not answer. */
export async function* watchJob(
  context: Context,
  jobId: string,
  { everyMs = LOOK_EVERY_MS, signal }: WatchOptions = {},
): AsyncGenerator<JobView> {
  let shown = ''
  const seenBefore = new JobViewCache()
  while (signal?.aborted !== true) {
    const view = await readView(context, jobId, seenBefore).catch((error: unknown) => {
      const known = toCrucibleError(error)
      if (shown !== '' && known.kind === 'unavailable') return undefined
      throw known
    })
    const text = JSON.stringify(view)
    if (view !== undefined && text !== shown) {
      shown = text
      yield view
      if (isFinal(view.state)) return
    }
    await sleep(everyMs, undefined, defined({ signal })).catch(() => undefined)
  }
}
