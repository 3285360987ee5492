import { ApplicationFailure, Context } from '@temporalio/activity'
import { carrying } from '../core/failure'

/** Beats within the heartbeat timeout that the workflow sets, so that some of them may be lost. */
const BEATS_PER_TIMEOUT = 4
/** Interval in an activity without a heartbeat timeout, which hears of its cancellation only in the answers to its beats. */
const BEAT_EVERY_MS = 5_000

/** Time by which an outside call must end before its activity's timeout, so that its answer still counts. */
const ANSWER_MARGIN_MS = 5_000
/** Share of the margin in the last try before a limit, which may have only seconds. */
const ANSWER_MARGIN_SHARE = 0.2

/**
 * Runs an activity's work while beating from a timer, so that the server notices within the heartbeat timeout when this process dies. Most
 * activities end before their first beat, which costs the server a write. The signal aborts when the activity is cancelled, when this
 * worker shuts down, and shortly before the activity's timeout.
 */
export async function beating<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current()
  // A local activity has no heartbeat, because its workflow task has one.
  const beat = (): void => void (context.info.isLocal || context.heartbeat('alive'))
  const { heartbeatTimeoutMs } = context.info
  const everyMs = heartbeatTimeoutMs === undefined ? BEAT_EVERY_MS : heartbeatTimeoutMs / BEATS_PER_TIMEOUT
  const timer = setInterval(beat, everyMs)
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

/** Activities as written: the signal of `beating` comes after the input. */
export type Signalled<Activities> = {
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

/** A signal that aborts with the activity and before its timeout. */
function limitOf(context: Context): { signal: AbortSignal; timer?: NodeJS.Timeout } {
  const { startToCloseTimeoutMs } = context.info
  if (startToCloseTimeoutMs > TIMEOUT_MAX_MS) return { signal: context.cancellationSignal }
  const marginMs = Math.min(ANSWER_MARGIN_MS, startToCloseTimeoutMs * ANSWER_MARGIN_SHARE)
  // Referenced by its timer: Node drops an `AbortSignal.timeout` that only `AbortSignal.any` references, and it never fires.
  const limit = new AbortController()
  const timeIsUp = new DOMException('The activity is about to time out.', 'TimeoutError')
  const timer = setTimeout(() => limit.abort(timeIsUp), startToCloseTimeoutMs - marginMs)
  return { signal: AbortSignal.any([context.cancellationSignal, limit.signal]), timer }
}

/** Node has no longer timers (they would fire immediately); an activity that may take a month needs no margin either. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

/** Failure of an activity that Temporal retries on another worker: its own one is shutting down or has ended. */
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
