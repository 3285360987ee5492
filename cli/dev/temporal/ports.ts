import { randomInt } from 'node:crypto'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { TemporalServerError } from './errors'

/** A dev server asks no caller for credentials, so only this machine reaches it. */
export const LOOPBACK = '127.0.0.1'

/**
 * Range in which a free port is searched: below those that systems give to outgoing connections and to programs that ask for any port. In
 * that range another program could take the port of a server that was killed and is about to restart.
 */
const FREE_PORTS = { from: 18_000, to: 32_000 }
const TRIES = 20

/** The first port is for gRPC, the second for the Web UI; `undefined` takes any free one. */
export interface WantedPorts {
  grpc?: number | undefined
  ui?: number | undefined
}

export interface Ports {
  grpc: number
  ui: number
  /** Address of the Web UI, if not `LOOPBACK`. */
  uiHost?: string
}

/** Fixes the ports; throws `port-taken` when a requested one is in use. */
export async function choosePorts(wanted: WantedPorts): Promise<Ports> {
  // Both sockets stay open until both ports are known; otherwise the same free port could be returned twice.
  const servers: Server[] = []
  try {
    const grpc = await listen(servers, wanted.grpc, 'gRPC')
    return { grpc, ui: await listen(servers, wanted.ui, 'Web UI') }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

async function listen(servers: Server[], port: number | undefined, purpose: string): Promise<number> {
  const server = createServer()
  const listening = await listenOn(server, port).catch((error: NodeJS.ErrnoException) => {
    throw port === undefined ? error : notUsable(port, purpose, error)
  })
  servers.push(server)
  return listening
}

/** Lets a server listen on loopback, on a free port if none is given; the port, or the system's error. */
export async function listenOn(server: Server, port: number | undefined): Promise<number> {
  for (let tries = 1; ; tries++) {
    const candidate = port ?? randomInt(FREE_PORTS.from, FREE_PORTS.to)
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(candidate, LOOPBACK, () => {
          server.off('error', reject)
          resolve()
        })
      })
      return (server.address() as AddressInfo).port
    } catch (error) {
      if (port !== undefined || tries === TRIES) throw error
    }
  }
}

function notUsable(port: number, purpose: string, error: NodeJS.ErrnoException): TemporalServerError {
  const message =
    error.code === 'EADDRINUSE'
      ? `Port ${port} for Temporal's ${purpose} is in use by another program (find it with lsof -i :${port}). ` +
        'Stop that program or choose another port; to use it as the Temporal server, set TEMPORAL_ADDRESS to it.'
      : `Port ${port} for Temporal's ${purpose} cannot be opened: ${error.message}. Choose another port.`
  return new TemporalServerError('port-taken', message, { cause: error })
}
