import { setTimeout as sleep } from 'node:timers/promises'
import { lockDataFile, type DataFileLock } from './data-file'
import { messageOf, TemporalServerError } from './errors'
import type { LeashedProcess } from './leash'
import { DEV_NAMESPACE, endingOf, launchServer, type LaunchOptions } from './launch'
import { choosePorts, LOOPBACK, type WantedPorts } from './ports'

/** Free ports are free when looked for; another program may take one before the server does. */
const PORT_TRIES = 3

export interface DevServerOptions extends LaunchOptions {
  /** Fixed ports, or any free ones. */
  ports?: WantedPorts
  /** The server ended by itself and is being started again; `reason` says how it ended. */
  onRestart?: (reason: string) => void
  restarts?: RestartPolicy
  /** Gives up a start that has not finished. A running server is ended by `stop`. */
  signal?: AbortSignal
}

export interface RestartPolicy {
  /** So many within the window are tried; one more end and the server stays down. */
  limit: number
  windowMs: number
  /** Waited before each restart. */
  delayMs: number
}

/** Survives a server that is killed now and then; one that cannot stay up is not restarted for ever. */
const DEFAULT_RESTARTS: RestartPolicy = { limit: 5, windowMs: 10 * 60_000, delayMs: 500 }

export interface DevServer {
  /** `host:port` of its gRPC service; the same after a restart. */
  readonly address: string
  readonly uiUrl: string
  readonly namespace: string
  /** Of the server now running; another after a restart. */
  readonly pid: number
  /** Resolves when the server is down for good: without a text after `stop`, else with what happened. */
  readonly ended: Promise<string | undefined>
  /** Stops the server and frees its data file. May be called more than once, and at any time. */
  stop(): Promise<void>
}

/**
 * Starts a Temporal dev server on this machine and keeps it up. Resolves when it answers for its namespace with Crucible's
 * search attributes. The server dies with this process, however this process dies.
 */
export async function startDevServer(options: DevServerOptions): Promise<DevServer> {
  const { dataFile, signal } = options
  const lock = dataFile === undefined ? undefined : await lockDataFile(dataFile, signal)
  try {
    return await startOnPorts(options, lock)
  } catch (error) {
    lock?.release()
    throw error
  }
}

async function startOnPorts(options: DevServerOptions, lock: DataFileLock | undefined): Promise<DevServer> {
  for (let tries = 1; ; tries += 1) {
    const ports = await choosePorts(options.ports ?? {})
    const address = `${LOOPBACK}:${ports.grpc}`
    const uiUrl = `http://${LOOPBACK}:${ports.ui}`
    const launch = (signal: AbortSignal): Promise<LeashedProcess> =>
      launchServer(ports, options, { signal, onStarted: (pid) => lock?.update({ address, uiUrl }, pid) })
    try {
      const first = await launch(options.signal ?? new AbortController().signal)
      return keepUp(first, { address, uiUrl, launch, lock, options })
    } catch (error) {
      const isPortLost = error instanceof TemporalServerError && error.code === 'port-taken'
      if (!isPortLost || tries === PORT_TRIES) throw error
    }
  }
}

interface Upkeep {
  address: string
  uiUrl: string
  launch: (signal: AbortSignal) => Promise<LeashedProcess>
  lock: DataFileLock | undefined
  options: DevServerOptions
}

/** A server that is started again each time it ends by itself, until it is stopped. */
function keepUp(first: LeashedProcess, { address, uiUrl, launch, lock, options }: Upkeep): DevServer {
  const { limit, windowMs, delayMs } = options.restarts ?? DEFAULT_RESTARTS
  const stopping = new AbortController()
  let server = first
  const restart = async (): Promise<string> => {
    try {
      await sleep(delayMs, undefined, { signal: stopping.signal })
      server = await launch(stopping.signal)
      // It may have become ready in the moment in which it was not wanted any more.
      if (stopping.signal.aborted) await server.stop()
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
      options.onRestart?.(reason)
      reason = await restart()
    }
    return undefined
  }
  const ended = run().finally(() => lock?.release())
  return {
    address,
    uiUrl,
    namespace: DEV_NAMESPACE,
    get pid() {
      return server.pid
    },
    ended,
    async stop() {
      stopping.abort()
      await server.stop()
      await ended
    },
  }
}
