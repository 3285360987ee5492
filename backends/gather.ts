import { callerLeft } from './calls'

export interface Gathering<Key, Answer> {
  /** The call: one answer for each key, in order. Its signal aborts when every caller has left. */
  ask: (keys: Key[], signal: AbortSignal) => Promise<readonly Answer[]>
  /** Calls in progress at once. */
  callsMax: number
  /** Keys in one call. */
  keysMax: number
}

interface Waiting<Key, Answer> {
  key: Key
  signal: AbortSignal
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
}

/**
 * Answers questions about single things by calls about many: what is asked while `callsMax` calls are in progress goes together into
 * the next one. So a few callers wait for nothing, and a thousand need a few calls. Each call begins after its callers asked. Throws
 * `transient` for a caller who leaves, and a call's error for all its callers.
 */
export function gathered<Key, Answer>({
  ask,
  callsMax,
  keysMax,
}: Gathering<Key, Answer>): (key: Key, signal: AbortSignal) => Promise<Answer> {
  const waiting: Waiting<Key, Answer>[] = []
  let calls = 0
  const serve = (): void => {
    while (calls < callsMax && waiting.length > 0) {
      calls += 1
      void send(waiting.splice(0, keysMax), ask).finally(() => {
        calls -= 1
        serve()
      })
    }
  }
  return async (key, signal) => {
    if (signal.aborted) throw callerLeft()
    let leave = (): void => undefined
    try {
      return await new Promise<Answer>((resolve, reject) => {
        const one = { key, signal, resolve, reject }
        leave = () => {
          const place = waiting.indexOf(one)
          if (place !== -1) waiting.splice(place, 1)
          reject(callerLeft())
        }
        signal.addEventListener('abort', leave)
        waiting.push(one)
        serve()
      })
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }
}

async function send<Key, Answer>(
  batch: Waiting<Key, Answer>[],
  ask: Gathering<Key, Answer>['ask'],
): Promise<void> {
  const left = new AbortController()
  const leave = (): void => {
    if (batch.every(({ signal }) => signal.aborted)) left.abort()
  }
  for (const { signal } of batch) signal.addEventListener('abort', leave, { once: true })
  try {
    const answers = await ask(
      batch.map(({ key }) => key),
      left.signal,
    )
    batch.forEach((one, index) => one.resolve(answers[index]!))
  } catch (error) {
    for (const one of batch) one.reject(error as Error)
  } finally {
    for (const { signal } of batch) signal.removeEventListener('abort', leave)
  }
}
