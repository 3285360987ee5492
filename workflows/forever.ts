import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineSignal,
  setHandler,
} from '@temporalio/workflow'
import { carrying, failureFrom, isNotAllowed, isOfOtherHistory, type Failure } from '../core/failure'
import { RETRY_SIGNAL } from '../core/messages'
import { HOUR_MS, MINUTE_MS } from '../core/time/time'

/** Pauses between tries of a step that must happen: soon at first, then rarely enough to need little history. */
const PAUSES_MS = [10_000, MINUTE_MS]
const OFTEN_MS = 10 * MINUTE_MS
/**
 * Tries before the pause becomes long: after about a day the problem needs a person, who can skip the pause. A year of tries is then half
 * of the history that the server keeps.
 */
const OFTEN_TRIES = 150
const RARELY_MS = 6 * HOUR_MS

/** Shows trouble while a step is retried. */
export interface TroublePage {
  /** Reports the current failure, or undefined once it is over. */
  trouble(failure: Failure | undefined): void
  readonly retries: Retries
  /** Continues in a fresh history if this one has become long, where the workflow can do that in the middle of a step. */
  continueFresh?(): Promise<void>
}

const retrySignal = defineSignal(RETRY_SIGNAL)

/** Counts requests to retry immediately instead of after a pause. One that comes during a step ends the pause after that step. */
export class Retries {
  private asked = 0
  private answered = 0

  constructor() {
    setHandler(retrySignal, () => void (this.asked += 1), { description: 'Skip the current pause.' })
  }

  /** Waits until a retry is requested or `isOver` says that nothing is left to wait for. */
  async pause(forMs: number, { summary, isOver = () => false }: PauseOptions): Promise<void> {
    await condition(() => this.asked > this.answered || isOver(), forMs, { summary })
    this.answered = this.asked
  }
}

interface PauseOptions {
  summary: string
  isOver?: () => boolean
}

/**
 * A promise that is awaited later. An earlier rejection would be unhandled: it fails the workflow task, and every replay repeats
 * it, so that the workflow could never continue.
 */
export function kept<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/**
 * Does a step that must not be given up, such as making sure that a machine has ended, until it succeeds. Temporal retries the
 * activity while its trouble lasts; errors that reach this loop are rare, such as an activity without a worker for a day. A step that is
 * not allowed, or not that of the job's record, fails at once.
 */
export async function forever<T>(work: () => Promise<T>, page: TroublePage): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      const done = await work()
      if (tries > 0) page.trouble(undefined)
      return done
    } catch (error) {
      if (CancellationScope.current().consideredCancelled) throw error
      // The workflow closes with the reason, and not with the failure of an activity.
      if (isNotAllowed(error) || isOfOtherHistory(error))
        throw ApplicationFailure.create({ ...carrying(failureFrom(error)), nonRetryable: true })
      page.trouble(failureFrom(error))
    }
    await page.continueFresh?.()
    const pauseMs = tries < PAUSES_MS.length ? PAUSES_MS[tries]! : tries < OFTEN_TRIES ? OFTEN_MS : RARELY_MS
    await page.retries.pause(pauseMs, { summary: 'trouble: retrying' })
  }
}

/** Runs work. Once `isOver` is true, cancels it, waits for its end, and returns undefined. */
export async function unlessOver<T>(isOver: () => boolean, work: () => Promise<T>): Promise<T | undefined> {
  const scope = new CancellationScope({ cancellable: true })
  const doing = kept(scope.run(work))
  const done = await Promise.race([doing, condition(isOver).then((): undefined => undefined)])
  scope.cancel()
  await doing.catch(() => undefined)
  return done
}

/** Repeats a step until it succeeds, unless `isOver` becomes true. */
export async function foreverUntil(
  isOver: () => boolean,
  work: () => Promise<void>,
  page: TroublePage,
): Promise<void> {
  await unlessOver(isOver, () => forever(work, page))
}

/**
 * A step as a local activity, which costs one event. If that fails, as an ordinary activity: a local one that is retried keeps
 * the workflow from receiving signals and adds events while it lasts.
 */
export async function localThenOrdinary<T>(
  { local, ordinary }: { local: () => Promise<T>; ordinary: () => Promise<T> },
  page: TroublePage,
): Promise<T> {
  try {
    return await local()
  } catch (error) {
    page.trouble(failureFrom(error))
  }
  const done = await forever(ordinary, page)
  page.trouble(undefined)
  return done
}
