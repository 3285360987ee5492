import { createServer, type Server } from 'node:net'
import { TemporalServerError } from './errors'

/** A dev server asks no caller for credentials, so only this machine reaches it. */
export const LOOPBACK = '127.0.0.1'

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
  // Both stay open until both are known; otherwise the same free port could be returned twice.
  const servers: Server[] = []
  try {
    const grpc = await listen(servers, wanted.grpc, 'gRPC')
    return { grpc, ui: await listen(servers, wanted.ui, 'Web UI') }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

function listen(servers: Server[], port: number | undefined, purpose: string): Promise<number> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(port === undefined ? error : notUsable(port, purpose, error)),
    )
    server.listen(port ?? 0, LOOPBACK, () => {
      servers.push(server)
      resolve((server.address() as { port: number }).port)
    })
  })
}

function notUsable(port: number, purpose: string, error: NodeJS.ErrnoException): TemporalServerError {
  const message =
    error.code === 'EADDRINUSE'
      ? `Port ${port} for Temporal's ${purpose} is in use by another program (find it with lsof -i :${port}). ` +
        'Stop that program or choose another port; to use it as the Temporal server, set TEMPORAL_ADDRESS to it.'
      : `Port ${port} for Temporal's ${purpose} cannot be opened: ${error.message}. Choose another port.`
  return new TemporalServerError('port-taken', message, { cause: error })
}
