import { callerLeft } from './calls'

/** `ending`: it stops money, and goes before all that spends it. `launch`: it also needs room among the launches, if these have a limit. */
type Rank = 'ending' | 'launch' | 'other'

export interface Limiter {
  /** Runs a call when the rate allows it. Throws `transient` if the caller leaves before. */
  run<T>(rank: Rank, signal: AbortSignal, call: () => Promise<T>): Promise<T>
}

/** Request rate of an account: a bucket of requests that fills again. */
export interface RequestBucket {
  size: number
  perSecond: number
}

/** @param launches the limit on calls of rank `launch`, in addition to that on all calls */
export function createLimiter(
  requests: RequestBucket,
  clock: () => number,
  launches: RequestBucket = { size: Infinity, perSecond: 0 },
): Limiter {
  const waiting: Record<Rank, (() => void)[]> = { ending: [], launch: [], other: [] }
  const all = new Tokens(requests, clock)
  const ofLaunches = new Tokens(launches, clock)
  let timer: NodeJS.Timeout | undefined
  const next = (): (() => void) | undefined =>
    waiting.ending.shift() ??
    (waiting.launch.length > 0 && ofLaunches.take() ? waiting.launch.shift() : waiting.other.shift())
  const serve = (): void => {
    timer = undefined
    while (all.has()) {
      const go = next()
      if (go === undefined) break
      all.take()
      go()
    }
    if (Object.values(waiting).some(({ length }) => length > 0))
      timer ??= setTimeout(serve, 1_000 / requests.perSecond)
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

class Tokens {
  private left: number
  private filledAtMs: number

  constructor(
    private readonly bucket: RequestBucket,
    private readonly clock: () => number,
  ) {
    this.left = bucket.size
    this.filledAtMs = clock()
  }

  has(): boolean {
    const nowMs = this.clock()
    const { size, perSecond } = this.bucket
    this.left = Math.min(size, this.left + (Math.max(0, nowMs - this.filledAtMs) * perSecond) / 1_000)
    this.filledAtMs = nowMs
    return this.left >= 1
  }

  take(): boolean {
    if (!this.has()) return false
    this.left -= 1
    return true
  }
}
