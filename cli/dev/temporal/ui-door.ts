import { randomInt } from 'node:crypto'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { TemporalServerError } from './errors'
import { listenOn, LOOPBACK } from './ports'

/** A proxy for the Web UI that answers only to this machine's own names. */
export interface UiDoor {
  readonly port: number
  close(): Promise<void>
}

export interface Place {
  host: string
  port: number
}

/**
 * Serves the Web UI to requests that name a loopback host. The UI itself answers any `Host` header, so a web page whose name
 * resolves to 127.0.0.1 (DNS rebinding) could use its API; and it would accept cross-origin requests from other pages.
 *
 * @param port undefined takes any free one
 */
export async function openUiDoor(port: number | undefined, behind: Place): Promise<UiDoor> {
  const server = createServer((incoming, outgoing) => {
    const problem = problemOf(incoming)
    if (problem === undefined) passOn(incoming, outgoing, behind)
    else outgoing.writeHead(403, { 'content-type': 'text/plain' }).end(`${problem}\n`)
  })
  const listening = await listenOn(server, port).catch((error: NodeJS.ErrnoException) => {
    throw notOpened(port, error)
  })
  return {
    port: listening,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** An address that a web page cannot guess: Linux has all of 127/8, other systems only its first address. */
export function hiddenHost(platform: NodeJS.Platform): string {
  if (platform !== 'linux') return LOOPBACK
  return `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']

function problemOf({ headers: { host, origin } }: IncomingMessage): string | undefined {
  const name = hostnameOf(`http://${host ?? ''}`)
  if (name === undefined || !LOOPBACK_NAMES.includes(name))
    return `The Temporal Web UI of crucible dev answers ${LOOPBACK_NAMES.join(', ')} only, not ${host ?? 'a request without a host'}.`
  if (origin !== undefined && origin !== `http://${host}`)
    return `The Temporal Web UI of crucible dev takes no requests from pages of ${origin}.`
  return undefined
}

function hostnameOf(url: string): string | undefined {
  try {
    return new URL(url).hostname
  } catch {
    return undefined
  }
}

function passOn(incoming: IncomingMessage, outgoing: ServerResponse, { host, port }: Place): void {
  const { method, url, headers } = incoming
  const inner = request({ host, port, method, path: url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  inner.on('error', () => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502, { 'content-type': 'text/plain' }).end('The Web UI is not up.\n')
  })
  outgoing.on('close', () => inner.destroy())
  incoming.pipe(inner)
}

function notOpened(port: number | undefined, error: NodeJS.ErrnoException): Error {
  const message = `Port ${port ?? 'any'} for Temporal's Web UI cannot be opened: ${error.message}. Choose another port.`
  return new TemporalServerError('port-taken', message, { cause: error })
}
