import { join } from 'node:path'
import { defined } from '../../core/defined'
import type { TemporalAddress } from './temporal/address'
import { startDevServer, type DevServer } from './temporal/dev-server'
import { acquireLock } from './temporal/lock'
import { choosePorts, type WantedPorts } from './temporal/ports'
import { noteRestart, type Progress } from './temporal/progress'
import type { TemporalExecutable } from './temporal/resolve'

/** The Temporal server of a development set-up: our own, or an external one. */
export interface Server {
  address: string
  namespace: string
  /** Null if unknown. */
  uiUrl: string | null
  connection: TemporalAddress['connectionOptions']
  /** Its process id, if it is ours. */
  pid(): number | null
  /** Resolves with the cause when our server is permanently down. */
  ended: Promise<string | undefined>
  stop(): Promise<void>
}

const DEFAULT_PORTS = { grpc: 7233, ui: 8233 } as const

export interface ServerOptions {
  found: TemporalAddress | TemporalExecutable
  progress: Progress
  signal: AbortSignal
  ports: WantedPorts
  /** Without it, the state is kept in memory. */
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
    ...defined({ dataFile }),
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

/** The default ports unless others were requested; if one is taken, any free port, with a remark. */
export async function devPorts(asked: WantedPorts, progress: Progress): Promise<WantedPorts> {
  const [grpc, ui] = await Promise.all([
    asked.grpc ?? usual('grpc', progress),
    asked.ui ?? usual('ui', progress),
  ])
  return { grpc, ui }
}

/** The port, or `undefined` with a remark if it is taken. */
export async function portOrFree(port: number, progress: Progress, choose = ''): Promise<number | undefined> {
  try {
    await choosePorts({ grpc: port })
    return port
  } catch {
    progress.note(`Port ${port} is taken by another program; using a free one${choose}.`)
    return undefined
  }
}

/**
 * The same, and until this process ends no other one here gets it: a server that starts later would otherwise answer for ours.
 *
 * @param directory of the claims, common to all homes of this machine
 */
export async function claimPort(
  port: number,
  { progress, directory }: { progress: Progress; directory: string },
): Promise<number | undefined> {
  // Without a place for claims, such as one that belongs to another user, a port that is free is taken.
  const claim = await acquireLock(join(directory, String(port)), { info: port, waitMs: 0 }).catch(
    () => undefined,
  )
  if (claim === undefined || !('heldBy' in claim)) return portOrFree(port, progress)
  progress.note(`Port ${port} is taken by another \`crucible dev\`; using a free one.`)
  return undefined
}

function usual(which: keyof typeof DEFAULT_PORTS, progress: Progress): Promise<number | undefined> {
  const flag = which === 'grpc' ? '--port' : '--ui-port'
  return portOrFree(DEFAULT_PORTS[which], progress, ` (choose with ${flag})`)
}
