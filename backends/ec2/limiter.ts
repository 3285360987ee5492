import { transient } from './errors'
import type { Ec2Api } from './sdk/api'

/**
 * Request rate of an account in one Region: a token bucket ("Request throttling for the Amazon EC2 API", November 2026: 50 tokens, 5 per
 * second for mutating calls). All workers of a deployment share it; even per-worker limiting prevents a burst of jobs from being refused in
 * turn.
 */
const BUCKET = 50
const PER_SECOND = 5

/** `ending`: it stops spending, and precedes every call that spends. */
type Rank = 'ending' | 'other'

export interface Limiter {
  /** Runs a call when the rate allows it. Throws `transient` if the caller aborts first. */
  run<T>(rank: Rank, signal: AbortSignal, call: () => Promise<T>): Promise<T>
}

export function createLimiter(clock: () => number): Limiter {
  const waiting: Record<Rank, (() => void)[]> = { ending: [], other: [] }
  let tokens = BUCKET
  let filledAtMs = clock()
  let timer: NodeJS.Timeout | undefined
  const fill = (): void => {
    const nowMs = clock()
    tokens = Math.min(BUCKET, tokens + (Math.max(0, nowMs - filledAtMs) * PER_SECOND) / 1_000)
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
    if (waiting.ending.length + waiting.other.length > 0) timer ??= setTimeout(serve, 1_000 / PER_SECOND)
  }
  const turn = (rank: Rank, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const queue = waiting[rank]
      const leave = (): void => {
        queue.splice(queue.indexOf(go), 1)
        reject(transient('the caller stopped waiting'))
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

/** The same calls, with mutating ones at the provider's rate. */
export function paced(api: Ec2Api, limiter: Limiter): Ec2Api {
  const { machines, commands, leftovers } = api
  return {
    ...api,
    machines: {
      ...machines,
      createFleet: (request, signal) =>
        limiter.run('other', signal, () => machines.createFleet(request, signal)),
      runReserved: (request, signal) =>
        limiter.run('other', signal, () => machines.runReserved(request, signal)),
      createTemplate: (spec, signal) =>
        limiter.run('other', signal, () => machines.createTemplate(spec, signal)),
      terminate: (id, signal, how) =>
        limiter.run('ending', signal, () => machines.terminate(id, signal, how)),
      deleteVolume: (id, signal) => limiter.run('ending', signal, () => machines.deleteVolume(id, signal)),
    },
    commands: {
      ...commands,
      send: (request, signal) => limiter.run('other', signal, () => commands.send(request, signal)),
    },
    leftovers: {
      ...leftovers,
      deleteTemplate: (id, signal) =>
        limiter.run('other', signal, () => leftovers.deleteTemplate(id, signal)),
      cancelSpotRequest: (id, signal) =>
        limiter.run('ending', signal, () => leftovers.cancelSpotRequest(id, signal)),
    },
  }
}
