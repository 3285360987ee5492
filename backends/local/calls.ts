import type { CallContext } from '../backend'
import { BackendError } from '../errors'
import { localError } from './errors'

/** Runs a verb, unless the caller has already aborted, and converts every error to a `BackendError`. */
export async function verb<T>(ctx: CallContext, task: () => Promise<T>): Promise<T> {
  throwIfAborted(ctx.signal)
  try {
    return await task()
  } catch (error) {
    throw localError(error)
  }
}

export function callerLeft(): BackendError {
  return new BackendError({ class: 'transient', message: 'the caller stopped waiting' })
}

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw callerLeft()
}

/** The promise's answer, or an error as soon as the caller aborts; the promise's later outcome is ignored. */
export async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  throwIfAborted(signal)
  promise.catch(() => undefined)
  let onAbort: (() => void) | undefined
  try {
    await Promise.race([
      promise,
      new Promise<void>((resolve) => signal.addEventListener('abort', (onAbort = () => resolve()))),
    ])
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
  }
  throwIfAborted(signal)
  return promise
}

export type Exclusive = <T>(key: string, signal: AbortSignal, task: () => Promise<T>) => Promise<T>

/** Runs tasks with the same key one after the other, within this process. */
export function createExclusive(): Exclusive {
  const tails = new Map<string, Promise<void>>()
  return async (key, signal, task) => {
    const before = tails.get(key) ?? Promise.resolve()
    let release = (): void => undefined
    const mine = new Promise<void>((resolve) => (release = resolve))
    const tail = before.then(() => mine)
    tails.set(key, tail)
    try {
      await unlessAborted(signal, before)
      return await task()
    } finally {
      release()
      if (tails.get(key) === tail) tails.delete(key)
    }
  }
}
