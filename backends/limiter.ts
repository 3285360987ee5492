import { callerLeft } from './calls'

/** `ending`: it stops money, and goes before all that spends it. */
type Rank = 'ending' | 'other'

export interface Limiter {
  /** Runs a call when there is room for it. Throws `transient` when the caller leaves before. */
  run<T>(rank: Rank, signal: AbortSignal, call: () => Promise<T>): Promise<T>
}

/** What an account may send: a bucket of requests that fills again. */
export interface RequestBucket {
  size: number
  perSecond: number
}

export function createLimiter({ size, perSecond }: RequestBucket, clock: () => number): Limiter {
  const waiting: Record<Rank, (() => void)[]> = { ending: [], other: [] }
  let tokens = size
  let filledAtMs = clock()
  let timer: NodeJS.Timeout | undefined
  const fill = (): void => {
    const nowMs = clock()
    tokens = Math.min(size, tokens + (Math.max(0, nowMs - filledAtMs) * perSecond) / 1_000)
    filledAtMs = nowMs
  }
  const serve = (): void => {
    timer = undefined
    fill()
    while (tokens >= 1) {
      const next = waiting.ending.shift() ?? waiting.other.shift()
      if (next === undefined) return
      tokens -= 1
      next()
    }
    if (waiting.ending.length + waiting.other.length > 0) timer ??= setTimeout(serve, 1_000 / perSecond)
  }
  const turn = (rank: Rank, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const queue = waiting[rank]
      const leave = (): void => {
        queue.splice(queue.indexOf(go), 1)
        reject(callerLeft())
      }
      const go = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.push(go)
      if (timer === undefined) serve()
    })
  return {
    run: async (rank, signal, call) => {
      await turn(rank, signal)
      return call()
    },
  }
}
