import { ApplicationFailure, Context } from '@temporalio/activity'
import { carrying } from '../core/failure'

/** Four beats fit into the heartbeat timeout of 20 s that the workflows set. */
const BEAT_EVERY_MS = 5_000

/** Time by which an outside call must end before its activity's timeout, so that its answer still counts. */
const ANSWER_MARGIN_MS = 5_000
/** Share of the margin in the last try before a limit, which may have only seconds. */
const ANSWER_MARGIN_SHARE = 0.2

/**
 * Runs an activity's work while beating from a timer, so that the server notices within seconds when this process dies. The
 * signal aborts when the activity is cancelled, when this worker shuts down, and shortly before the activity's timeout.
 */
export async function beating<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current()
  // A local activity has no heartbeat, because its workflow task has one.
  const beat = (): void => void (context.info.isLocal || context.heartbeat('alive'))
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

/** Temporal retries it on another worker: this one is shutting down. */
function handedOver(): ApplicationFailure {
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
