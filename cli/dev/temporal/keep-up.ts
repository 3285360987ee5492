import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from './errors'
import type { LeashedProcess } from './leash'

export interface RestartPolicy {
  /** So many within the window are tried; one more end and the server stays down. */
  limit: number
  windowMs: number
  /** Waited before each restart. */
  delayMs: number
}

/** Survives a server that is killed now and then; one that cannot stay up is not restarted for ever. */
const DEFAULT_RESTARTS: RestartPolicy = { limit: 5, windowMs: 10 * 60_000, delayMs: 500 }

export interface Upkeep {
  /** Starts the server anew, with the same ports and data. Rejects, with nothing left, when the signal aborts. */
  launch: (signal: AbortSignal) => Promise<LeashedProcess>
  /** How a server ended by itself. */
  endingOf: (server: LeashedProcess) => Promise<string>
  /** The server ended by itself and is being started again; `reason` says how it ended. */
  onRestart?: ((reason: string) => void) | undefined
  restarts?: RestartPolicy | undefined
}

export interface KeptServer {
  /** Of the process now running; another after a restart. */
  readonly pid: number
  /** Resolves at once while it runs, and else when it runs again or is down for good. */
  whenUp(): Promise<void>
  /** Resolves when the server is down for good: without a text after `stop`, else with what happened. */
  readonly ended: Promise<string | undefined>
  /** May be called more than once, and at any time. */
  stop(): Promise<void>
}

/** A server that is started again each time it ends by itself, until it is stopped. */
export function keepUp(first: LeashedProcess, { launch, endingOf, onRestart, restarts }: Upkeep): KeptServer {
  const { limit, windowMs, delayMs } = restarts ?? DEFAULT_RESTARTS
  const stopping = new AbortController()
  let server = first
  let up = Promise.resolve()
  let isUp = (): void => {}
  const restart = async (): Promise<string> => {
    try {
      await sleep(delayMs, undefined, { signal: stopping.signal })
      server = await launch(stopping.signal)
      // It may have become ready in the moment in which it was not wanted any more.
      if (stopping.signal.aborted) await server.stop()
      isUp()
      return await endingOf(server)
    } catch (error) {
      return messageOf(error)
    }
  }
  const run = async (): Promise<string | undefined> => {
    let endedAtMs: number[] = []
    let reason = await endingOf(server)
    while (!stopping.signal.aborted) {
      const nowMs = performance.now()
      endedAtMs = [...endedAtMs.filter((atMs) => nowMs - atMs < windowMs), nowMs]
      if (endedAtMs.length > limit) {
        return `${reason}\nIt has ended ${endedAtMs.length} times in a short time and is not started again.`
      }
      const wakeThoseOfBefore = isUp
      up = new Promise((resolve) => {
        isUp = () => (wakeThoseOfBefore(), resolve())
      })
      onRestart?.(reason)
      reason = await restart()
    }
    return undefined
  }
  const ended = run().finally(() => isUp())
  return {
    get pid() {
      return server.pid
    },
    whenUp: () => up,
    ended,
    async stop() {
      stopping.abort()
      await server.stop()
      await ended
    },
  }
}
