import { sleep } from '@temporalio/workflow'
import { failureFrom, type Failure } from '../core/failure'
import { MINUTE_MS } from '../core/time'

/** Pauses between tries of something that must be done in any case: soon at first, then seldom enough to cost no history. */
const PAUSES_MS = [10_000, MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS]

/**
 * Does what must not be given up, such as making sure that a machine has ended, until it is done. Temporal has retried each
 * try already; what still fails needs a person, and `onTrouble` shows it to one.
 */
export async function forever<T>(work: () => Promise<T>, onTrouble: (failure: Failure) => void): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work()
    } catch (error) {
      onTrouble(failureFrom(error))
    }
    await sleep(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)]!, { summary: 'trouble: trying again' })
  }
}
