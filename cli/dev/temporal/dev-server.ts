import { lockDataFile, type DataFileLock } from './data-file'
import { TemporalServerError } from './errors'
import { keepUp, type KeptServer, type RestartPolicy } from './keep-up'
import { DEV_NAMESPACE, launchServer, type LaunchOptions } from './launch'
import { endingNamed, type LeashedProcess } from './leash'
import { choosePorts, LOOPBACK, type Ports, type WantedPorts } from './ports'
import { hiddenHost, openUiDoor, type UiDoor } from './ui-door'

/** A free port may be taken by another program before the server opens it. */
const PORT_TRIES = 3

export interface DevServerOptions extends LaunchOptions {
  /** Fixed ports, or any free ones. */
  ports?: WantedPorts
  /** The server ended unexpectedly and is being restarted; `reason` says how it ended. */
  onRestart?: (reason: string) => void
  restarts?: RestartPolicy
  /** Aborts a start in progress. `stop` ends a running server. */
  signal?: AbortSignal
}

export interface DevServer extends Omit<KeptServer, 'whenUp'> {
  /** `host:port` of its gRPC service; the same after a restart. */
  readonly address: string
  readonly uiUrl: string
  readonly namespace: string
  /** Stops the server and frees its data file. May be called more than once, and at any time. */
  stop(): Promise<void>
}

/**
 * Starts a Temporal dev server on this machine and keeps it up. Resolves when it answers for its namespace with Crucible's search
 * attributes. The server dies with this process, even if this process is killed.
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
    const { ports, door } = await choosePlaces(options.ports ?? {})
    const address = `${LOOPBACK}:${ports.grpc}`
    const uiUrl = `http://${LOOPBACK}:${door.port}`
    const launch = (signal: AbortSignal): Promise<LeashedProcess> =>
      launchServer(ports, options, { signal, onStarted: (pid) => lock?.update({ address, uiUrl }, pid) })
    try {
      const first = await launch(options.signal ?? new AbortController().signal)
      const { onRestart, restarts } = options
      const endingOf = endingNamed('The Temporal server')
      const kept = keepUp(first, { launch, endingOf, onRestart, restarts })
      const ended = kept.ended.finally(() => {
        lock?.release()
        return door.close()
      })
      return {
        address,
        uiUrl,
        ended,
        namespace: DEV_NAMESPACE,
        get pid() {
          return kept.pid
        },
        stop: async () => {
          await kept.stop()
          await ended
        },
      }
    } catch (error) {
      await door.close()
      const isPortLost = error instanceof TemporalServerError && error.code === 'port-taken'
      if (!isPortLost || tries === PORT_TRIES) throw error
    }
  }
}

/** The Web UI listens at an internal address; a proxy serves the user's port. */
async function choosePlaces(wanted: WantedPorts): Promise<{ ports: Ports; door: UiDoor }> {
  const { grpc, ui } = await choosePorts({ grpc: wanted.grpc })
  const uiHost = hiddenHost(process.platform)
  const door = await openUiDoor(wanted.ui, { host: uiHost, port: ui })
  return { ports: { grpc, ui, uiHost }, door }
}
