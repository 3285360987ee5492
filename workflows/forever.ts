import { CancellationScope, condition, defineSignal, setHandler } from '@temporalio/workflow'
import { failureFrom, type Failure } from '../core/failure'
import { RETRY_SIGNAL } from '../core/messages'
import { MINUTE_MS } from '../core/time'

/** Pauses between tries of something that must be done in any case: soon at first, then seldom enough to cost little history. */
const PAUSES_MS = [10_000, MINUTE_MS, 10 * MINUTE_MS]

/** Where trouble is shown while something is tried again. */
export interface TroublePage {
  /** Missing once the trouble is over. */
  trouble(failure: Failure | undefined): void
  readonly retries: Retries
}

const retrySignal = defineSignal(RETRY_SIGNAL)

/** How often somebody asked the workflow to try again at once, instead of after a pause. */
export class Retries {
  asked = 0

  constructor() {
    setHandler(retrySignal, () => void (this.asked += 1), { description: 'Cut the present pause short.' })
  }

  /** Waits, until somebody asks for a retry or `isOver` says that there is nothing left to wait for. */
  async pause(forMs: number, { summary, isOver = () => false }: PauseOptions): Promise<void> {
    const { asked } = this
    await condition(() => this.asked > asked || isOver(), forMs, { summary })
  }
}

interface PauseOptions {
  summary: string
  isOver?: () => boolean
}

/**
 * A promise that is awaited later. A rejection that comes before would be an unhandled one: it fails the workflow task, and every replay
 * meets it again, so that the workflow never goes on.
 */
export function kept<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/**
 * Does what must not be given up, such as making sure that a machine has ended, until it is done. Temporal retries the activity
 * for as long as its trouble lasts; what reaches this loop is rare, such as an activity for which no worker came for a day.
 */
export async function forever<T>(work: () => Promise<T>, page: TroublePage): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      const done = await work()
      if (tries > 0) page.trouble(undefined)
      return done
    } catch (error) {
      if (CancellationScope.current().consideredCancelled) throw error
      page.trouble(failureFrom(error))
    }
    const pauseMs = PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)]!
    await page.retries.pause(pauseMs, { summary: 'trouble: trying again' })
  }
}

/** The same, given up once `isOver` says that it is of no use any more. */
export async function foreverUntil(
  isOver: () => boolean,
  work: () => Promise<void>,
  page: TroublePage,
): Promise<void> {
  const scope = new CancellationScope({ cancellable: true })
  const doing = kept(scope.run(() => forever(work, page)))
  await Promise.race([doing, condition(isOver)])
  scope.cancel()
  await doing.catch((error: unknown) => {
    if (!scope.consideredCancelled) throw error
  })
}

/**
 * A step as a local activity, which costs one event. Should that fail, as an ordinary activity: a local one that is retried keeps the
 * workflow from hearing signals and adds events for as long as it lasts.
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
