import { lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
  /** Address of the Web UI; null if unknown. */
  uiUrl: string | null
  connection: TemporalAddress['connectionOptions']
  /** Process id of our own server; null for an external one. */
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
  /** File for the state; if missing, the state is kept in memory. */
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
    dataFile,
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
export async function devPorts(asked: WantedPorts, claiming: Claiming): Promise<WantedPorts> {
  const grpc = asked.grpc ?? (await claimPort(DEFAULT_PORTS.grpc, { ...claiming, flag: '--port' }))
  const ui = asked.ui ?? (await claimPort(DEFAULT_PORTS.ui, { ...claiming, flag: '--ui-port' }))
  return { grpc, ui }
}

export interface Claiming {
  progress: Progress
  /** Chooses another port. */
  flag?: string
  /** Directory of the claims, which all homes of this user share. */
  directory?: string
}

/**
 * Returns the port, or `undefined` with a remark if it is taken. Until this process ends, no other claimant gets it: two processes that
 * start at the same time would both find it free, and a server that starts later would answer for ours.
 */
export async function claimPort(port: number, claiming: Claiming): Promise<number | undefined> {
  const {
    progress,
    flag,
    directory = join(tmpdir(), `crucible-ports-${process.getuid?.() ?? 'all'}`),
  } = claiming
  const choose = flag === undefined ? '' : ` (choose with ${flag})`
  // Without a directory for claims, a free port is taken without a claim.
  const claim = isOnlyOurs(directory)
    ? await acquireLock(join(directory, String(port)), { info: port, waitMs: 0 }).catch(() => undefined)
    : undefined
  const isClaimed = claim !== undefined && 'heldBy' in claim
  if (!isClaimed && (await isFree(port))) return port
  const holder = isClaimed ? '`crucible dev`' : 'program'
  progress.note(`Port ${port} is taken by another ${holder}; using a free one${choose}.`)
  return undefined
}

/** Whether only this user can change the directory, which is created if missing: a lock in another one could be a link to any folder. */
function isOnlyOurs(directory: string): boolean {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const stats = lstatSync(directory)
    const isOwn = process.getuid === undefined || stats.uid === process.getuid()
    return stats.isDirectory() && isOwn && (stats.mode & 0o022) === 0
  } catch {
    return false
  }
}

function isFree(port: number): Promise<boolean> {
  return choosePorts({ grpc: port }).then(
    () => true,
    () => false,
  )
}
