import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from './errors'
import type { LeashedProcess } from './leash'

export interface RestartPolicy {
  /** Restarts allowed within the window; after one more failure the server stays down. */
  limit: number
  windowMs: number
  /** Wait before each restart. */
  delayMs: number
}

/** Tolerates a server that is killed occasionally; a server that cannot stay up is not restarted forever. */
const DEFAULT_RESTARTS: RestartPolicy = { limit: 5, windowMs: 10 * 60_000, delayMs: 500 }

export interface Upkeep {
  /** Restarts the server with the same ports and data. Rejects when the signal aborts, with no process left. */
  launch: (signal: AbortSignal) => Promise<LeashedProcess>
  /** Describes how a server ended unexpectedly. */
  endingOf: (server: LeashedProcess) => Promise<string>
  /** The server ended unexpectedly and is being restarted; `reason` says how it ended. */
  onRestart?: ((reason: string) => void) | undefined
  restarts?: RestartPolicy | undefined
}

export interface KeptServer {
  /** Process id of the current process; changes with a restart. */
  readonly pid: number
  /** Resolves immediately while the server runs, otherwise when it runs again or is permanently down. */
  whenUp(): Promise<void>
  /** Resolves when the server is permanently down: without a text after `stop`, otherwise with the cause. */
  readonly ended: Promise<string | undefined>
  /** May be called more than once, and at any time. */
  stop(): Promise<void>
}

/** A server that is restarted whenever it ends, until it is stopped. */
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
      // The server may have become ready at the moment of the stop.
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
        return `${reason}\nIt ended ${endedAtMs.length} times within a short time and will not be restarted.`
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
