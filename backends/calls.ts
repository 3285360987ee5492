import { BackendError } from './errors'
import type { CallContext, TimedContext } from './backend'
import { setMaxListeners } from 'node:events'

/** Runs a verb, unless the caller has already aborted, and converts every error to a `BackendError`. */
export async function runVerb<T>(
  { signal }: CallContext,
  task: () => Promise<T>,
  classify: (error: unknown) => BackendError,
): Promise<T> {
  throwIfAborted(signal)
  // The signal that every request of a verb listens to.
  setMaxListeners(0, signal)
  try {
    return await task()
  } catch (error) {
    throw classify(error)
  }
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw callerLeft()
}

/** Throws just before a request that may be sent once if it would be late. */
export function throwIfLate({ signal, isLate }: TimedContext): void {
  throwIfAborted(signal)
  if (isLate?.() === true)
    throw new BackendError({ class: 'transient', message: 'its time limit passed before it was sent' })
}

export function callerLeft(): BackendError {
  return new BackendError({ class: 'transient', message: 'the caller stopped waiting' })
}

/**
 * A signal that aborts when a time is over, or with another. Node drops an `AbortSignal.timeout` that only `AbortSignal.any` references, and it
 * never fires: this one is referenced by its timer.
 */
export function limitedTo(limitMs: number, signal?: AbortSignal): AbortSignal {
  const limit = new AbortController()
  const timeIsUp = new DOMException('The operation took too long.', 'TimeoutError')
  setTimeout(() => limit.abort(timeIsUp), limitMs).unref()
  return AbortSignal.any([limit.signal, ...(signal === undefined ? [] : [signal])])
}

/** Waits, unless the caller aborts first. */
export async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  throwIfAborted(signal)
  await new Promise<void>((resolve) => {
    const over = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', over)
      resolve()
    }
    const timer = setTimeout(over, durationMs)
    signal.addEventListener('abort', over)
  })
  throwIfAborted(signal)
}

/** A value that is read rarely and used often. */
export interface Cached<T> {
  /** Returns the value, read again if it is older than allowed. Concurrent callers share one read. */
  get(signal: AbortSignal): Promise<{ value: T; readAtMs: number }>
  /** Returns the value like `get`; if a read fails or takes longer than a caller can wait, the last value of any age, or nothing. */
  soon(withinMs: number, signal: AbortSignal): Promise<{ value: T; readAtMs: number } | undefined>
}

export interface CachedOptions<T> {
  freshForMs: number
  clock: () => number
  read: (signal: AbortSignal) => Promise<T>
}

/** A read continues when its first caller leaves, because others wait for it. This bounds it. */
const READING_LIMIT_MS = 60_000

export function cached<T>({ freshForMs, clock, read }: CachedOptions<T>): Cached<T> {
  let kept: { value: T; readAtMs: number } | undefined
  let reading: Promise<{ value: T; readAtMs: number }> | undefined
  const readAnew = (): Promise<{ value: T; readAtMs: number }> => {
    const readAtMs = clock()
    reading ??= read(AbortSignal.timeout(READING_LIMIT_MS))
      .then((value) => (kept = { value, readAtMs }))
      .finally(() => (reading = undefined))
    return reading
  }
  const isFresh = (): boolean => {
    const ageMs = kept === undefined ? Infinity : clock() - kept.readAtMs
    // A clock that is set back makes a value old, so that none is used for days.
    return ageMs >= 0 && ageMs < freshForMs
  }
  const get = (signal: AbortSignal): Promise<{ value: T; readAtMs: number }> =>
    isFresh() ? Promise.resolve(kept!) : unlessAborted(signal, readAnew())
  return {
    get,
    soon: async (withinMs, signal) => {
      if (isFresh()) return kept
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, withinMs)))
      try {
        return (await Promise.race([unlessAborted(signal, readAnew()), late])) ?? kept
      } catch {
        throwIfAborted(signal)
        return kept
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** The promise's answer, or an error as soon as the caller leaves. */
export async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  throwIfAborted(signal)
  let onAbort = (): void => undefined
  const left = new Promise<void>((resolve) => signal.addEventListener('abort', (onAbort = () => resolve())))
  await Promise.race([promise, left]).finally(() => signal.removeEventListener('abort', onAbort))
  throwIfAborted(signal)
  return promise
}
