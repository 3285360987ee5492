import { randomInt } from 'node:crypto'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { readTarget } from '#small-cloud/http/target'
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
    const path = readTarget(incoming.url ?? '/')
    if (problem !== undefined) refuse(outgoing, 403, problem)
    else if (path === undefined || !METHODS.includes(incoming.method ?? ''))
      refuse(outgoing, 400, 'The Temporal Web UI of crucible dev takes no such requests.')
    else passOn(incoming, outgoing, { ...behind, path })
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

const WITH_BODY = ['POST', 'PUT', 'PATCH']
const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', ...WITH_BODY]
/** Headers of a request that the Web UI needs; others do not reach it. */
const HEADERS = [
  'accept',
  'accept-language',
  'authorization-extras',
  'caller-type',
  'content-type',
  'cookie',
  'if-modified-since',
  'if-none-match',
  'range',
  'user-agent',
  'x-csrf-token',
]

function refuse(outgoing: ServerResponse, status: number, problem: string): void {
  outgoing.writeHead(status, { 'content-type': 'text/plain' }).end(`${problem}\n`)
}

function passOn(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { host, port, path }: Place & { path: string },
): void {
  const { method = 'GET' } = incoming
  const known = Object.entries(incoming.headers).filter(([name]) => HEADERS.includes(name))
  // The Web UI compares the origin of a request with its own address.
  const { host: named, origin } = incoming.headers
  const headers = { ...Object.fromEntries(known), host: named, ...(origin === undefined ? {} : { origin }) }
  const inner = request({ host, port, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  inner.on('error', () => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502, { 'content-type': 'text/plain' }).end('The Web UI is not up.\n')
  })
  outgoing.on('close', () => inner.destroy())
  // A body of another method would have no length, and be read as the next request.
  if (WITH_BODY.includes(method)) incoming.pipe(inner)
  else inner.end()
}

function notOpened(port: number | undefined, error: NodeJS.ErrnoException): Error {
  const message = `Port ${port ?? 'any'} for Temporal's Web UI cannot be opened: ${error.message}. Choose another port.`
  return new TemporalServerError('port-taken', message, { cause: error })
}
