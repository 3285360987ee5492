import type { TemporalAddress } from './temporal/address'
import { startDevServer, type DevServer } from './temporal/dev-server'
import { choosePorts, type WantedPorts } from './temporal/ports'
import { noteRestart, type Progress } from './temporal/progress'
import type { TemporalExecutable } from './temporal/resolve'

/** The Temporal server of a development set-up: our own, or one that somebody else runs. */
export interface Server {
  address: string
  namespace: string
  /** Null where nobody told it. */
  uiUrl: string | null
  connection: TemporalAddress['connectionOptions']
  /** Number of the process, where it is ours. */
  pid(): number | null
  /** Resolves with what happened when ours is down for good. */
  ended: Promise<string | undefined>
  stop(): Promise<void>
}

const DEFAULT_PORTS = { grpc: 7233, ui: 8233 } as const

export interface ServerOptions {
  found: TemporalAddress | TemporalExecutable
  progress: Progress
  signal: AbortSignal
  ports: WantedPorts
  /** Without it the state is in memory. */
  dataFile?: string
}

export async function startServer(options: ServerOptions): Promise<Server> {
  const { found, progress, signal, dataFile, ports } = options
  if (found.kind === 'address') return elsewhere(found)
  const server = await startDevServer({
    executable: found,
    ports,
    signal,
    onRestart: noteRestart(progress),
    ...(dataFile === undefined ? {} : { dataFile }),
  })
  return ours(server)
}

function elsewhere({ address, namespace, connectionOptions }: TemporalAddress): Server {
  return {
    address,
    namespace,
    uiUrl: null,
    connection: connectionOptions,
    pid: () => null,
    ended: new Promise(() => {}),
    stop: async () => {},
  }
}

function ours(server: DevServer): Server {
  const { address, namespace, uiUrl } = server
  return {
    address,
    namespace,
    uiUrl,
    connection: { address },
    pid: () => server.pid,
    ended: server.ended,
    stop: () => server.stop(),
  }
}

/** The usual ports unless others were asked for; where one of them is taken, any free one, with a remark. */
export async function devPorts(asked: WantedPorts, progress: Progress): Promise<WantedPorts> {
  const [grpc, ui] = await Promise.all([
    asked.grpc ?? usual('grpc', progress),
    asked.ui ?? usual('ui', progress),
  ])
  return { grpc, ui }
}

/** The port, or none, with a remark, where it is taken. */
export async function portOrFree(port: number, progress: Progress, choose = ''): Promise<number | undefined> {
  try {
    await choosePorts({ grpc: port })
    return port
  } catch {
    progress.note(`Port ${port} is taken by another program; using a free one${choose}.`)
    return undefined
  }
}

function usual(which: keyof typeof DEFAULT_PORTS, progress: Progress): Promise<number | undefined> {
  const flag = which === 'grpc' ? '--port' : '--ui-port'
  return portOrFree(DEFAULT_PORTS[which], progress, ` (choose with ${flag})`)
}
