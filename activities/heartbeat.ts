import { ApplicationFailure, Context } from '@temporalio/activity'
import { carrying } from '../core/failure'

/** Four beats fit into the heartbeat timeout of 20 s that the workflows set. */
const BEAT_EVERY_MS = 5_000

/** A call to the outside must be over this long before its activity's time is, so that its answer still counts. */
const ANSWER_MARGIN_MS = 5_000
/** The last try before a limit may have seconds: the most of them is for the call. */
const ANSWER_MARGIN_SHARE = 0.2

/**
 * Runs an activity's work while beating from a timer, so that the server learns within seconds when this process dies. The
 * signal aborts when the activity is cancelled, when this worker shuts down, and shortly before the activity's time is up.
 * `details` is a hint for a successor, never the truth.
 */
export async function beating<T>(
  work: (signal: AbortSignal) => Promise<T>,
  details: () => unknown = () => 'alive',
): Promise<T> {
  const context = Context.current()
  // A local activity has no heartbeat: its workflow task has one.
  const beat = (): void => void (context.info.isLocal || context.heartbeat(details()))
  const timer = setInterval(beat, BEAT_EVERY_MS)
  beat()
  const limit = limitOf(context)
  try {
    return await work(limit.signal)
  } catch (error) {
    if (context.cancellationDetails?.workerShutdown === true) throw handedOver()
    throw error
  } finally {
    clearInterval(timer)
    clearTimeout(limit.timer)
  }
}

/** The same activities, as written: the signal of `beating` comes after the input. */
type Signalled<Activities> = {
  [Name in keyof Activities]: Activities[Name] extends (input: infer Input) => infer Answer
    ? (input: Input, signal: AbortSignal) => Answer
    : never
}

/** Activities that run while beating, so that one whose worker dies is noticed within the heartbeat timeout of its workflow. */
export function allBeating<Activities extends object>(activities: Signalled<Activities>): Activities {
  type Work = (input: unknown, signal: AbortSignal) => Promise<unknown>
  const beaten = Object.entries(activities as Record<string, Work>).map(
    ([name, activity]) => [name, (input: unknown) => beating((signal) => activity(input, signal))] as const,
  )
  return Object.fromEntries(beaten) as unknown as Activities
}

/** A signal that aborts with the activity and before its time is up. */
function limitOf(context: Context): { signal: AbortSignal; timer?: NodeJS.Timeout } {
  const { startToCloseTimeoutMs } = context.info
  if (startToCloseTimeoutMs > TIMEOUT_MAX_MS) return { signal: context.cancellationSignal }
  const marginMs = Math.min(ANSWER_MARGIN_MS, startToCloseTimeoutMs * ANSWER_MARGIN_SHARE)
  // Held by its timer: Node forgets an `AbortSignal.timeout` that only `AbortSignal.any` knows, and it never fires.
  const limit = new AbortController()
  const timeIsUp = new DOMException('The time of the activity is nearly up.', 'TimeoutError')
  const timer = setTimeout(() => limit.abort(timeIsUp), startToCloseTimeoutMs - marginMs)
  return { signal: AbortSignal.any([context.cancellationSignal, limit.signal]), timer }
}

/** Longer timers do not exist (they would fire at once); an activity that may take a month needs no margin either. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

/** Retried by Temporal on another worker: this one is going. */
export function handedOver(): ApplicationFailure {
  return ApplicationFailure.create({
    ...carrying({
      class: 'transient',
      message: 'The worker is shutting down; another one takes over.',
    }),
    category: 'BENIGN',
  })
}

/** Waits, or throws when the signal aborts. */
export async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, durationMs)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
